/** Serves lists of prompts where a model only chats. */
import { concat, concatAll, concatMap, defer, filter, from, map, type Observable } from 'rxjs';
import { z } from 'zod';
import {
  chatOf,
  definePlugin,
  wrongValue,
  chatFormats,
  type GatewayEvent,
  type JsonValue,
  type Call,
  type Next,
} from 'sluice';
import { JoinedReplies } from './_joined-replies.ts';

const format = 'text-completions';

/**
 * Callers of text completions may send a list of prompts to a model that only chats: each is answered by itself, one after the other, and
 * all answers come in one reply, numbered as the format wants it. Usage is that of all of them.
 */
export default definePlugin({
  name: 'prompt-list',
  stage: 'translate',
  before: ['continuation', 'learned-refusals', 'parallel-choices', 'translation'],
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
      // Throws before the first request is sent if one of the prompts cannot be answered.
      for (const one of calls) {
        const refused = one.codec.onlyNative?.(one.body);
        if (refused !== undefined) throw refused;
      }
      return runInOrder(calls, next);
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

/** Sends the requests in order, each after the response of the one before. The first is awaited, so that another channel can still answer. */
async function runInOrder(calls: readonly Call[], next: Next): Promise<Observable<GatewayEvent>> {
  const [first, ...others] = calls;
  if (first === undefined) throw new Error('A list of prompts has at least one.');
  const beginning = await next(first);
  const replies = [beginning, ...others.map((call) => defer(() => next(call)).pipe(concatAll()))];
  const perPrompt = chatOf(first).settings.choices ?? 1;
  return defer(() => {
    const joined = new JoinedReplies();
    return from(replies).pipe(
      concatMap((reply, index) => {
        const part = joined.add(index * perPrompt);
        const own = reply.pipe(
          map((event) => part.event(event)),
          filter((event) => event !== undefined),
        );
        return concat(
          own,
          defer(() => part.end()),
        );
      }),
    );
  });
}
