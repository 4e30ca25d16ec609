import type { Database } from '../database/index.ts';
import { row, rows, sqlOf } from '../database/sql.ts';

/** What was written to a namespace since a revision of it. */
export interface ChangedEntries {
  /** That of the namespace as it is told here. */
  readonly revision: number;
  /** Each key that was written, with its stored text as it is now; undefined for an entry that is gone. */
  readonly entries: readonly (readonly [key: string, value: string | undefined])[];
}

/** How many keys are told of at most: a reader of more reads the whole namespace, a page at a time. */
const mostTold = 1_000;
/** For how many revisions it is known which keys they wrote. */
const kept = 10_000;

/** What was written since a revision; undefined where that is not known any more, or too much to be told in one go. */
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
      mostTold + 1,
    ),
  );
  const revision = Number(found[0]?.['revision'] ?? NaN);
  const isKnown = revision >= since && revision - since < kept / 2;
  if (!isKnown || found.length > mostTold) return undefined;
  const entries = found.flatMap(({ key, value }) =>
    key === null ? [] : [[String(key), value === null ? undefined : String(value)] as const],
  );
  return { revision, entries };
}

/** Forgets which keys were written longer ago than anybody asks, at most `limit` of them. */
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
