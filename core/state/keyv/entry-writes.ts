/** Conditional writes of key-value entries: insert if absent, replace or remove if unchanged, and move to another key. */
import type { Database } from '../database/index.ts';
import { row, sqlOf, type Row, type Work } from '../database/sql.ts';

/** Namespace and key of an entry. */
interface EntryName {
  readonly namespace: string;
  readonly key: string;
}

/** Stored text of an entry, and its expiry in milliseconds since 1970, or null for none. */
export interface StoredEntry {
  readonly value: string;
  readonly expires: number | null;
}

/** Writes an entry where there is none, or one that has expired. Returns false where there is one. */
export async function insertEntry(database: Database, name: EntryName, entry: StoredEntry): Promise<boolean> {
  return (await sqlOf(database).run(() => insertion(name, entry))) !== undefined;
}

function insertion({ namespace, key }: EntryName, { value, expires }: StoredEntry): Work<Row | undefined> {
  return row(
    `INSERT INTO keyv (namespace, key, value, expires) VALUES (?, ?, ?, ?)
     ON CONFLICT (namespace, key) DO UPDATE SET value = excluded.value, expires = excluded.expires
     WHERE keyv.expires < ? RETURNING 1`,
    namespace,
    key,
    value,
    expires,
    Date.now(),
  );
}

/** Thrown where there is an entry already, to roll the transaction back. */
class EntryExists extends Error {}

/** Writes entries where there are none, or ones that have expired. Writes none, and returns false, where there is one. */
export async function insertEntries(
  database: Database,
  entries: readonly (EntryName & { readonly entry: StoredEntry })[],
): Promise<boolean> {
  try {
    await sqlOf(database).atomically(function* () {
      for (const { entry, ...name } of entries)
        if ((yield* insertion(name, entry)) === undefined) throw new EntryExists();
    });
    return true;
  } catch (error) {
    if (error instanceof EntryExists) return false;
    throw error;
  }
}

/** Replaces an entry whose stored text is still `before`. Returns false where it was changed or removed meanwhile. */
export async function replaceEntry(
  database: Database,
  { namespace, key }: EntryName,
  before: string,
  { value, expires }: StoredEntry,
): Promise<boolean> {
  const written = await sqlOf(database).run(() =>
    row(
      'UPDATE keyv SET value = ?, expires = ? WHERE namespace = ? AND key = ? AND value = ? RETURNING 1',
      value,
      expires,
      namespace,
      key,
      before,
    ),
  );
  return written !== undefined;
}

/** Removes an entry whose stored text is still `before`. Returns false where it was changed or removed meanwhile. */
export async function removeEntry(database: Database, name: EntryName, before: string): Promise<boolean> {
  return (await sqlOf(database).run(() => removal(name, before))) !== undefined;
}

function removal({ namespace, key }: EntryName, before: string): Work<Row | undefined> {
  return row(
    'DELETE FROM keyv WHERE namespace = ? AND key = ? AND value = ? RETURNING 1',
    namespace,
    key,
    before,
  );
}

/** Another entry that is written, or removed where `entry` is absent, in the same transaction. */
export interface EntryBeside extends EntryName {
  readonly entry: StoredEntry | undefined;
}

/** As {@link replaceEntry}, and gives the entry another key. Rejects when that key exists. Writes `beside` in the same transaction. */
export function moveEntry(
  database: Database,
  name: EntryName,
  before: string,
  newKey: string,
  { value, expires }: StoredEntry,
  beside?: EntryBeside,
): Promise<boolean> {
  return sqlOf(database).atomically(function* () {
    if ((yield* removal(name, before)) === undefined) return false;
    yield* row(
      'INSERT INTO keyv (namespace, key, value, expires) VALUES (?, ?, ?, ?) RETURNING 1',
      name.namespace,
      newKey,
      value,
      expires,
    );
    if (beside !== undefined) yield* writeBeside(beside);
    return true;
  });
}

function* writeBeside({ namespace, key, entry }: EntryBeside): Work<void> {
  if (entry === undefined) {
    yield* row('DELETE FROM keyv WHERE namespace = ? AND key = ? RETURNING 1', namespace, key);
    return;
  }
  yield* row(
    `INSERT INTO keyv (namespace, key, value, expires) VALUES (?, ?, ?, ?)
     ON CONFLICT (namespace, key) DO UPDATE SET value = excluded.value, expires = excluded.expires RETURNING 1`,
    namespace,
    key,
    entry.value,
    entry.expires,
  );
}
