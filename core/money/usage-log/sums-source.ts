import type { Database } from '../../state/database/index.ts';
import type { UsageFilter } from './index.ts';
import { levels, type Segment } from './levels.ts';
import { conditions } from './questions.ts';
import { summedOfRecords } from './summing.ts';

/** A SELECT of rows that are to be added up, with what stands for its question marks. */
export interface Source {
  readonly sql: string;
  readonly values: readonly (string | number)[];
}

const dimensions = 'key_id, model, channel, format, status, failed';
const amounts = 'input, output, micro_dollars';

const equal = {
  keyId: 'key_id',
  model: 'model',
  channel: 'channel',
  format: 'format',
  operation: 'operation',
  status: 'status',
} as const;

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
  const ofSums = segments.filter(({ level }) => level !== 'records');
  for (const { level, since, until } of ofSums) {
    // The index by keys is for these levels alone, and SQLite wants to be told so in its own words.
    const hasKeys = levels.some((one) => one.level === level && one.hasKeys);
    add(
      `SELECT start AS at, ${dimensions}, calls, ${amounts}, ${withBins ? 'bins' : 'NULL'} AS bins FROM usage_sums
       WHERE level = ${level}${hasKeys ? ' AND level >= 5' : ''} AND start >= ? AND start < ?${narrowed.sql}`,
      since,
      until,
      ...narrowed.values,
    );
  }
  const [first] = ofSums;
  const last = ofSums.at(-1);
  if (first !== undefined && last !== undefined)
    add(
      `SELECT at, ${dimensions}, 1 AS calls, ${amounts}, ${ownBins} AS bins FROM usage_unsummed
       WHERE at >= ? AND at < ?${narrowed.sql}`,
      first.since,
      last.until,
      ...narrowed.values,
    );
  for (const { level, since, until } of segments) {
    if (level !== 'records') continue;
    const own = conditions({ ...filter, since, until });
    add(
      `SELECT at, ${dimensions}, 1 AS calls, ${amounts}, ${ownBins} AS bins FROM (SELECT ${summedOfRecords} FROM usage_records ${own.where}) AS records`,
      ...own.values,
    );
  }
  return { sql: parts.join(' UNION ALL '), values };
}

const binsOf: Readonly<Record<Database['kind'], string>> = {
  sqlite: `CASE WHEN first_bin IS NULL THEN json_object(CAST(ms_bin AS TEXT), 1) ELSE json_object(CAST(ms_bin AS TEXT), 1, 'f' || first_bin, 1) END`,
  postgres: `CASE WHEN first_bin IS NULL THEN jsonb_build_object(ms_bin::text, 1) ELSE jsonb_build_object(ms_bin::text, 1, 'f' || first_bin, 1) END`,
};

/** Conditions of the members that sums are told apart by, each with an AND before it. */
export function narrowing(filter: UsageFilter): Source {
  const parts: string[] = [];
  const values: (string | number)[] = [];
  for (const [member, column] of Object.entries(equal)) {
    const value = filter[member as keyof typeof equal];
    if (value === undefined) continue;
    parts.push(` AND ${column} = ?`);
    values.push(value);
  }
  if (filter.outcome !== undefined) parts.push(` AND failed = ${filter.outcome === 'failed' ? 1 : 0}`);
  return { sql: parts.join(''), values };
}
