/** Decodes and encodes log probabilities of tokens as chat completions and Responses spell them. */
import type { Logprob } from '../../model/chat.ts';
import { defined, objectsOf } from '../_shared/fields.ts';
import type { JsonObject, JsonValue } from '../../model/json.ts';

/** Returns the tokens of a list of log probabilities; skips invalid entries. */
export function readLogprobs(list: JsonValue | undefined): readonly Logprob[] {
  if (!Array.isArray(list) || list.length === 0) return [];
  return objectsOf(list as JsonValue).flatMap(({ token, logprob, bytes, top_logprobs: ranked }) => {
    if (typeof token !== 'string' || typeof logprob !== 'number') return [];
    const top = Array.isArray(ranked) ? readLogprobs(ranked as JsonValue) : undefined;
    return [{ token, logprob, ...defined({ bytes, top }) }];
  });
}

/** Encodes a token of a delta, without fields that its provider did not send. */
export function writeDeltaToken({ token, logprob, bytes, top }: Logprob): JsonObject {
  return defined({ token, logprob, bytes, top_logprobs: top?.map(writeDeltaToken) });
}

/** Returns a token with every field that typed clients expect; `bytesOf` gives its bytes. */
export function writeToken(token: Logprob, bytesOf: (token: Logprob) => JsonValue): JsonObject {
  const one = (of: Logprob): JsonObject => ({ token: of.token, logprob: of.logprob, bytes: bytesOf(of) });
  return { ...one(token), top_logprobs: (token.top ?? []).map(one) };
}
