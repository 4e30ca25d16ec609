import { setTimeout as pass } from 'node:timers/promises';
import type { ApiKey } from '../../sdk/api-key.ts';

/** Maximum number of rows that wait to be read. */
const mostWaiting = 1_000;

/** Minimum interval between two queries in milliseconds, however many unknown secrets arrive. */
const pause = 5;

/** A row that is being looked up. */
interface Lookup {
  readonly answered: Promise<ApiKey | undefined>;
  readonly resolve: (key: ApiKey | undefined) => void;
  readonly reject: (error: unknown) => void;
  /** Key that was written to the row meanwhile; the result of the query may be older. */
  written?: { readonly key: ApiKey | undefined };
  /** The row may have been written meanwhile. */
  isStale: boolean;
}

/**
 * Reads rows that are not in memory. Runs one query at a time, for all rows that wait, and reads each row once for all its callers.
 * So a flood of invalid secrets causes at most one query per `pause`.
 */
export class Lookups {
  readonly #read: (rows: string[]) => Promise<readonly (ApiKey | undefined)[]>;
  readonly #found: (row: string, key: ApiKey | undefined) => void;
  readonly #lookups = new Map<string, Lookup>();
  #waiting: string[] = [];
  #isReading = false;
  /** The running query. */
  #running: Promise<void> | undefined;

  /** `found` is called with the key of a row before its callers receive it. */
  constructor(
    read: (rows: string[]) => Promise<readonly (ApiKey | undefined)[]>,
    found: (row: string, key: ApiKey | undefined) => void,
  ) {
    this.#read = read;
    this.#found = found;
  }

  /** Returns the key in a row. Rejects when the database fails, and when too many rows wait. */
  find(row: string): Promise<ApiKey | undefined> {
    const known = this.#lookups.get(row);
    if (known !== undefined) return known.answered;
    if (this.#waiting.length >= mostWaiting)
      return Promise.reject(new Error('Too many unknown API keys are being looked up.'));
    const { promise, resolve, reject } = Promise.withResolvers<ApiKey | undefined>();
    this.#lookups.set(row, { answered: promise, resolve, reject, isStale: false });
    this.#waiting.push(row);
    if (!this.#isReading) void this.#readAll();
    return promise;
  }

  has(row: string): boolean {
    return this.#lookups.has(row);
  }

  /** Records that this key was written to a row. */
  written(row: string, key: ApiKey | undefined): void {
    const lookup = this.#lookups.get(row);
    if (lookup !== undefined) lookup.written = { key };
  }

  /** Marks all rows as possibly changed. */
  writtenAll(): void {
    for (const lookup of this.#lookups.values()) lookup.isStale = true;
  }

  /** Waits for the running query. */
  async close(): Promise<void> {
    await this.#running;
  }

  async #readAll(): Promise<void> {
    this.#isReading = true;
    // oxlint-disable no-await-in-loop -- one query at a time is the purpose
    while (this.#waiting.length > 0) {
      const rows = this.#waiting;
      this.#waiting = [];
      this.#running = this.#readSome(rows);
      await this.#running;
      await pass(pause, undefined, { ref: false });
    }
    // oxlint-enable no-await-in-loop
    this.#isReading = false;
  }

  async #readSome(rows: string[]): Promise<void> {
    for (const row of rows) {
      const lookup = this.#lookups.get(row);
      if (lookup !== undefined) lookup.isStale = false;
    }
    try {
      const keys = await this.#read(rows);
      rows.forEach((row, index) => this.#answer(row, keys[index]));
    } catch (error) {
      // Also rejects the rows that wait, because their query would fail, too.
      for (const row of [...rows, ...this.#waiting.splice(0)]) {
        this.#lookups.get(row)?.reject(error);
        this.#lookups.delete(row);
      }
    }
  }

  #answer(row: string, read: ApiKey | undefined): void {
    const lookup = this.#lookups.get(row);
    if (lookup === undefined) return;
    if (lookup.isStale && lookup.written === undefined) {
      this.#waiting.push(row);
      return;
    }
    const key = lookup.written === undefined ? read : lookup.written.key;
    this.#lookups.delete(row);
    this.#found(row, key);
    lookup.resolve(key);
  }
}
