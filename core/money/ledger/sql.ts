import type { Amounts } from '../../model/usage-record.ts';
import type { Budget, HeldBudget } from '../../sdk/budget.ts';
import { counted, holderOf, periods, periodStart, reservedAt } from './periods.ts';
import { none, sum } from './amounts.ts';
import type { AllotmentDraw, BudgetState, Settlement } from './index.ts';

/** A table of claims, and its column with the holder of the budgets. */
export interface ClaimTable {
  readonly table: string;
  readonly holder: string;
}

/** Claims on the budgets of keys. */
export const keyClaims: ClaimTable = { table: 'ledger_reservations', holder: 'key_id' };

/** Claims on the budgets of owners of keys, beside those of the keys that have the same ids. */
export const ownerClaims: ClaimTable = { table: 'ledger_owner_reservations', holder: 'owner' };

/** The ids of allotments that were recalled, by whomever. */
export const recalled = [keyClaims, ownerClaims]
  .map(({ table }) => `SELECT id FROM ${table} WHERE allotment = 2`)
  .join(' UNION ');

/** SQL for the values of a statement. `holders` begins with the comparison, as in `= $1`. Claims that expire after `now` count. */
export type StandingNames = Readonly<Record<'holders' | 'day' | 'month' | 'now', string>>;

/** What holders have spent and reserved since the starts of the day and the month. One statement, so that no settlement is seen by half. */
export function standingAt(
  { table, holder }: ClaimTable,
  { holders, day, month, now }: StandingNames,
): string {
  return [
    ...[day, month, '0'].map(
      (since, index) =>
        `SELECT 'spent' AS what, '${periods[index]}' AS period, key_id AS holder, micro_dollars, tokens, 0 AS free_micro_dollars, 0 AS free_tokens
         FROM ledger_spent WHERE key_id ${holders} AND period = '${periods[index]}' AND since = ${since}`,
    ),
    ...[`AND day = ${day}`, `AND month = ${month}`, ''].map(
      (narrowed, index) =>
        `SELECT 'reserved' AS what, '${periods[index]}' AS period, ${holder} AS holder, SUM(micro_dollars) AS micro_dollars, SUM(tokens) AS tokens,
           SUM(free_micro_dollars) AS free_micro_dollars, SUM(free_tokens) AS free_tokens FROM ${table}
         WHERE ${holder} ${holders} AND expires > ${now} ${narrowed} GROUP BY ${holder}`,
    ),
  ].join(' UNION ALL ');
}

/** Milliseconds of a day of UTC: it knows no other days. */
const dayLength = 86_400_000;

/** One row of {@link standingAt}. */
export type StandingRow = Readonly<Record<string, unknown>>;

/** How budgets of a key and its owners stand, from the rows of {@link standingAt}. */
export function statesOf(
  keyId: string,
  budgets: readonly HeldBudget[],
  rows: readonly StandingRow[],
  now: number,
): readonly BudgetState[] {
  const found = (what: string, budget: HeldBudget, prefix = ''): number => {
    const { unit, period } = budget;
    const holder = holderOf(budget, keyId);
    const row = rows.find(
      (one) => one['what'] === what && one['period'] === period && one['holder'] === holder,
    );
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
  holder: string,
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
  for (const { keyId, owners = [], reservation, allotment, charged, record, refundOf } of settlements) {
    if (!uncharged.delete(record.id) || keyId === undefined) continue;
    const { microDollars, tokens } = checked(charged);
    if (microDollars === 0 && tokens === 0) continue;
    const at = refundOf ?? reservedAt(reservation ?? allotment?.id ?? '') ?? now;
    const sign = refundOf === undefined ? 1 : -1;
    for (const holder of [keyId, ...owners]) days.add(holder, at, sign * microDollars, sign * tokens);
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

/** Sums by key or owner, and day, of which those of longer periods are made in the end: a batch has many calls and few days. */
class Days {
  readonly #byHolder = new Map<string, Map<number, { microDollars: number; tokens: number }>>();
  #day = 0;

  add(holder: string, at: number, microDollars: number, tokens: number): void {
    if (at < this.#day || at >= this.#day + dayLength) this.#day = periodStart('day', at);
    let days = this.#byHolder.get(holder);
    if (days === undefined) this.#byHolder.set(holder, (days = new Map()));
    const total = days.get(this.#day);
    if (total === undefined) days.set(this.#day, { microDollars, tokens });
    else {
      total.microDollars += microDollars;
      total.tokens += tokens;
    }
  }

  rows(): readonly ChargeRow[] {
    const rows: ChargeRow[] = [];
    for (const holder of [...this.#byHolder.keys()].toSorted()) {
      for (const period of periods) {
        const sums = new Map<number, ChargeRow>();
        for (const [day, { microDollars, tokens }] of this.#byHolder.get(holder) ?? []) {
          const since = periodStart(period, day);
          const [, , , dollars = 0, before = 0] = sums.get(since) ?? [];
          sums.set(since, [holder, period, since, dollars + microDollars, before + tokens]);
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
