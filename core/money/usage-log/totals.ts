/** Reads the sums of records: those of `usage_totals`, and those of `usage_sums` that have not been moved there yet. */
import type { UsageFilter } from './index.ts';
import { largestStart, levels, minute, type Dimension } from './levels.ts';
import { narrowing, type Source } from './narrowing.ts';

/** Dimensions that `usage_names` has. */
const named: ReadonlySet<string> = new Set<Dimension>([
  'model',
  'channel',
  'format',
  'operation',
  'status',
  'failed',
]);

/** Sums of one level and time; `until` is exclusive. */
export interface Reading {
  readonly level: number;
  readonly since: number;
  readonly until: number;
}

/**
 * Returns a SELECT of the sums that fit a filter, with these columns of `usage_sums`. `start` is in milliseconds; amounts of zero may be NULL.
 */
export function totalsIn(
  { level, since, until }: Reading,
  filter: UsageFilter,
  columns: readonly string[],
): Source {
  const hasKeys = levels.some((one) => one.level === level && one.hasKeys);
  const ofLevel = ofLevelIn(level);
  const older = olderTotalsIn({ level, since, until }, filter, columns);
  const { keyId, ...others } = filter;
  const byName = narrowing(others, 'n.');
  const usesNames = byName.sql !== '' || columns.some((name) => named.has(name));
  const usesKeys = hasKeys && columns.includes('key_id');
  const column = (name: string): string => {
    if (name === 'start') return `CAST(t.start AS BIGINT) * ${minute} AS start`;
    if (name === 'key_id') return `${hasKeys ? 'k.key_id' : "''"} AS key_id`;
    return `${named.has(name) ? 'n' : 't'}.${name} AS ${name}`;
  };
  const joins = `${usesNames ? ' JOIN usage_names n ON n.id = t.names' : ''}${usesKeys ? ' JOIN usage_keys k ON k.id = t.key' : ''}`;
  const ofKey = keyId === undefined ? '' : ' AND t.key = (SELECT id FROM usage_keys WHERE key_id = ?)';
  return {
    sql: `SELECT ${columns.map(column).join(', ')} FROM usage_totals t${joins}
       WHERE t.${ofLevel.replace(' AND ', ' AND t.')} AND t.start >= ? AND t.start < ?${ofKey}${byName.sql}
       UNION ALL ${older.sql}`,
    values: [
      minutesOf(since),
      minutesOf(until),
      ...(keyId === undefined ? [] : [keyId]),
      ...byName.values,
      ...older.values,
    ],
  };
}

/** The same of `usage_sums` alone. A column `at` is `start` under another name. */
export function olderTotalsIn(
  { level, since, until }: Reading,
  filter: UsageFilter,
  columns: readonly string[],
): Source {
  const narrowed = narrowing(filter);
  const column = (name: string): string => {
    if (name === 'bins') return 'CAST(bins AS TEXT) AS bins';
    return name === 'at' ? 'start AS at' : name;
  };
  return {
    sql: `SELECT ${columns.map(column).join(', ')} FROM usage_sums
       WHERE ${ofLevelIn(level)} AND start >= ? AND start < ?${narrowed.sql}`,
    values: [since, until, ...narrowed.values],
  };
}

/** Returns the condition for the rows of a level. SQLite uses the partial indexes by keys only if their own condition is repeated. */
function ofLevelIn(level: number): string {
  const hasKeys = levels.some((one) => one.level === level && one.hasKeys);
  return `level = ${level}${hasKeys ? ' AND level >= 5' : ''}`;
}

/** A time as `usage_totals` has it; those of levels are whole minutes. */
export function minutesOf(time: number): number {
  return Math.max(0, Math.min(largestStart, Math.ceil(time / minute)));
}
