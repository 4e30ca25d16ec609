import { concatAll, concatMap, defer, filter, from, map, type Observable, type OperatorFunction } from 'rxjs';
import { z } from 'zod';
import { definePlugin, type GatewayEvent, type JsonValue, type Usage, chatOf } from 'sluice';
import { chatFormats, sumUsage, wrongValue, type Call, type Next } from 'sluice/internal';

const format = 'text-completions';

/**
 * Callers of text completions may send a list of prompts to a model that only chats: each is answered by itself, one after the other, and
 * all answers come in one reply, numbered as the format wants it. Usage is that of all of them.
 */
export default definePlugin({
  name: 'prompt-list',
  stage: 'translate',
  before: ['continuation', 'learned-refusals', 'translation'],
  options: z.strictObject({
    /** Most prompts of one request: each is a request of its own to the provider. */
    most: z.int().min(1).default(20),
  }),
  setup({ most }) {
    return function promptList(call: Call, next) {
      if (call.codec.format !== format || call.operation !== 'chat' || isNative(call)) return next(call);
      const prompts = textsOf(call.body.prompt);
      if (prompts === undefined) return next(call);
      if (prompts.length > most)
        throw wrongValue('prompt', `a list of at most ${most} prompts for this model`);
      const calls = prompts.map((prompt) => call.with({ body: { ...call.body, prompt }, decoded: true }));
      // What no prompt can be answered with is refused before the first is.
      for (const one of calls) {
        const refused = one.codec.onlyNative?.(one.body);
        if (refused !== undefined) throw refused;
      }
      return inTurn(calls, next);
    };
  },
});

/** True where the channel takes the list as it is. */
function isNative({ target }: Call): boolean {
  return target !== undefined && chatFormats(target).includes(format);
}

/** The prompts of a list that has more than one, all of them text. */
function textsOf(prompt: JsonValue | undefined): readonly string[] | undefined {
  if (!Array.isArray(prompt) || prompt.length < 2) return undefined;
  const list = prompt as readonly JsonValue[];
  return list.every((one) => typeof one === 'string') ? list : undefined;
}

/** The replies one behind the other. The first is awaited, so that another channel can still answer; the others begin when it is their turn. */
async function inTurn(calls: readonly Call[], next: Next): Promise<Observable<GatewayEvent>> {
  const [first, ...others] = calls;
  if (first === undefined) throw new Error('A list of prompts has at least one.');
  const beginning = await next(first);
  const replies = [beginning, ...others.map((call) => defer(() => next(call)).pipe(concatAll()))];
  const perPrompt = chatOf(first).settings.choices ?? 1;
  return defer(() => {
    const sum = new Sum();
    return from(replies).pipe(
      concatMap((reply, index) => reply.pipe(renumbered(index, index * perPrompt, sum))),
    );
  });
}

/** Gives the blocks and answers of one reply their place among those of all, and adds up usage. Only the first reply has a head. */
function renumbered(
  index: number,
  firstChoice: number,
  sum: Sum,
): OperatorFunction<GatewayEvent, GatewayEvent> {
  return (source) =>
    defer(() => {
      sum.nextReply();
      const firstBlock = sum.blocks;
      return source.pipe(
        filter((event) => index === 0 || !isOnce(event)),
        map((event): GatewayEvent => {
          if (event.type === 'usage') return { type: 'usage', usage: sum.add(event.usage) };
          if ('block' in event) {
            const block = firstBlock + event.block;
            sum.blocks = Math.max(sum.blocks, block + 1);
            return { ...event, block, choice: firstChoice + event.choice };
          }
          if (event.type === 'finish') return { ...event, choice: firstChoice + event.choice };
          return event.type === 'opaque' ? { ...event, choice: firstChoice + (event.choice ?? 0) } : event;
        }),
      );
    });
}

/** What a reply says once, however many prompts it answers. */
function isOnce({ type }: GatewayEvent): boolean {
  return type === 'head' || type === 'attempt' || type === 'loss';
}

/** What all replies so far have used. */
class Sum {
  /** Blocks that have been numbered. */
  blocks = 0;
  #before: Usage | undefined;
  #current: Usage | undefined;

  nextReply(): void {
    this.#before = this.#total();
    this.#current = undefined;
  }

  /** The last usage of a reply counts: what came before it in the same reply is part of it. */
  add(usage: Usage): Usage {
    this.#current = usage;
    return this.#total() ?? usage;
  }

  #total(): Usage | undefined {
    const [one, other] = [this.#before, this.#current];
    return one === undefined || other === undefined ? (one ?? other) : sumUsage(one, other);
  }
}
