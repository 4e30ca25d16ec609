import { setTimeout as pass } from 'node:timers/promises';
import type { ApiKey } from '../../sdk/api-key.ts';

/** Most rows that wait to be read. */
const mostWaiting = 1_000;

/** Milliseconds between two questions to the database, however many unknown secrets come. */
const pause = 5;

/** A row that is being asked for. */
interface Lookup {
  readonly answered: Promise<ApiKey | undefined>;
  readonly resolve: (key: ApiKey | undefined) => void;
  readonly reject: (error: unknown) => void;
  /** What was written to the row meanwhile: what is read may be older. */
  written?: { readonly key: ApiKey | undefined };
  /** The row may have been written meanwhile. */
  isStale: boolean;
}

/**
 * Reads rows that memory does not know: each once for all who wait for it, and all that wait in one question, one question after the other.
 * So a flood of secrets that are none reaches the database no more often than `pause` allows.
 */
export class Lookups {
  readonly #read: (rows: string[]) => Promise<readonly (ApiKey | undefined)[]>;
  readonly #found: (row: string, key: ApiKey | undefined) => void;
  readonly #lookups = new Map<string, Lookup>();
  #waiting: string[] = [];
  #isReading = false;
  /** The question under way. */
  #question: Promise<void> | undefined;

  /** `found` is told what stands in a row before those who asked for it. */
  constructor(
    read: (rows: string[]) => Promise<readonly (ApiKey | undefined)[]>,
    found: (row: string, key: ApiKey | undefined) => void,
  ) {
    this.#read = read;
    this.#found = found;
  }

  /** The key in a row. Rejects when the database fails, and when too many wait already. */
  ask(row: string): Promise<ApiKey | undefined> {
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

  /** Somebody has written this to a row. */
  written(row: string, key: ApiKey | undefined): void {
    const lookup = this.#lookups.get(row);
    if (lookup !== undefined) lookup.written = { key };
  }

  /** Somebody may have written to any row. */
  writtenAll(): void {
    for (const lookup of this.#lookups.values()) lookup.isStale = true;
  }

  /** Waits for the question under way. */
  async close(): Promise<void> {
    await this.#question;
  }

  async #readAll(): Promise<void> {
    this.#isReading = true;
    // oxlint-disable no-await-in-loop -- one question at a time is the purpose
    while (this.#waiting.length > 0) {
      const rows = this.#waiting;
      this.#waiting = [];
      this.#question = this.#readSome(rows);
      await this.#question;
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
      // Those that came meanwhile would meet the same database.
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
