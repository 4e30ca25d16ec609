import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { setImmediate } from 'node:timers/promises';
import type { KeyvStoreAdapter } from 'keyv';
import type { SqliteDatabase } from './database.ts';

/** An entry may still be read in the millisecond in which it expires; Keyv counts likewise. */
const ALIVE = '(expires IS NULL OR expires >= ?)';

/** Rows per read of an iterator: about a millisecond of work between two turns of the event loop. */
const PAGE = 200;

type Statements = ReturnType<typeof prepare>;
const preparedFor = new WeakMap<DatabaseSync, Statements>();

/**
 * Keeps Keyv entries in a table of an SQLite database. Any number of adapters may share the database, but each Keyv
 * needs an adapter of its own: Keyv writes its namespace on it.
 *
 * Every operation runs to its end before it returns its promise, and every failure rejects that promise.
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
    return keys.map((key) => this.#get(key));
  }

  /** `ttl` is in milliseconds; without one the entry stays. */
  async set(key: string, value: string, ttl?: number): Promise<boolean> {
    this.#set(key, value, ttl);
    return true;
  }

  /** All of them or, when one fails or the process dies, none. */
  async setMany(entries: { key: string; value: string; ttl?: number }[]): Promise<boolean[]> {
    this.#atomically(() => {
      for (const { key, value, ttl } of entries) this.#set(key, value, ttl);
    });
    return entries.map(() => true);
  }

  /** Whether there was an entry to delete. */
  async delete(key: string): Promise<boolean> {
    return this.#delete(key);
  }

  /** Whether any of the keys had an entry. */
  async deleteMany(keys: string[]): Promise<boolean> {
    return this.#atomically(() => keys.map((key) => this.#delete(key)).includes(true));
  }

  /** Deletes the entries of this namespace. */
  async clear(): Promise<void> {
    this.#statements.clear.run(this.#space());
  }

  /** Whether the key has an entry that has not expired. */
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
    let rows = this.#statements.firstPage.all(namespace ?? '', Date.now(), PAGE);
    for (;;) {
      let last = '';
      for (const row of rows) {
        last = String(row['key']);
        yield [last, String(row['value'])];
      }
      if (rows.length < PAGE) return;
      // oxlint-disable-next-line no-await-in-loop -- waiting between pages is the purpose
      await setImmediate();
      rows = this.#statements.nextPage.all(namespace ?? '', last, Date.now(), PAGE);
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
    const row = this.#statements.get.get(this.#space(), key, Date.now());
    return row === undefined ? undefined : String(row['value']);
  }

  #has(key: string): boolean {
    return this.#statements.has.get(this.#space(), key, Date.now()) !== undefined;
  }

  #set(key: string, value: string, ttl?: number): void {
    if (typeof value !== 'string') {
      throw new TypeError(
        `SQLite keeps text, and the value for "${key}" is ${typeof value}: leave Keyv's serializer on.`,
      );
    }
    this.#statements.set.run(this.#space(), key, value, ttl === undefined ? null : Date.now() + ttl);
  }

  #delete(key: string): boolean {
    return this.#statements.delete.run(this.#space(), key).changes !== 0;
  }

  /** Nothing else can slip in between: the connection is synchronous and so is the job. */
  #atomically<Result>(job: () => Result): Result {
    this.#connection.exec('BEGIN IMMEDIATE');
    try {
      const result = job();
      this.#connection.exec('COMMIT');
      return result;
    } catch (error) {
      // Some failures (a full disk) have ended the transaction already.
      if (this.#connection.isTransaction) this.#connection.exec('ROLLBACK');
      throw error;
    }
  }
}

/**
 * A number that changes with every write to the namespace, by anybody. Counting starts with the first question;
 * remember the number before reading the entries, and read them again when it has changed.
 */
export function revisionOf(database: SqliteDatabase, namespace: string): number {
  const { revision, startCounting } = statementsOf(database);
  const row = revision.get(namespace);
  if (row !== undefined) return Number(row['revision']);
  startCounting.run(namespace);
  return Number(revision.get(namespace)?.['revision']);
}

/** Deletes entries of every namespace that have expired, at most `limit` of them, and says how many it found. */
export function deleteExpired(database: SqliteDatabase, limit: number): number {
  return Number(statementsOf(database).deleteExpired.run(Date.now(), limit).changes);
}

function statementsOf({ connection }: SqliteDatabase): Statements {
  const known = preparedFor.get(connection);
  if (known !== undefined) return known;
  const statements = prepare(connection);
  preparedFor.set(connection, statements);
  return statements;
}

function prepare(connection: DatabaseSync) {
  const statement = (sql: string): StatementSync => connection.prepare(sql);
  const page = (from: string) =>
    statement(`SELECT key, value FROM keyv WHERE namespace = ? ${from} AND ${ALIVE} ORDER BY key LIMIT ?`);
  return {
    get: statement(`SELECT value FROM keyv WHERE namespace = ? AND key = ? AND ${ALIVE}`),
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
