import type { Logprob } from '../../model/chat.ts';
import type { JsonObject, JsonValue } from '../../model/json.ts';
import { writeToken } from '../_openai/logprobs.ts';

/** Tokens as the finished part says them, with every field that typed clients expect. */
export function writeLogprobs(tokens: readonly Logprob[]): readonly JsonObject[] {
  return tokens.map((token) => writeToken(token, bytesOf));
}

function bytesOf({ token, bytes }: Logprob): JsonValue {
  return Array.isArray(bytes) ? (bytes as JsonValue) : [...Buffer.from(token)];
}
