import type { Logprob } from '../../model/chat.ts';
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';

/** The tokens of a list of log probabilities; what is no token is passed over. */
export function readLogprobs(list: JsonValue | undefined): readonly Logprob[] {
  if (!Array.isArray(list)) return [];
  const tokens: Logprob[] = [];
  for (const item of list as readonly JsonValue[]) {
    if (!isObject(item) || typeof item.token !== 'string' || typeof item.logprob !== 'number') continue;
    tokens.push({
      token: item.token,
      logprob: item.logprob,
      ...(item.bytes === undefined ? {} : { bytes: item.bytes }),
      ...(Array.isArray(item.top_logprobs) ? { top: readLogprobs(item.top_logprobs as JsonValue) } : {}),
    });
  }
  return tokens;
}

/** A token as a delta says it: nothing is told that its provider did not tell. */
export function writeDeltaToken({ token, logprob, bytes, top }: Logprob): JsonObject {
  return {
    token,
    logprob,
    ...(bytes === undefined ? {} : { bytes }),
    ...(top === undefined ? {} : { top_logprobs: top.map(writeDeltaToken) }),
  };
}

/** A token with every field that typed clients expect; `bytesOf` gives its bytes. */
export function writeToken(token: Logprob, bytesOf: (token: Logprob) => JsonValue): JsonObject {
  const one = (of: Logprob): JsonObject => ({ token: of.token, logprob: of.logprob, bytes: bytesOf(of) });
  return { ...one(token), top_logprobs: (token.top ?? []).map(one) };
}
