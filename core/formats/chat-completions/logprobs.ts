import type { Logprob } from '../../model/chat.ts';
import type { JsonObject } from '../../model/json.ts';
import { writeToken } from '../_openai/logprobs.ts';

/** Returns the `logprobs` object of a choice. */
export function writeLogprobs(tokens: readonly Logprob[]): JsonObject {
  return { content: tokens.map((token) => writeToken(token, ({ bytes }) => bytes ?? null)), refusal: null };
}
