/** Keyv adapter for a table in PostgreSQL, with the revision of a namespace and the removal of expired entries. */
import type { KeyvStoreAdapter } from 'keyv';
import type { PostgresDatabase } from '../database/postgres.ts';

/** SQL condition for entries that have not expired. An entry is valid in the millisecond of its expiry, as in Keyv. */
const ALIVE = (parameter: number): string => `(expires IS NULL OR expires >= $${parameter})`;

/** Rows are matched by their position in the query, because PostgreSQL may return a key as another text. */
const selectByKeys = (columns: string): string => `
  SELECT ${columns} FROM unnest($2::text[]) WITH ORDINALITY AS requested (key, ordinal)
  JOIN keyv ON keyv.namespace = $1 AND keyv.key = requested.key WHERE ${ALIVE(3)}`;
const GET = selectByKeys('ordinal, value');
const HAS = selectByKeys('ordinal');
const PAGE_AFTER = `SELECT key, value FROM keyv WHERE namespace = $1 AND key > $2 AND ${ALIVE(3)} ORDER BY key LIMIT $4`;
const FIRST_PAGE = `SELECT key, value FROM keyv WHERE namespace = $1 AND ${ALIVE(2)} ORDER BY key LIMIT $3`;
const DELETE = 'DELETE FROM keyv WHERE namespace = $1 AND key = ANY($2) RETURNING 1';

const SET = `
  INSERT INTO keyv (namespace, key, value, expires)
  SELECT $1, given.* FROM unnest($2::text[], $3::text[], $4::bigint[]) AS given
  ON CONFLICT (namespace, key) DO UPDATE SET value = excluded.value, expires = excluded.expires`;

/** Skips rows that another transaction is removing or writing. */
const DELETE_EXPIRED = `
  WITH expired AS (
    SELECT namespace, key FROM keyv WHERE expires < $1 ORDER BY expires LIMIT $2 FOR UPDATE SKIP LOCKED
  )
  DELETE FROM keyv USING expired
  WHERE keyv.namespace = expired.namespace AND keyv.key = expired.key
  RETURNING 1`;

/** Rows per read of an iterator. */
const PAGE = 500;

interface Entry {
  readonly key: string;
  readonly value: string;
  readonly ttl?: number;
}

/**
 * The adapter, with the same guarantees as `SqliteKeyv`. Each Keyv needs an adapter of its own, because Keyv sets its namespace on it. A key
 * may have about 2,500 bytes; the server refuses a longer one.
 *
 * The omitted members have loose types in Keyv (any stored form, `setMany` as void); here they have exact types.
 */
export class PostgresKeyv implements Omit<KeyvStoreAdapter, 'get' | 'getMany' | 'setMany'> {
  /** Set by Keyv. Undefined: the namespace with the empty name, not all namespaces. */
  namespace: string | undefined;
  /** Keyv reads this to detect that the adapter can iterate. */
  readonly opts: { readonly dialect: 'postgres'; readonly url: string };
  readonly #database: PostgresDatabase;

  constructor(database: PostgresDatabase) {
    this.opts = { dialect: 'postgres', url: database.url };
    this.#database = database;
  }

  /** Returns the stored text, or undefined when there is none or it has expired. */
  async get(key: string): Promise<string | undefined> {
    return (await this.getMany([key]))[0];
  }

  /** Returns one value per key, in the order of the keys. */
  async getMany(keys: string[]): Promise<(string | undefined)[]> {
    const rows = await this.#database.query(GET, [this.#space(), keys, Date.now()]);
    const found = new Map(rows.map(({ ordinal, value }) => [Number(ordinal), String(value)]));
    return keys.map((_, index) => found.get(index + 1));
  }

  /** Writes an entry. `ttl` is in milliseconds; without one the entry does not expire. */
  async set(key: string, value: string, ttl?: number): Promise<boolean> {
    await this.setMany([{ key, value, ...(ttl === undefined ? {} : { ttl }) }]);
    return true;
  }

  /** Writes the entries in one transaction. */
  async setMany(entries: readonly Entry[]): Promise<boolean[]> {
    for (const { key, value } of entries) {
      if (typeof value !== 'string') {
        throw new TypeError(
          `Postgres keeps text here, and the value for "${key}" is ${typeof value}: leave Keyv's serializer on.`,
        );
      }
    }
    const now = Date.now();
    // Of two values for a key the last one counts. In the order of the keys, so that two writers cannot block each other.
    const last = [...new Map(entries.map((entry) => [entry.key, entry])).values()].toSorted((a, b) =>
      a.key < b.key ? -1 : 1,
    );
    await this.#database.query(SET, [
      this.#space(),
      last.map(({ key }) => key),
      last.map(({ value }) => value),
      last.map(({ ttl }) => (ttl === undefined ? null : Math.ceil(now + ttl))),
    ]);
    return entries.map(() => true);
  }

  /** Deletes an entry. Returns true when there was one. */
  async delete(key: string): Promise<boolean> {
    return this.deleteMany([key]);
  }

  /** Deletes entries. Returns true when any of the keys had one. */
  async deleteMany(keys: string[]): Promise<boolean> {
    return (await this.#database.query(DELETE, [this.#space(), keys])).length > 0;
  }

  /** Deletes the entries of this namespace. */
  async clear(): Promise<void> {
    await this.#database.query('DELETE FROM keyv WHERE namespace = $1', [this.#space()]);
  }

  /** Returns true when the key has an entry that has not expired. */
  async has(key: string): Promise<boolean> {
    return (await this.hasMany([key]))[0] === true;
  }

  /** Returns one result per key, in the order of the keys. */
  async hasMany(keys: string[]): Promise<boolean[]> {
    const rows = await this.#database.query(HAS, [this.#space(), keys, Date.now()]);
    const found = new Set(rows.map(({ ordinal }) => Number(ordinal)));
    return keys.map((_, index) => found.has(index + 1));
  }

  /**
   * Yields key and stored text of each entry, in the order of the keys' bytes. Entries may be written meanwhile; an entry that exists from
   * beginning to end is yielded exactly once.
   */
  async *iterator(namespace = this.namespace): AsyncGenerator<[key: string, value: string], void> {
    let rows = await this.#database.query(FIRST_PAGE, [namespace ?? '', Date.now(), PAGE]);
    for (;;) {
      let last = '';
      for (const { key, value } of rows) {
        last = String(key);
        yield [last, String(value)];
      }
      if (rows.length < PAGE) return;
      // oxlint-disable-next-line no-await-in-loop -- each page begins where the one before ended
      rows = await this.#database.query(PAGE_AFTER, [namespace ?? '', last, Date.now(), PAGE]);
    }
  }

  /** Does nothing, because the code that opened the database closes it. */
  async disconnect(): Promise<void> {}

  /** Required by Keyv. Emits nothing, because a failure rejects the call that met it. */
  on(): this {
    return this;
  }

  #space(): string {
    return this.namespace ?? '';
  }
}

/** As `revisionOf` of SQLite's adapter. */
export async function revisionInPostgres(database: PostgresDatabase, namespace: string): Promise<number> {
  const find = 'SELECT revision FROM keyv_revisions WHERE namespace = $1';
  const [row] = await database.query(find, [namespace]);
  if (row !== undefined) return Number(row['revision']);
  await database.query('INSERT INTO keyv_revisions VALUES ($1, 0) ON CONFLICT DO NOTHING', [namespace]);
  return Number((await database.query(find, [namespace]))[0]?.['revision']);
}

/** As `deleteExpired` of SQLite's adapter. */
export async function deleteExpiredInPostgres(database: PostgresDatabase, limit: number): Promise<number> {
  return (await database.query(DELETE_EXPIRED, [Date.now(), limit])).length;
}
