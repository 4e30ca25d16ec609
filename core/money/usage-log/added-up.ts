/** Adds up sums by the numbers of their keys or subjects and of their names: there are fewer of these, and texts take longer. */
import type { Database } from '../../state/database/index.ts';
import type { Fold } from './folds.ts';
import { minute, type Segment } from './levels.ts';
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

/**
 * Returns rows with `at`, `calls` and amounts, and `names`. By keys or subjects, there is one row for each of these, with `key` or `subject`, and
 * `failed_calls` and `refused_calls` in the place of names.
 */
export function addedUp(
  kind: Database['kind'],
  { table, segments, ofTable, ofNames, bucket, byId }: AddingUp,
): Source {
  const id = table === 'usage_totals' ? 'key' : 'subject';
  const values: (string | number)[] = [];
  const each = segments.map(({ level, since, until }) => {
    values.push(minutesOf(since), minutesOf(until), ...ofTable.values, ...ofNames.values);
    // As the index by keys has it.
    const hasKeys = table === 'usage_totals' && Number(level) >= 5;
    return `SELECT t.start, t.${id}, t.names, t.calls, ${addedAmounts.map((name) => `t.${name}`).join(', ')} FROM ${table} t
      WHERE t.level = ${level}${hasKeys ? ' AND t.level >= 5' : ''} AND t.start >= ? AND t.start < ?${ofTable.sql}
        ${ofNames.sql === '' ? '' : `AND t.names IN (SELECT n.id FROM usage_names n WHERE 1 = 1${ofNames.sql})`}`;
  });
  const sum = sumIn(kind);
  const added = ['calls', ...addedAmounts].map((name) => `${sum(name)} AS ${name}`).join(', ');
  if (byId) {
    // Few calls fail: whether one was refused is looked up for these alone.
    const among = (refused: string, failed: string): string =>
      sum(
        `CASE WHEN ${isOf('failed = 1')} THEN CASE WHEN ${isOf(isRefused())} THEN ${refused} ELSE ${failed} END ELSE 0 END`,
      );
    return {
      sql: `SELECT 0 AS at, ${id}, ${added}, ${among('0', 'calls')} AS failed_calls, ${among('calls', '0')} AS refused_calls
        FROM (${each.join(' UNION ALL ')}) AS added GROUP BY ${id}`,
      values,
    };
  }
  const groups = [...(bucket === undefined ? [] : ['1']), 'names'].join(', ');
  const at =
    bucket === undefined
      ? '0'
      : `CAST(start AS BIGINT) * ${minute} - CAST(start AS BIGINT) * ${minute} % ${bucket}`;
  return {
    sql: `SELECT ${at} AS at, names, ${added}
        FROM (${each.join(' UNION ALL ')}) AS added GROUP BY ${groups}`,
    values,
  };
}
