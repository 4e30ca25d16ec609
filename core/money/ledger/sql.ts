import type { Amounts } from '../../model/usage-record.ts';
import type { Budget } from '../../sdk/api-key.ts';
import { counted, periods, periodStart, reservedAt } from './periods.ts';
import { none, sum } from './amounts.ts';
import type { AllotmentDraw, BudgetState, Settlement } from './index.ts';

/** How a statement says where a value goes; `now`, the time by which claims have run out, may be SQL. */
export type StandingNames = Readonly<Record<'key' | 'day' | 'month' | 'now', string>>;

/** What is spent and reserved since the starts of the day and the month. One statement, so that no settlement is seen by half. */
export function standingAt({ key, day, month, now }: StandingNames): string {
  return [
    ...[day, month, '0'].map(
      (since, index) =>
        `SELECT 'spent' AS what, '${periods[index]}' AS period, micro_dollars, tokens, 0 AS free_micro_dollars, 0 AS free_tokens
         FROM ledger_spent WHERE key_id = ${key} AND period = '${periods[index]}' AND since = ${since}`,
    ),
    ...[`AND day = ${day}`, `AND month = ${month}`, ''].map(
      (narrowed, index) =>
        `SELECT 'reserved' AS what, '${periods[index]}' AS period, COALESCE(SUM(micro_dollars), 0) AS micro_dollars, COALESCE(SUM(tokens), 0) AS tokens,
           COALESCE(SUM(free_micro_dollars), 0) AS free_micro_dollars, COALESCE(SUM(free_tokens), 0) AS free_tokens FROM ledger_reservations WHERE key_id = ${key} AND expires > ${now} ${narrowed}`,
    ),
  ].join(' UNION ALL ');
}

/** Milliseconds of a day of UTC: it knows no other days. */
const dayLength = 86_400_000;

/** One row of {@link standingAt}. */
export type StandingRow = Readonly<Record<string, unknown>>;

/** How budgets stand, from the rows of {@link standingAt}. */
export function statesOf(
  budgets: readonly Budget[],
  rows: readonly StandingRow[],
  now: number,
): readonly BudgetState[] {
  const found = (what: string, { unit, period }: Budget, prefix = ''): number => {
    const row = rows.find((one) => one['what'] === what && one['period'] === period);
    if (row === undefined) return 0;
    // Postgres gives sums as text.
    const [microDollars, tokens] = [Number(row[`${prefix}micro_dollars`]), Number(row[`${prefix}tokens`])];
    return counted(unit, { microDollars, tokens });
  };
  return budgets.map((budget) => {
    const ahead = found('reserved', budget, 'free_');
    return {
      ...budget,
      since: periodStart(budget.period, now),
      spent: found('spent', budget),
      reserved: found('reserved', budget) - ahead,
      ahead,
    };
  });
}

/** One row to add to what is spent. */
export type ChargeRow = readonly [
  keyId: string,
  period: Budget['period'],
  since: number,
  microDollars: number,
  tokens: number,
];

/**
 * What settlements add to what is spent, each row once and all in one order, so that processes that settle at the same time wait for each
 * other and never both. `fresh` are the ids of records that were not there before: the others were charged already.
 */
export function chargesOf(
  settlements: readonly Settlement[],
  fresh: ReadonlySet<string>,
  now: number,
): readonly ChargeRow[] {
  const uncharged = new Set(fresh);
  const days = new Days();
  for (const { keyId, reservation, allotment, charged, record, refundOf } of settlements) {
    if (!uncharged.delete(record.id) || keyId === undefined) continue;
    const { microDollars, tokens } = checked(charged);
    if (microDollars === 0 && tokens === 0) continue;
    const at = refundOf ?? reservedAt(reservation ?? allotment?.id ?? '') ?? now;
    const sign = refundOf === undefined ? 1 : -1;
    days.add(keyId, at, sign * microDollars, sign * tokens);
  }
  return days.rows();
}

/** What settlements take off each allotment, and what is free of it after the last of them. `fresh`: as in {@link chargesOf}. */
export function drawsOf(
  settlements: readonly Settlement[],
  fresh: ReadonlySet<string>,
): readonly AllotmentDraw[] {
  const undrawn = new Set(fresh);
  const draws = new Map<string, AllotmentDraw>();
  for (const { allotment, record } of settlements) {
    if (!undrawn.delete(record.id) || allotment === undefined) continue;
    const { id, amounts, free } = allotment;
    draws.set(id, { id, amounts: sum(draws.get(id)?.amounts ?? none, amounts), free });
  }
  return [...draws.values()];
}

/** Sums by key and day, of which those of longer periods are made in the end: a batch has many calls and few days. */
class Days {
  readonly #byKey = new Map<string, Map<number, { microDollars: number; tokens: number }>>();
  #day = 0;

  add(keyId: string, at: number, microDollars: number, tokens: number): void {
    if (at < this.#day || at >= this.#day + dayLength) this.#day = periodStart('day', at);
    let days = this.#byKey.get(keyId);
    if (days === undefined) this.#byKey.set(keyId, (days = new Map()));
    const total = days.get(this.#day);
    if (total === undefined) days.set(this.#day, { microDollars, tokens });
    else {
      total.microDollars += microDollars;
      total.tokens += tokens;
    }
  }

  rows(): readonly ChargeRow[] {
    const rows: ChargeRow[] = [];
    for (const keyId of [...this.#byKey.keys()].toSorted()) {
      for (const period of periods) {
        const sums = new Map<number, ChargeRow>();
        for (const [day, { microDollars, tokens }] of this.#byKey.get(keyId) ?? []) {
          const since = periodStart(period, day);
          const [, , , dollars = 0, before = 0] = sums.get(since) ?? [];
          sums.set(since, [keyId, period, since, dollars + microDollars, before + tokens]);
        }
        rows.push(...[...sums.values()].toSorted(([, , a], [, , b]) => a - b));
      }
    }
    return rows;
  }
}

function isAmount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

/** Amounts that can be summed exactly. Throws for others: a bug of whoever made them. */
export function checked(amounts: Amounts): Amounts {
  const { microDollars, tokens } = amounts;
  if (!isAmount(microDollars) || !isAmount(tokens))
    throw new RangeError(
      `An amount must be a whole number from 0 on, but one is ${microDollars} micro-dollars, ${tokens} tokens.`,
    );
  return amounts;
}
