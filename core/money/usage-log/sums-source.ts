/** Rows that are to be added up for a question. */
import type { Database } from '../../state/database/index.ts';
import type { UsageFilter } from './index.ts';
import type { Segment } from './levels.ts';
import { narrowing, type Source } from './narrowing.ts';
import { conditions } from './questions.ts';
import { summedOfRecords } from './summing.ts';
import { totalsIn } from './totals.ts';

const dimensions = 'key_id, model, channel, format, status, failed';
const amounts = ['input', 'output', 'micro_dollars'] as const;

/**
 * Returns the rows of these segments that fit a filter: sums, records that are in none yet, and records of the segments that no sums fit.
 * One statement sees all of them as they are at one time. `withBins`: with the times of calls.
 */
export function sourceOf(
  kind: Database['kind'],
  filter: UsageFilter,
  segments: readonly Segment[],
  withBins: boolean,
): Source {
  const parts: string[] = [];
  const values: (string | number)[] = [];
  const narrowed = narrowing(filter);
  const add = (sql: string, ...given: readonly (string | number)[]): void => {
    parts.push(sql);
    values.push(...given);
  };
  const ownBins = withBins ? binsOf[kind] : 'NULL';
  const summed = ['start', ...dimensions.split(', '), 'calls', ...amounts, ...(withBins ? ['bins'] : [])];
  const ofSums = segments.filter(({ level }) => level !== 'records');
  for (const { level, since, until } of ofSums) {
    if (level === 'records') continue;
    const sums = totalsIn({ level, since, until }, filter, summed);
    add(
      `SELECT start AS at, ${dimensions}, calls, ${amounts.map((name) => `COALESCE(${name}, 0) AS ${name}`).join(', ')},
         ${withBins ? 'bins' : 'NULL'} AS bins FROM (${sums.sql}) AS sums`,
      ...sums.values,
    );
  }
  const [first] = ofSums;
  const last = ofSums.at(-1);
  if (first !== undefined && last !== undefined)
    add(
      `SELECT at, ${dimensions}, 1 AS calls, ${amounts.join(', ')}, ${ownBins} AS bins FROM usage_unsummed
       WHERE at >= ? AND at < ?${narrowed.sql}`,
      first.since,
      last.until,
      ...narrowed.values,
    );
  for (const { level, since, until } of segments) {
    if (level !== 'records') continue;
    const own = conditions({ ...filter, since, until });
    add(
      `SELECT at, ${dimensions}, 1 AS calls, ${amounts.join(', ')}, ${ownBins} AS bins FROM (SELECT ${summedOfRecords} FROM usage_calls ${own.where}) AS records`,
      ...own.values,
    );
  }
  return { sql: parts.join(' UNION ALL '), values };
}

const binsOf: Readonly<Record<Database['kind'], string>> = {
  sqlite: `CASE WHEN first_bin IS NULL THEN json_object(CAST(ms_bin AS TEXT), 1) ELSE json_object(CAST(ms_bin AS TEXT), 1, 'f' || first_bin, 1) END`,
  postgres: `'{"' || ms_bin || '":1' || COALESCE(',"f' || first_bin || '":1', '') || '}'`,
};
