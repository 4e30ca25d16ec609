/** Indexes of partitions, and how those from before there were some of them get theirs. */
import type { Query } from '../../state/database/long-reads.ts';

/** Indexes of each partition, by the table. The place in the list is part of an index's name. */
export const partitionIndexes = {
  // The id alone: the record of a call that is written again has the same time.
  usage_records: [
    'UNIQUE {} (id)',
    '{} (at)',
    '{} (hashtext(key_id), at)',
    // By hours, so that equal entries are stored once.
    '{} (kind, (at / 3600000))',
    '{} (at) WHERE status >= 400',
    '{} (ms)',
    '{} (micro_dollars)',
    // By stretches of 70 minutes, because their numbers, together with the hash, take no more room than the hash alone.
    '{} (hashtext(end_user), CAST(at >> 22 AS INTEGER)) WHERE end_user IS NOT NULL',
    // New entries wait in a list that is read with the index. It is kept short.
    '{} USING gin (CAST(tags AS jsonb) jsonb_path_ops) WITH (fastupdate = on, gin_pending_list_limit = 64) WHERE tags IS NOT NULL',
  ],
  usage_details: ['UNIQUE {} (at, id)'],
  usage_attempts: ['UNIQUE {} (at, id, number)'],
} as const;

/** Place in the list from which on partitions of older versions have no indexes. */
export const firstAdded = 3;

/** Place in the list of the first index by end users or tags, which partitions of some versions lack that have the others. */
export const firstOfSubjects = 7;

/**
 * Partitions of records with the number of one of the added indexes that they lack, and how many pages of 8 KiB they have: by the size of the
 * file, because `relpages` is 0 until a partition is analyzed.
 */
export const lackingIndexes = `SELECT c.relname AS name, n AS number, pg_relation_size(c.oid) / 8192 AS pages
  FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
  CROSS JOIN generate_series(${firstAdded}, ${partitionIndexes.usage_records.length - 1}) AS numbers (n)
  WHERE i.inhparent = to_regclass('usage_records') AND NOT EXISTS (
    SELECT 1 FROM pg_index x JOIN pg_class made ON made.oid = x.indexrelid
    WHERE x.indrelid = c.oid AND x.indisvalid AND made.relname = c.relname || '_' || n)`;

/** Returns the numbers of the added indexes that some partition lacks. */
export async function lackingNumbers(query: Query): Promise<readonly number[]> {
  const found = await query(`SELECT DISTINCT number FROM (${lackingIndexes}) AS lacking`, []);
  return found.map(({ number }) => Number(number));
}

/** The statement that makes an index of a partition. */
export function creationOf(table: keyof typeof partitionIndexes, number: number, partition: string): string {
  const text = partitionIndexes[table][number] ?? '';
  const [unique, columns] = text.startsWith('UNIQUE') ? ['UNIQUE ', text.slice(10)] : ['', text.slice(3)];
  return `CREATE ${unique}INDEX IF NOT EXISTS ${partition}_${number} ON ${partition} ${columns}`;
}
