import type { Logprob } from '../../model/chat.ts';
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import type { MutableObject } from '../_shared/settings.ts';

/** The tokens of a `logprobs` list; what is no token is passed over. */
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

/** The `logprobs` object of a choice. */
export function writeLogprobs(tokens: readonly Logprob[]): JsonObject {
  return {
    content: tokens.map((token) => ({
      ...writeToken(token),
      top_logprobs: (token.top ?? []).map(writeToken),
    })),
    refusal: null,
  };
}

function writeToken(token: Logprob): JsonObject {
  const wire: MutableObject = { token: token.token, logprob: token.logprob, bytes: token.bytes ?? null };
  return wire;
}
