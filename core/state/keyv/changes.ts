/** Finds the entries of a namespace that were written since a revision, and removes old notes of such writes. */
import type { Database } from '../database/index.ts';
import { row, rows, sqlOf } from '../database/sql.ts';

/** Entries that were written to a namespace since a revision. */
export interface ChangedEntries {
  /** Revision of the namespace with these changes. */
  readonly revision: number;
  /** Each key that was written, with its stored text as it is now; undefined for an entry that is gone. */
  readonly entries: readonly (readonly [key: string, value: string | undefined])[];
}

/** Maximum number of changed keys that are returned. With more, the caller reads the whole namespace, in pages. */
const maxChanges = 1_000;
/** Number of revisions for which the written keys are kept. */
const kept = 10_000;

/** Returns the entries that were written since a revision; undefined where they are no longer known, or too many. */
export async function changesSince(
  database: Database,
  namespace: string,
  since: number,
): Promise<ChangedEntries | undefined> {
  // One statement, so that the revision and the entries are those of one moment.
  const found = await sqlOf(database).run(() =>
    rows(
      `SELECT now.revision AS revision, written.key AS key, keyv.value AS value FROM keyv_revisions AS now
       LEFT JOIN keyv_changes AS written ON written.namespace = now.namespace AND written.revision > ?
       LEFT JOIN keyv ON keyv.namespace = written.namespace AND keyv.key = written.key
         AND (keyv.expires IS NULL OR keyv.expires >= ?)
       WHERE now.namespace = ? LIMIT ?`,
      since,
      Date.now(),
      namespace,
      maxChanges + 1,
    ),
  );
  const revision = Number(found[0]?.['revision'] ?? NaN);
  const isKnown = revision >= since && revision - since < kept / 2;
  if (!isKnown || found.length > maxChanges) return undefined;
  const entries = found.flatMap(({ key, value }) =>
    key === null ? [] : [[String(key), value === null ? undefined : String(value)] as const],
  );
  return { revision, entries };
}

/** Removes notes of writes that are older than {@link kept} revisions, at most `limit` of them. */
export async function forgetChanges(database: Database, limit: number): Promise<void> {
  await sqlOf(database).run(() =>
    row(
      `DELETE FROM keyv_changes WHERE (namespace, key) IN (
         SELECT old.namespace, old.key FROM keyv_revisions AS now
         JOIN keyv_changes AS old ON old.namespace = now.namespace AND old.revision < now.revision - ? LIMIT ?
       )`,
      kept,
      limit,
    ),
  );
}
