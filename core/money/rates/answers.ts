/** Requests to the shared store that counts calls, and its responses. */
import type { RateCorrection, RateRule, RatesAnswer, SlotRule } from './index.ts';

/** Part of a time of the store's for which something is used here: clocks do not run equally fast. */
export const clockMargin = 0.98;

/** An answer of the store, with the processes for which something was counted ahead when it had no room. */
export interface StoreAnswer extends RatesAnswer {
  readonly holders: readonly string[];
}

/** Reads what the script of a call returns. */
export function answerIn(
  reply: readonly unknown[],
  id: number,
  rules: readonly RateRule[],
  slots: readonly SlotRule[],
): StoreAnswer {
  const numbers = reply.slice(0, 4 + 3 * rules.length + slots.length).map(Number);
  const [refused = 0, retryMs = 0, slice = 0, sliceMs = 0, ...rest] = numbers;
  const states = rules.map(({ subject, limit }, index) => {
    const [total = 0, resetMs = 0, ahead = 0] = rest.slice(3 * index);
    return {
      subject,
      limit,
      remaining: Math.max(0, limit - total),
      resetMs,
      ...(ahead === 0 ? {} : { ahead }),
    };
  });
  const exceeded = [...rules, ...slots][refused - 1]?.subject;
  const allowed = exceeded === undefined;
  return {
    id,
    verdict: { allowed, states, retryMs, ...(allowed ? {} : { exceeded }) },
    slice,
    sliceMs: clockMargin * sliceMs,
    slots: allowed ? slots.map(({ subject }) => subject) : [],
    slotsAhead: allowed ? rest.slice(3 * rules.length) : [],
    holders: reply.slice(numbers.length).map(String),
  };
}

/** Returns limit, cost and what is wanted ahead of each minute and each set of slots, as the script takes them: in whole numbers. */
export function limitValues(rules: readonly RateRule[], slots: readonly SlotRule[]): readonly string[] {
  const minutes = rules.map(({ limit, cost, ahead = 0 }) => [
    limit,
    Math.ceil(Math.min(cost, limit)),
    Math.floor(ahead),
  ]);
  return [...minutes, ...slots.map(({ limit, ahead = 0 }) => [limit, 1, ahead])].flat().map(String);
}

/** Returns what takes back all that was counted for a call and ahead. */
export function correctionsOf(
  { verdict, slice }: StoreAnswer,
  rules: readonly RateRule[],
): readonly RateCorrection[] {
  return verdict.states.map(({ subject, ahead = 0 }, index) => {
    const { cost = 0, limit = 0 } = rules[index] ?? {};
    return { subject, slice, difference: -Math.ceil(Math.min(cost, limit)) - ahead };
  });
}

/** Names of the slots of a call: its own, and those that were taken ahead. */
export function namesOf(call: string, ahead = 0): readonly string[] {
  return Array.from({ length: 1 + ahead }, (_, index) => `${call}:${index}`);
}
