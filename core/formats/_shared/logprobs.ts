import type { Logprob } from '../../model/chat.ts';
import { isObject, type JsonValue } from '../../model/json.ts';

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
