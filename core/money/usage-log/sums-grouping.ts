/** By what the rows of a question are grouped. */
import type { UsageGrouping } from './index.ts';

const columns = {
  keyId: 'key_id',
  model: 'model',
  channel: 'channel',
  format: 'format',
  status: 'status',
} as const;

/** Grouping of rows. */
export interface Group {
  /** Expressions of SQL, as GROUP BY has them. */
  readonly sql: string;
  /** The same expressions as SELECT has them, with names. */
  readonly columns: string;
  /** Columns by which groups with the same amounts are sorted. */
  readonly order: string;
  /** Expression of SQL that returns the group's name in the answer, from its columns. */
  readonly name: string;
  readonly bucket: number | undefined;
  readonly isNumber: boolean;
}

/** Returns what a question is grouped by. `isOwned`: its rows have `grouped` in the place of the key. */
export function groupOf(grouping: UsageGrouping, isOwned: boolean): Group {
  if (typeof grouping === 'object') {
    const bucket = Math.max(1, Math.trunc(grouping.bucket));
    return { ...named(`at - at % ${bucket}`), bucket, isNumber: true };
  }
  if (grouping === 'keyId' && !isOwned) return ofKeys;
  const sql = isOwned ? 'grouped' : (columns[grouping as keyof typeof columns] ?? 'grouped');
  return { ...named(sql), bucket: undefined, isNumber: grouping === 'status' };
}

function named(sql: string): Pick<Group, 'sql' | 'columns' | 'order' | 'name'> {
  return { sql, columns: `${sql} AS name`, order: 'name', name: 'name' };
}

/** Keys are grouped by their numbers, and only those that are listed are looked up. */
const ofKeys: Group = {
  sql: 'key, key_id',
  columns: 'key, key_id',
  order: 'key, key_id',
  name: 'COALESCE(key_id, (SELECT k.key_id FROM usage_keys k WHERE k.id = listed.key))',
  bucket: undefined,
  isNumber: false,
};
