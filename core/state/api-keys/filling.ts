import { setTimeout as pass } from 'node:timers/promises';
import { GatewayError } from '../../sdk/errors.ts';
import type { Database } from '../database/index.ts';
import { row, sqlOf } from '../database/sql.ts';

/** Number of keys that are read together: some tens of milliseconds of a database's time, in which SQLite holds the event loop up. */
const batches: Readonly<Record<Database['kind'], number>> = { sqlite: 250, postgres: 1_000 };

/** Milliseconds between two batches. */
const pause = 10;

/** Maximum time for which lists and searches wait for the keys from before, in milliseconds. */
const patienceMs = 10_000;

/**
 * Keys from before there was a table to look for keys in. They are put into it once, a bounded number at a time, in one transaction with the
 * note of which these were: nothing is left out, whichever processes do it, and wherever they end.
 */
export class Filling {
  readonly #database: Database;
  #running: Promise<void> | undefined;
  #isDone = false;
  #isClosed = false;

  constructor(database: Database) {
    this.#database = database;
  }

  /**
   * Resolves when all keys are in the table. Rejects when the database fails, and with a sentence for the operator when it takes longer than
   * `timeoutMs`.
   */
  async done(timeoutMs = patienceMs): Promise<void> {
    if (this.#isDone) return;
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(() => late.reject(tooLong()), timeoutMs).unref();
    try {
      await Promise.race([this.run(), late.promise]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Puts in all that is missing. Rejects when the database fails; the next run goes on from there. */
  run(): Promise<void> {
    this.#running ??= this.#fill().finally(() => (this.#running = undefined));
    return this.#running;
  }

  /** Ends what runs. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#running?.catch(() => {});
  }

  async #fill(): Promise<void> {
    // oxlint-disable no-await-in-loop -- one batch after the other
    while (!this.#isClosed && !this.#isDone) {
      this.#isDone = !(await this.#batch());
      if (!this.#isDone) await pass(pause, undefined, { ref: !this.#isClosed });
    }
    // oxlint-enable no-await-in-loop
  }

  /** Puts a batch in; false when nothing is left. */
  async #batch(): Promise<boolean> {
    const sql = sqlOf(this.#database);
    const isLeft = 'SELECT 1 FROM api_keys_filling';
    if ((await sql.run(() => row(isLeft))) === undefined) return false;
    const add = this.#database.kind === 'sqlite' ? addInSqlite : addInPostgres;
    const isOver = await sql.atomically(function* work() {
      // Another process that does the same goes on where this one ends.
      const cursor = yield* row(`SELECT after FROM api_keys_filling${sql.forUpdateOfFree}`);
      if (cursor === undefined) return false;
      const after = String(cursor['after']);
      const last = yield* row(
        `SELECT MAX(key) AS last FROM (SELECT key FROM keyv WHERE namespace = 'api-keys' AND key > ? ORDER BY key LIMIT ?) AS following`,
        after,
        batches[sql.database.kind],
      );
      const end = last?.['last'];
      if (typeof end !== 'string') {
        yield* row('DELETE FROM api_keys_filling');
        return true;
      }
      yield* row(add, after, end);
      yield* row('UPDATE api_keys_filling SET after = ?', end);
      return false;
    });
    if (isOver && this.#database.kind === 'postgres')
      // What was put in stands in a list that each search reads until it is put in order.
      await sql.run(() => row("SELECT gin_clean_pending_list('api_keys_grams')"));
    return !isOver;
  }
}

function tooLong(): GatewayError {
  return new GatewayError(
    'server_is_overloaded',
    'The keys from before this version are still being prepared for lists. They work meanwhile. Try again in a minute.',
    { retryAfter: 10 },
  );
}

const addInSqlite = `INSERT INTO api_keys_written (hash, value)
  SELECT key, value FROM keyv WHERE namespace = 'api-keys' AND key > ? AND key <= ? ORDER BY key`;

/** Locked, because an entry that somebody removes meanwhile would come back. */
const addInPostgres = `WITH locked AS MATERIALIZED (
    SELECT key, value FROM keyv WHERE namespace = 'api-keys' AND key > ? AND key <= ? ORDER BY key FOR SHARE
  ) SELECT COUNT(api_key_write(key, value)) FROM locked`;
