/** Decodes and encodes `logprobsResult` of generateContent. */
import type { Logprob } from '../../model/chat.ts';
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import { listOf } from '../_shared/fields.ts';

/** Returns `logprobsResult` token by token; undefined when it holds none. */
export function readLogprobs(value: JsonValue | undefined): readonly Logprob[] | undefined {
  if (!isObject(value) || !Array.isArray(value.chosenCandidates)) return undefined;
  const tops = listOf(value.topCandidates);
  const tokens = value.chosenCandidates.map((chosen, index) => {
    const beside = tops[index];
    const top =
      isObject(beside) && Array.isArray(beside.candidates) ? beside.candidates.map(readToken) : undefined;
    return { ...readToken(chosen), ...(top === undefined ? {} : { top }) };
  });
  return tokens.length === 0 ? undefined : tokens;
}

function readToken(value: JsonValue): Logprob {
  const token = isObject(value) ? value : {};
  return {
    token: typeof token.token === 'string' ? token.token : '',
    logprob: typeof token.logProbability === 'number' ? token.logProbability : 0,
  };
}

/** Returns the tokens as a `logprobsResult`. */
export function writeLogprobs(tokens: readonly Logprob[]): JsonObject {
  return {
    chosenCandidates: tokens.map(writeToken),
    topCandidates: tokens.map((token) => ({ candidates: (token.top ?? []).map(writeToken) })),
  };
}

function writeToken({ token, logprob }: Logprob): JsonObject {
  return { token, logProbability: logprob };
}
