import type { Logprob } from '../../model/chat.ts';
import type { JsonObject, JsonValue } from '../../model/json.ts';

/** Tokens as a delta says them: `bytes` is not told there unless the provider did. */
export function writeDeltaLogprobs(tokens: readonly Logprob[] | undefined): readonly JsonObject[] {
  return (tokens ?? []).map((token) => ({
    token: token.token,
    logprob: token.logprob,
    ...(token.bytes === undefined ? {} : { bytes: token.bytes }),
    ...(token.top === undefined ? {} : { top_logprobs: writeDeltaLogprobs(token.top) }),
  }));
}

/** Tokens as the finished part says them, with every field that typed clients expect. */
export function writeLogprobs(tokens: readonly Logprob[]): readonly JsonObject[] {
  return tokens.map((token) => ({ ...writeToken(token), top_logprobs: (token.top ?? []).map(writeToken) }));
}

function writeToken({ token, logprob, bytes }: Logprob): JsonObject {
  return { token, bytes: Array.isArray(bytes) ? (bytes as JsonValue) : [...Buffer.from(token)], logprob };
}
