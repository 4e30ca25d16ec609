/** Entries of Keyv in SQLite. */
import type { DatabaseSync } from 'node:sqlite';
import type { KeyvStoreAdapter } from 'keyv';
import type { SqliteDatabase } from '../database/index.ts';
import { lazyStatement } from '../database/lazy-statement.ts';
import { transactionInSqlite, writeInSqlite } from '../database/sqlite-writes.ts';
import { yieldToEventLoop } from '../database/yield-to-event-loop.ts';

/*
 * @keyv/sqlite and @keyv/postgres are not used because they open connections of their own. Entries are written in transactions with other tables
 * of the gateway, by one writer of a file, and each write counts the revision by which other processes find it.
 */

/** An entry may still be read in the millisecond in which it expires; Keyv counts likewise. */
const ALIVE = '(expires IS NULL OR expires >= ?)';

/** Keys that are asked for in one statement, in less than half of the time of as many statements; and so few that it makes no difference. */
const TOGETHER = 32;
const FEW = 4;

/** Rows per read of an iterator: about a millisecond of work between two turns of the event loop. */
const PAGE = 200;

type Statements = ReturnType<typeof prepare>;
const preparedFor = new WeakMap<DatabaseSync, Statements>();

/**
 * Keeps Keyv entries in a table of an SQLite database. Any number of adapters may share the database, but each Keyv
 * needs an adapter of its own: Keyv writes its namespace on it.
 *
 * Operations that change something are made in the order in which they were asked for, at once unless another process is writing just
 * then. Every failure rejects the operation's promise.
 * An expired entry is never returned; `deleteExpired` removes those that nobody asks for.
 *
 * The members left out are typed loosely by Keyv (any stored form, `setMany` as void); here they have their true types.
 */
export class SqliteKeyv implements Omit<KeyvStoreAdapter, 'get' | 'getMany' | 'setMany'> {
  /** Set by Keyv. Without one the entries are in a namespace of their own, not in all of them. */
  namespace: string | undefined;
  /** Keyv looks here to learn that the adapter can iterate. */
  readonly opts: { readonly dialect: 'sqlite'; readonly url: string };
  readonly #connection: DatabaseSync;
  readonly #statements: Statements;

  constructor(database: SqliteDatabase) {
    this.opts = { dialect: 'sqlite', url: database.url };
    this.#connection = database.connection;
    this.#statements = statementsOf(database);
  }

  /** The stored text, or undefined when there is none or it has expired. */
  async get(key: string): Promise<string | undefined> {
    return this.#get(key);
  }

  /** One place per key, in the order of the keys. */
  async getMany(keys: string[]): Promise<(string | undefined)[]> {
    const found = new Map<string, string | undefined>();
    for (let from = 0; from < keys.length; from += TOGETHER) {
      // oxlint-disable-next-line no-await-in-loop -- others get their turn between the slices
      if (from > 0) await yieldToEventLoop();
      const slice = keys.slice(from, from + TOGETHER);
      // SQLite gives a key back that is no Unicode as another one.
      if (slice.length > FEW && slice.every((key) => key.isWellFormed())) this.#getTogether(slice, found);
      else for (const key of slice) found.set(key, this.#get(key));
    }
    return keys.map((key) => found.get(key));
  }

  /** `ttl` is in milliseconds; without one the entry stays. */
  async set(key: string, value: string, ttl?: number): Promise<boolean> {
    const set = this.#setting(key, value, ttl);
    await writeInSqlite(this.#connection, set);
    return true;
  }

  /** All of them or, when one fails or the process dies, none. */
  async setMany(entries: { key: string; value: string; ttl?: number }[]): Promise<boolean[]> {
    const sets = entries.map(({ key, value, ttl }) => this.#setting(key, value, ttl));
    await transactionInSqlite(this.#connection, () => {
      for (const set of sets) set();
    });
    return entries.map(() => true);
  }

  /** True when there was an entry to delete. */
  async delete(key: string): Promise<boolean> {
    return writeInSqlite(this.#connection, this.#deleting(key));
  }

  /** True when any of the keys had an entry. */
  async deleteMany(keys: string[]): Promise<boolean> {
    const deletes = keys.map((key) => this.#deleting(key));
    return transactionInSqlite(this.#connection, () => deletes.map((remove) => remove()).includes(true));
  }

  /** Deletes the entries of this namespace. */
  async clear(): Promise<void> {
    const space = this.#space();
    await writeInSqlite(this.#connection, () => this.#statements.clear().run(space));
  }

  /** True when the key has an entry that has not expired. */
  async has(key: string): Promise<boolean> {
    return this.#has(key);
  }

  /** One answer per key, in the order of the keys. */
  async hasMany(keys: string[]): Promise<boolean[]> {
    return keys.map((key) => this.#has(key));
  }

  /**
   * Key and stored text of each entry, in the order of the keys. Entries may be written while it runs; one that is
   * there from beginning to end is met exactly once. Others get their turn on the event loop between pages.
   */
  async *iterator(namespace = this.namespace): AsyncGenerator<[key: string, value: string], void> {
    let rows = this.#statements.firstPage().all(namespace ?? '', Date.now(), PAGE);
    for (;;) {
      let last = '';
      for (const row of rows) {
        last = String(row['key']);
        yield [last, String(row['value'])];
      }
      if (rows.length < PAGE) return;
      // oxlint-disable-next-line no-await-in-loop -- waiting between pages is the purpose
      await yieldToEventLoop();
      rows = this.#statements.nextPage().all(namespace ?? '', last, Date.now(), PAGE);
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

  #get(key: string): string | undefined {
    const row = this.#statements.get().get(this.#space(), key, Date.now());
    return row === undefined ? undefined : String(row['value']);
  }

  /** Of at most {@link TOGETHER} keys. */
  #getTogether(keys: readonly string[], found: Map<string, string | undefined>): void {
    const [first = ''] = keys;
    const rest = Array.from({ length: TOGETHER - keys.length }, () => first);
    for (const { key, value } of this.#statements
      .getTogether()
      .all(this.#space(), Date.now(), ...keys, ...rest))
      found.set(String(key), String(value));
  }

  #has(key: string): boolean {
    return this.#statements.has().get(this.#space(), key, Date.now()) !== undefined;
  }

  /** The write of an entry, as it was asked for now: it may have to wait. */
  #setting(key: string, value: string, ttl: number | undefined): () => void {
    if (typeof value !== 'string') {
      throw new TypeError(
        `SQLite keeps text, and the value for "${key}" is ${typeof value}: leave Keyv's serializer on.`,
      );
    }
    const space = this.#space();
    const expires = ttl === undefined ? null : Date.now() + ttl;
    return () => void this.#statements.set().run(space, key, value, expires);
  }

  #deleting(key: string): () => boolean {
    const space = this.#space();
    return () => this.#statements.delete().run(space, key).changes !== 0;
  }
}

/**
 * A number that changes with every write to the namespace, by anybody. Counting starts with the first question;
 * remember the number before reading the entries, and read them again when it has changed.
 */
export async function revisionOf(database: SqliteDatabase, namespace: string): Promise<number> {
  const { revision, startCounting } = statementsOf(database);
  const row = revision().get(namespace);
  if (row !== undefined) return Number(row['revision']);
  await writeInSqlite(database.connection, () => startCounting().run(namespace));
  return Number(revision().get(namespace)?.['revision']);
}

/** Deletes entries of every namespace that have expired, at most `limit` of them, and says how many it found. */
export async function deleteExpired(database: SqliteDatabase, limit: number): Promise<number> {
  const statement = statementsOf(database).deleteExpired();
  const { changes } = await writeInSqlite(database.connection, () => statement.run(Date.now(), limit));
  return Number(changes);
}

function statementsOf({ connection }: SqliteDatabase): Statements {
  const known = preparedFor.get(connection);
  if (known !== undefined) return known;
  const statements = prepare(connection);
  preparedFor.set(connection, statements);
  return statements;
}

function prepare(connection: DatabaseSync) {
  const statement = (sql: string) => lazyStatement(connection, sql);
  const page = (from: string) =>
    statement(`SELECT key, value FROM keyv WHERE namespace = ? ${from} AND ${ALIVE} ORDER BY key LIMIT ?`);
  return {
    get: statement(`SELECT value FROM keyv WHERE namespace = ? AND key = ? AND ${ALIVE}`),
    getTogether: statement(
      `SELECT key, value FROM keyv WHERE namespace = ? AND ${ALIVE}
       AND key IN (${Array.from({ length: TOGETHER }, () => '?').join()})`,
    ),
    has: statement(`SELECT 1 FROM keyv WHERE namespace = ? AND key = ? AND ${ALIVE}`),
    set: statement(
      `INSERT INTO keyv (namespace, key, value, expires) VALUES (?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET value = excluded.value, expires = excluded.expires`,
    ),
    delete: statement('DELETE FROM keyv WHERE namespace = ? AND key = ?'),
    clear: statement('DELETE FROM keyv WHERE namespace = ?'),
    firstPage: page(''),
    nextPage: page('AND key > ?'),
    revision: statement('SELECT revision FROM keyv_revisions WHERE namespace = ?'),
    startCounting: statement('INSERT OR IGNORE INTO keyv_revisions (namespace, revision) VALUES (?, 0)'),
    deleteExpired: statement(
      'DELETE FROM keyv WHERE rowid IN (SELECT rowid FROM keyv WHERE expires < ? ORDER BY expires LIMIT ?)',
    ),
  };
}
