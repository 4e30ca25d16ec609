/** SQL statements of budgets and reservations that SQLite and PostgreSQL share, and the conversion of their rows and of settlements. */
import type { Amounts } from '../../model/usage-record.ts';
import type { HeldBudget } from '../../sdk/budget.ts';
import { ChargeSums, type ChargeRow } from './charge-sums.ts';
import { counted, holderOf, periods, reservedAt } from './periods.ts';
import { labelOf, spanOf, type Bucket, type HolderSeries } from './windows.ts';
import { none, sum } from './amounts.ts';
import type { AllotmentDraw, BudgetState, Settlement } from './index.ts';

/** A table of reservations, and its column with the holder of the budgets. */
export interface ReservationTable {
  readonly table: string;
  readonly holder: string;
}

/** Reservations on the budgets of keys. */
export const keyClaims: ReservationTable = { table: 'ledger_reservations', holder: 'key_id' };

/** Reservations on the budgets of owners of keys. They have the ids of the reservations of the keys. */
export const ownerClaims: ReservationTable = { table: 'ledger_owner_reservations', holder: 'owner' };

/** SQL for the ids of allotments that were recalled by any process. */
export const recalled = [keyClaims, ownerClaims]
  .map(({ table }) => `SELECT id FROM ${table} WHERE allotment = 2`)
  .join(' UNION ');

/** SQL for the values of a statement. `holders` begins with the comparison, as in `= $1`. Reservations that expire after `now` count. */
export type StandingNames = Readonly<Record<'holders' | 'day' | 'month' | 'now', string>>;

/** SQL for spent and reserved amounts of holders since the starts of the day and the month. One statement, so that no settlement is half counted. */
export function standingAt(
  { table, holder }: ReservationTable,
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

/** SQL for the values of {@link windowsAt}. `requested` is a table of windows: `holder`, `series`, `label` and `since`. */
export type WindowNames = Readonly<Record<'requested' | 'now', string>>;

/**
 * SQL for the spent and reserved amounts of holders in windows: rows as those of {@link standingAt}. A bucket with more refunds than charges
 * counts as zero, because those refunds are for charges before the series began.
 */
export function windowsAt({ table, holder }: ReservationTable, { requested, now }: WindowNames): string {
  const atLeastNone = (column: string): string =>
    `SUM(CASE WHEN s.${column} > 0 THEN s.${column} ELSE 0 END)`;
  return `WITH asked AS (${requested})
    SELECT 'spent' AS what, asked.label AS period, asked.holder AS holder, ${atLeastNone('micro_dollars')} AS micro_dollars,
      ${atLeastNone('tokens')} AS tokens, 0 AS free_micro_dollars, 0 AS free_tokens
    FROM asked JOIN ledger_spent AS s ON s.key_id = asked.holder AND s.period = asked.series AND s.since >= asked.since
    GROUP BY asked.label, asked.holder
    UNION ALL
    SELECT 'reserved', asked.label, asked.holder, SUM(c.micro_dollars), SUM(c.tokens), SUM(c.free_micro_dollars), SUM(c.free_tokens)
    FROM asked JOIN ${table} AS c ON c.${holder} = asked.holder AND c.expires > ${now} AND c.made >= asked.since
    GROUP BY asked.label, asked.holder`;
}

/** SQL for what a holder spent in each bucket of a series from a moment on, oldest first. */
export function bucketsAt(holder: string, series: string, since: string): string {
  return `SELECT since, micro_dollars, tokens FROM ledger_spent
    WHERE key_id = ${holder} AND period = ${series} AND since >= ${since} ORDER BY since`;
}

/** Returns rows of {@link bucketsAt} in the unit of a budget. */
export function bucketsOf(
  { unit }: Pick<HeldBudget, 'unit'>,
  rows: readonly StandingRow[],
): readonly Bucket[] {
  return rows.map((row) => ({
    since: Number(row['since']),
    spent: Number(row[unit === 'token' ? 'tokens' : 'micro_dollars']),
  }));
}

/** One row of {@link standingAt}. */
export type StandingRow = Readonly<Record<string, unknown>>;

/** Returns the states of budgets of a key and its owners, from the rows of {@link standingAt}. */
export function statesOf(
  keyId: string,
  budgets: readonly HeldBudget[],
  rows: readonly StandingRow[],
  now: number,
): readonly BudgetState[] {
  const found = (what: string, budget: HeldBudget, prefix = ''): number => {
    const { unit } = budget;
    const period = labelOf(budget);
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
    const { start, end } = spanOf(budget, now);
    return {
      ...budget,
      since: start,
      ...(Number.isFinite(end) ? { until: end } : {}),
      spent: found('spent', budget),
      reserved: found('reserved', budget) - ahead,
      ahead,
    };
  });
}

const noOwners: readonly string[] = [];
const noSeries: readonly HolderSeries[] = [];

/**
 * Returns the amounts that settlements add to the sums of spending, each row once and all in one order, so that processes that settle at the
 * same time do not deadlock. `fresh` are the ids of records that were not there before: the others were charged already.
 */
export function chargesOf(
  settlements: readonly Settlement[],
  fresh: ReadonlySet<string>,
  now: number,
): readonly ChargeRow[] {
  const uncharged = new Set(fresh);
  const sums = new ChargeSums();
  for (const one of settlements) {
    const {
      keyId,
      owners = noOwners,
      series = noSeries,
      reservation,
      allotment,
      charged,
      record,
      refundOf,
    } = one;
    if (!uncharged.delete(record.id) || keyId === undefined) continue;
    const { microDollars, tokens } = checked(charged);
    if (microDollars === 0 && tokens === 0) continue;
    const at = refundOf ?? reservedAt(reservation ?? allotment?.id ?? '') ?? now;
    const sign = refundOf === undefined ? 1 : -1;
    sums.add([keyId, owners, series], at, sign * microDollars, sign * tokens);
  }
  return sums.rows();
}

/** Returns the amounts that settlements take off each allotment, with its free part after the last of them. `fresh`: as in {@link chargesOf}. */
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

function isAmount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

/** Returns amounts that can be summed exactly. Throws RangeError for others. */
export function checked(amounts: Amounts): Amounts {
  const { microDollars, tokens } = amounts;
  if (!isAmount(microDollars) || !isAmount(tokens))
    throw new RangeError(
      `An amount must be a whole number from 0 on, but one is ${microDollars} micro-dollars, ${tokens} tokens.`,
    );
  return amounts;
}
