/** Adds up sums by the numbers of their keys or subjects and of their names: there are fewer of these, and texts take longer. */
import type { Database } from '../../state/database/index.ts';
import { folds, type Fold } from './folds.ts';
import { day, levels, minute, type Segment } from './levels.ts';
import { isRefused, type Source } from './narrowing.ts';
import { minutesOf } from './totals.ts';

/** Amounts that questions add up beside calls. Records that wait to be added have no `charged_more`: it waits in a table of its own. */
export const addedAmounts = ['input', 'output', 'micro_dollars', 'charged_more'] as const;

/** The same amounts as columns of a table without `charged_more`. */
export const uncharged = 'input, output, micro_dollars, 0 AS charged_more';

/** Calls and amounts as columns of the charges that wait to be added: the calls themselves are counted elsewhere. */
export const chargeAlone = '0 AS calls, 0 AS input, 0 AS output, 0 AS micro_dollars, charged_more';

/** Sums to be added up. Each condition begins with AND. */
export interface AddingUp {
  readonly table: Fold['table'];
  readonly segments: readonly Segment[];
  /** Conditions of the table, as `t`. */
  readonly ofTable: Source;
  /** Conditions of `usage_names`, as `n`. */
  readonly ofNames: Source;
  /** Width of buckets of time, in milliseconds. */
  readonly bucket: number | undefined;
  /** True: by keys or subjects instead of names and times. */
  readonly byId: boolean;
  /** SELECT of the keys or subjects that are added up; absent for all. */
  readonly among?: Source;
}

/**
 * Returns the function that writes the SQL of a sum. It is a floating-point number, because what providers say may be wrong and come to more than a
 * whole number holds.
 */
export function sumIn(kind: Database['kind']): (value: string) => string {
  // PostgreSQL would add up as `numeric`, which takes several times as long.
  return (value) => (kind === 'sqlite' ? `TOTAL(${value})` : `SUM(CAST(${value} AS DOUBLE PRECISION))`);
}

/** Columns of rows that have a failure and names: how many of their calls failed, and how many were refused. `calls`: how many a row has. */
export function outcomesOf(calls: string): string {
  return `CASE WHEN failed = 1 AND NOT ${isRefused()} THEN ${calls} ELSE 0 END AS failed_calls,
  CASE WHEN ${isRefused()} THEN ${calls} ELSE 0 END AS refused_calls`;
}

const isOf = (condition: string): string => `names IN (SELECT id FROM usage_names WHERE ${condition})`;

/** Returns the rows of sums that are added up. `columns`: those of the table, as `t`. */
export function rowsToAdd(
  kind: Database['kind'],
  { table, segments, ofTable, ofNames, among }: Omit<AddingUp, 'bucket' | 'byId'>,
  columns: string,
): Source {
  const id = idOf(table);
  const parts = (among === undefined ? segments : segments.flatMap(splitAfterTomorrow)).map(
    ({ level, since, until }): Source => {
      // As the index by keys has it.
      const hasKeys = table === 'usage_totals' && Number(level) >= 5;
      const isListed = among !== undefined || latestFolds.has(level);
      const times = isListed ? listedStarts(level, since, until) : rangeOfStarts(since, until);
      return {
        sql: `SELECT ${columns} FROM ${table} t
      WHERE t.level = ${level}${hasKeys ? ' AND t.level >= 5' : ''} AND ${times.sql}${among === undefined ? '' : ` AND t.${id} ${isAmong(kind, among.sql)}`}${ofTable.sql}
        ${ofNames.sql === '' ? '' : `AND ${namesOf[kind]} IN (SELECT n.id FROM usage_names n WHERE 1 = 1${ofNames.sql})`}`,
        values: [...times.values, ...(among?.values ?? []), ...ofTable.values, ...ofNames.values],
      };
    },
  );
  return {
    sql: parts.map(({ sql }) => sql).join(' UNION ALL '),
    values: parts.flatMap(({ values }) => values),
  };
}

/**
 * Columns of the rows that {@link addedUp} adds up, those that it uses alone and in the order in which it mentions them: PostgreSQL passes each
 * row through one more step otherwise, which takes a tenth of the time.
 */
function columnsOf({ table, bucket, byId }: Pick<AddingUp, 'table' | 'bucket' | 'byId'>): string {
  const added = ['calls', ...addedAmounts];
  const start = bucket === undefined ? [] : ['start'];
  const columns = byId ? [idOf(table), ...added, 'names'] : [...start, 'names', ...added];
  return columns.map((name) => `t.${name}`).join(', ');
}

function idOf(table: Fold['table']): 'key' | 'subject' {
  return table === 'usage_totals' ? 'key' : 'subject';
}

/** Number of the names of a row. PostgreSQL would go through all sums of a time once for each of some names, because their index has names, too. */
const namesOf: Readonly<Record<Database['kind'], string>> = { sqlite: 't.names', postgres: '(t.names + 0)' };

/** PostgreSQL looks up an array by the index, and might read all rows to join them with a SELECT. */
function isAmong(kind: Database['kind'], select: string): string {
  return kind === 'sqlite' ? `IN (${select})` : `= ANY(ARRAY(${select}))`;
}

/** Folds that overlap: yesterday's is kept for a day beside today's, so that a range of starts would match both. */
const latestFolds: ReadonlySet<Segment['level']> = new Set(
  folds.filter(({ isOfLatest }) => isOfLatest).map(({ level }) => level),
);

function rangeOfStarts(since: number, until: number): Source {
  return { sql: 't.start >= ? AND t.start < ?', values: [minutesOf(since), minutesOf(until)] };
}

/** Splits a stretch without an end at the end of tomorrow, because the times of a stretch that ends can be looked up one by one. Hardly any sum is later. */
function splitAfterTomorrow({ level, since, until }: Segment): readonly Segment[] {
  const end = (Math.floor(Date.now() / day) + 2) * day;
  if (until <= end || since >= end) return [{ level, since, until }];
  return [
    { level, since, until: end },
    { level, since: end, until },
  ];
}

/** Maximum number of times that are looked up one by one. */
const mostStarts = 100;

/** As {@link rangeOfStarts}. Of few times each is looked up by itself, because a range of them would read all keys. */
function listedStarts(level: Segment['level'], since: number, until: number): Source {
  const size = [...levels, ...folds].find((one) => one.level === level)?.size;
  if (size === undefined || (until - since) / size > mostStarts) return rangeOfStarts(since, until);
  const starts: number[] = [];
  for (let start = since; start < until; start += size) starts.push(minutesOf(start));
  return { sql: `t.start IN (${starts.join()})`, values: [] };
}

/**
 * Returns rows with `at`, `calls` and amounts, and `names`. By keys or subjects, there is one row for each of these, with `key` or `subject`, and
 * `failed_calls` and `refused_calls` in the place of names.
 */
export function addedUp(kind: Database['kind'], wanted: AddingUp): Source {
  const { table, bucket, byId } = wanted;
  const each = rowsToAdd(kind, wanted, columnsOf(wanted));
  const sum = sumIn(kind);
  const added = ['calls', ...addedAmounts].map((name) => `${sum(name)} AS ${name}`).join(', ');
  if (byId) {
    const id = idOf(table);
    // Few calls fail: the others are not added up a second time.
    const those = (condition: string): string => `${sum('calls')} FILTER (WHERE ${isOf(condition)})`;
    return {
      sql: `SELECT 0 AS at, ${id}, ${added}, ${those(`failed = 1 AND NOT ${isRefused()}`)} AS failed_calls, ${those(isRefused())} AS refused_calls
        FROM (${each.sql}) AS added GROUP BY ${id}`,
      values: each.values,
    };
  }
  const groups = [...(bucket === undefined ? [] : ['1']), 'names'].join(', ');
  const at =
    bucket === undefined
      ? '0'
      : `CAST(start AS BIGINT) * ${minute} - CAST(start AS BIGINT) * ${minute} % ${bucket}`;
  return {
    sql: `SELECT ${at} AS at, names, ${added}
        FROM (${each.sql}) AS added GROUP BY ${groups}`,
    values: each.values,
  };
}
