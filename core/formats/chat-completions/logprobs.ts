import type { Logprob } from '../../model/chat.ts';
import type { JsonObject } from '../../model/json.ts';
import type { MutableObject } from '../_shared/settings.ts';

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
