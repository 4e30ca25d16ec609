/** Percentiles of groups. The database finds them in calls counted by bins of their time, because a group may have some hundreds of bins. */
import type { Database } from '../../state/database/index.ts';
import type { Row } from './read-rows.ts';
import { middleOf } from './rows.ts';
import type { Source } from './narrowing.ts';

/** Milliseconds at the 50th, 95th and 99th percentile; zeros where nothing was measured. */
export type Percentiles = readonly [number, number, number];

/** Percentiles of the durations of calls, and of the times until their first event. */
export interface TimesOfCalls {
  readonly ms: Percentiles;
  readonly firstMs: Percentiles;
}

/**
 * Returns the statement that {@link timesOf} takes the rows of. `source`: rows with `bins`, as the sums have them; `group`: expression of SQL that
 * tells groups apart.
 */
export function percentilesStatement(kind: Database['kind'], { sql, values }: Source, group: string): Source {
  // Binary JSON takes PostgreSQL twice as long: 950 ms of CPU instead of 540 for the hours of 30 days (November 2026).
  const each =
    kind === 'sqlite' ? 'json_each(source.bins) AS bin' : 'json_each_text(source.bins::json) AS bin';
  const calls = kind === 'sqlite' ? 'bin.value' : 'bin.value::bigint';
  const at = (share: number): string => `MIN(CASE WHEN seen >= ${share} * total THEN bin END)`;
  return {
    sql: `WITH source AS (${sql}),
     counted AS (
       SELECT ${group} AS name, bin.key AS bin, SUM(${calls}) AS calls FROM source CROSS JOIN ${each} GROUP BY ${group}, bin.key),
     measured AS (
       SELECT name, CASE WHEN bin LIKE 'f%' THEN 1 ELSE 0 END AS is_first, CAST(replace(bin, 'f', '') AS INTEGER) AS bin,
         CAST(calls AS DOUBLE PRECISION) AS calls FROM counted WHERE calls > 0),
     ranked AS (
       SELECT name, is_first, bin, SUM(calls) OVER (PARTITION BY name, is_first ORDER BY bin) AS seen,
         SUM(calls) OVER (PARTITION BY name, is_first) AS total FROM measured)
     SELECT name, is_first, ${at(0.5)} AS half, ${at(0.95)} AS most, ${at(0.99)} AS nearly_all FROM ranked GROUP BY name, is_first`,
    values,
  };
}

/** Returns the times of a group by its name as the rows have it. */
export function timesOf(rows: readonly Row[]): (name: string) => TimesOfCalls {
  const found = new Map<string, Percentiles>();
  for (const { name, is_first: isFirst, half, most, nearly_all: nearlyAll } of rows)
    found.set(`${Number(isFirst)} ${String(name ?? '')}`, [msOf(half), msOf(most), msOf(nearlyAll)]);
  return (name) => ({ ms: found.get(`0 ${name}`) ?? none, firstMs: found.get(`1 ${name}`) ?? none });
}

const none: Percentiles = [0, 0, 0];

function msOf(bin: unknown): number {
  return Math.round(middleOf(Number(bin)) * 10) / 10;
}
