import type { Logprob } from '../../model/chat.ts';
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';

/** The tokens of a `logprobs` list; undefined when it holds none. */
export function readLogprobs(list: JsonValue | undefined): readonly Logprob[] | undefined {
  const tokens = tokensOf(list);
  return tokens.length === 0 ? undefined : tokens;
}

function tokensOf(list: JsonValue | undefined): Logprob[] {
  if (!Array.isArray(list)) return [];
  const tokens: Logprob[] = [];
  for (const item of list as readonly JsonValue[]) {
    if (!isObject(item) || typeof item.token !== 'string' || typeof item.logprob !== 'number') continue;
    tokens.push({
      token: item.token,
      logprob: item.logprob,
      ...(item.bytes === undefined ? {} : { bytes: item.bytes }),
      ...(Array.isArray(item.top_logprobs) ? { top: tokensOf(item.top_logprobs as JsonValue) } : {}),
    });
  }
  return tokens;
}

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
