import type { Amounts } from '../../model/usage-record.ts';
import type { HeldBudget } from '../../sdk/budget.ts';
import { counted, holderOf, periods, periodStart, reservedAt } from './periods.ts';
import { bucketOf, isEndUser, labelOf, spanOf, type Bucket, type HolderSeries } from './windows.ts';
import type { Span } from '../../model/time-zones.ts';
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

/** SQL for the values of {@link windowsAt}. `asked` is a table of windows: `holder`, `series`, `label` and `since`. */
export type WindowNames = Readonly<Record<'asked' | 'now', string>>;

/**
 * What holders have spent and reserved in windows: rows as those of {@link standingAt}. One statement, as there. What was given back more than
 * was charged in a bucket, which was charged before the series began, makes no room.
 */
export function windowsAt({ table, holder }: ClaimTable, { asked, now }: WindowNames): string {
  const atLeastNone = (column: string): string =>
    `SUM(CASE WHEN s.${column} > 0 THEN s.${column} ELSE 0 END)`;
  return `WITH asked AS (${asked})
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

/** One row to add to what is spent. */
export type ChargeRow = readonly [
  holder: string,
  period: string,
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
    days.addAll([keyId, owners, series], at, sign * microDollars, sign * tokens);
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

const noOwners: readonly string[] = [];
const noSeries: readonly HolderSeries[] = [];

type Sum = { microDollars: number; tokens: number };

/** A key, the owners of it and the series that are charged for a call. Calls of one key have the same lists. */
type ChargedTo = readonly [keyId: string, owners: readonly string[], series: readonly HolderSeries[]];

/** Sums by key or owner, and day, of which those of longer periods are made in the end: a batch has many calls and few days. */
class Days {
  /** Sums of the latest call: most calls of a batch have the same holders. */
  #latest: { readonly holders: ChargedTo; readonly span: Span; readonly sums: readonly Sum[] } | undefined;
  readonly #byHolder = new Map<string, Map<number, Sum>>();
  /** By holder, and by series. */
  readonly #series = new Map<string, Map<string, Map<number, Sum>>>();
  #day = 0;

  /** Adds what a call is charged to all that it is charged to. */
  addAll(holders: ChargedTo, at: number, microDollars: number, tokens: number): void {
    let latest = this.#latest;
    const isSame =
      latest !== undefined &&
      holders.every((one, index) => one === latest?.holders[index]) &&
      at >= latest.span.start &&
      at < latest.span.end;
    if (latest === undefined || !isSame) latest = this.#latest = this.#find(holders, at);
    for (const sum of latest.sums) {
      sum.microDollars += microDollars;
      sum.tokens += tokens;
    }
  }

  /** Returns the sums that a call at this time is added to, and the time in which others are added to the same. */
  #find(holders: ChargedTo, at: number) {
    const [keyId, owners, series] = holders;
    const day = this.#dayOf(at);
    let [start, end] = [day, day + dayLength];
    const sums = [keyId, ...owners].flatMap((holder) => (isEndUser(holder) ? [] : this.#sumOf(holder, day)));
    for (const one of series) {
      const bucket = bucketOf(one.series, at);
      [start, end] = [Math.max(start, bucket.start), Math.min(end, bucket.end)];
      sums.push(this.#sumIn(one, bucket.start));
    }
    return { holders, span: { start, end }, sums };
  }

  #dayOf(at: number): number {
    if (at < this.#day || at >= this.#day + dayLength) this.#day = periodStart('day', at);
    return this.#day;
  }

  #sumOf(holder: string, day: number): Sum {
    let days = this.#byHolder.get(holder);
    if (days === undefined) this.#byHolder.set(holder, (days = new Map()));
    return sumAt(days, day);
  }

  #sumIn({ holder, series }: HolderSeries, start: number): Sum {
    let all = this.#series.get(holder);
    if (all === undefined) this.#series.set(holder, (all = new Map()));
    let buckets = all.get(series);
    if (buckets === undefined) all.set(series, (buckets = new Map()));
    return sumAt(buckets, start);
  }

  rows(): readonly ChargeRow[] {
    const holders = new Set([...this.#byHolder.keys(), ...this.#series.keys()]);
    return [...holders].toSorted().flatMap((holder) => [...this.#daysOf(holder), ...this.#seriesOf(holder)]);
  }

  #daysOf(holder: string): readonly ChargeRow[] {
    const days = this.#byHolder.get(holder);
    if (days === undefined) return [];
    return periods.flatMap((period) => {
      const sums = new Map<number, Sum>();
      for (const [day, { microDollars, tokens }] of days)
        addTo(sums, periodStart(period, day), microDollars, tokens);
      return rowsOf(holder, period, sums);
    });
  }

  #seriesOf(holder: string): readonly ChargeRow[] {
    const all = [...(this.#series.get(holder) ?? [])].toSorted(([one], [other]) => (one < other ? -1 : 1));
    return all.flatMap(([series, sums]) => rowsOf(holder, series, sums));
  }
}

/** Returns the sum at a time, which begins with nothing. */
function sumAt(sums: Map<number, Sum>, since: number): Sum {
  let total = sums.get(since);
  if (total === undefined) sums.set(since, (total = { microDollars: 0, tokens: 0 }));
  return total;
}

function addTo(sums: Map<number, Sum>, since: number, microDollars: number, tokens: number): void {
  const total = sumAt(sums, since);
  total.microDollars += microDollars;
  total.tokens += tokens;
}

/** Rows of one period, the oldest first. */
function rowsOf(holder: string, period: string, sums: ReadonlyMap<number, Sum>): readonly ChargeRow[] {
  return [...sums]
    .toSorted(([one], [other]) => one - other)
    .map(([since, { microDollars, tokens }]) => [holder, period, since, microDollars, tokens] as const);
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
