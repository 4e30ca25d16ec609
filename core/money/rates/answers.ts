/** What the shared store answers when a call is counted. */
import type { RateRule, RatesAnswer, SlotRule } from './index.ts';

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
