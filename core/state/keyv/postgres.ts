import type { KeyvStoreAdapter } from 'keyv';
import type { PostgresDatabase } from '../database/postgres.ts';

/** An entry may still be read in the millisecond in which it expires; Keyv counts likewise. */
const ALIVE = (place: number): string => `(expires IS NULL OR expires >= $${place})`;

/** By their places in the question: what comes back of a key is not always the same text. */
const asked = (columns: string): string => `
  SELECT ${columns} FROM unnest($2::text[]) WITH ORDINALITY AS asked (key, place)
  JOIN keyv ON keyv.namespace = $1 AND keyv.key = asked.key WHERE ${ALIVE(3)}`;
const GET = asked('place, value');
const HAS = asked('place');
const PAGE_AFTER = `SELECT key, value FROM keyv WHERE namespace = $1 AND key > $2 AND ${ALIVE(3)} ORDER BY key LIMIT $4`;
const FIRST_PAGE = `SELECT key, value FROM keyv WHERE namespace = $1 AND ${ALIVE(2)} ORDER BY key LIMIT $3`;
const DELETE = 'DELETE FROM keyv WHERE namespace = $1 AND key = ANY($2) RETURNING 1';

const SET = `
  INSERT INTO keyv (namespace, key, value, expires)
  SELECT $1, given.* FROM unnest($2::text[], $3::text[], $4::bigint[]) AS given
  ON CONFLICT (namespace, key) DO UPDATE SET value = excluded.value, expires = excluded.expires`;

/** Rows that another gateway is removing, or somebody is writing, are left to them. */
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
 * Keeps Keyv entries in a table of a Postgres database: the sibling of `SqliteKeyv`, with the same promises. Each Keyv needs an adapter of
 * its own, because Keyv writes its namespace on it. A key may have about 2,500 bytes; the server refuses a longer one.
 *
 * The members left out are typed loosely by Keyv (any stored form, `setMany` as void); here they have their true types.
 */
export class PostgresKeyv implements Omit<KeyvStoreAdapter, 'get' | 'getMany' | 'setMany'> {
  /** Set by Keyv. Without one the entries are in a namespace of their own, not in all of them. */
  namespace: string | undefined;
  /** Keyv looks here to learn that the adapter can iterate. */
  readonly opts: { readonly dialect: 'postgres'; readonly url: string };
  readonly #database: PostgresDatabase;

  constructor(database: PostgresDatabase) {
    this.opts = { dialect: 'postgres', url: database.url };
    this.#database = database;
  }

  /** The stored text, or undefined when there is none or it has expired. */
  async get(key: string): Promise<string | undefined> {
    return (await this.getMany([key]))[0];
  }

  /** One place per key, in the order of the keys. */
  async getMany(keys: string[]): Promise<(string | undefined)[]> {
    const rows = await this.#database.query(GET, [this.#space(), keys, Date.now()]);
    const found = new Map(rows.map(({ place, value }) => [Number(place), String(value)]));
    return keys.map((_, index) => found.get(index + 1));
  }

  /** `ttl` is in milliseconds; without one the entry stays. */
  async set(key: string, value: string, ttl?: number): Promise<boolean> {
    await this.setMany([{ key, value, ...(ttl === undefined ? {} : { ttl }) }]);
    return true;
  }

  /** All of them or, when one fails or the process dies, none. */
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

  /** Whether there was an entry to delete. */
  async delete(key: string): Promise<boolean> {
    return this.deleteMany([key]);
  }

  /** Whether any of the keys had an entry. */
  async deleteMany(keys: string[]): Promise<boolean> {
    return (await this.#database.query(DELETE, [this.#space(), keys])).length > 0;
  }

  /** Deletes the entries of this namespace. */
  async clear(): Promise<void> {
    await this.#database.query('DELETE FROM keyv WHERE namespace = $1', [this.#space()]);
  }

  /** Whether the key has an entry that has not expired. */
  async has(key: string): Promise<boolean> {
    return (await this.hasMany([key]))[0] === true;
  }

  /** One answer per key, in the order of the keys. */
  async hasMany(keys: string[]): Promise<boolean[]> {
    const rows = await this.#database.query(HAS, [this.#space(), keys, Date.now()]);
    const found = new Set(rows.map(({ place }) => Number(place)));
    return keys.map((_, index) => found.has(index + 1));
  }

  /**
   * Key and stored text of each entry, in the order of the keys' bytes. Entries may be written while it runs; one that is there from
   * beginning to end is met exactly once.
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

  /** The database belongs to whoever opened it, so there is nothing to do. */
  async disconnect(): Promise<void> {}

  /** For Keyv's sake. Nothing is emitted: a failure rejects the call that met it. */
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
