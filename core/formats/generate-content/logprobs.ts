import type { Logprob } from '../../model/chat.ts';
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import type { MutableObject } from '../_shared/settings.ts';

/** `logprobsResult` token by token; undefined when it holds none. */
export function readLogprobs(value: JsonValue | undefined): readonly Logprob[] | undefined {
  if (!isObject(value) || !Array.isArray(value.chosenCandidates)) return undefined;
  const tops: readonly JsonValue[] = Array.isArray(value.topCandidates) ? value.topCandidates : [];
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

/** Tokens as a `logprobsResult`. */
export function writeLogprobs(tokens: readonly Logprob[]): JsonObject {
  return {
    chosenCandidates: tokens.map(writeToken),
    topCandidates: tokens.map((token) => ({ candidates: (token.top ?? []).map(writeToken) })),
  };
}

/** Two results of one answer, one behind the other. */
export function joinLogprobs(before: JsonValue | undefined, more: JsonValue): JsonValue {
  if (!isObject(before) || !isObject(more)) return more;
  const joined: MutableObject = { ...before, ...more };
  for (const list of ['chosenCandidates', 'topCandidates']) {
    const first = before[list];
    const second = more[list];
    if (Array.isArray(first) && Array.isArray(second)) joined[list] = [...first, ...second];
  }
  return joined;
}

function writeToken({ token, logprob }: Logprob): JsonObject {
  return { token, logProbability: logprob };
}
