/** Serves lists of prompts of text completions with chat models. */
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
 * Lets clients of text completions send a list of prompts to a chat model. Sends one request per prompt, one after the other, and returns
 * all completions in one response with the indexes of the format. Usage is the sum of all requests.
 */
export default definePlugin({
  name: 'prompt-list',
  stage: 'translate',
  before: ['continuation', 'learned-refusals', 'parallel-choices', 'translation'],
  options: z.strictObject({
    /** Maximum number of prompts in one request. Each prompt is sent to the provider as a request of its own. */
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

/** Returns true if the channel accepts the list unchanged. */
function isNative({ target }: Call): boolean {
  return target !== undefined && chatFormats(target).includes(format);
}

/** Returns the prompts of a list of several texts; undefined for any other prompt. */
function textsOf(prompt: JsonValue | undefined): readonly string[] | undefined {
  if (!Array.isArray(prompt) || prompt.length < 2) return undefined;
  const list = prompt as readonly JsonValue[];
  return list.every((one) => typeof one === 'string') ? list : undefined;
}

/**
 * Sends the requests in order, each after the response to the one before. Awaits the first, so that a fallback to another channel is still
 * possible.
 */
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
