/** Runs long SELECT statements on an SQLite file in a worker thread, so that they do not block the event loop. */
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Row, SqlValue } from './sql-values.ts';

/** A query for the thread. */
export interface Question {
  readonly id: number;
  readonly sql: string;
  readonly values: readonly SqlValue[];
}

/** Response of the thread. */
export type Answer =
  | { readonly id: number; readonly rows: readonly Row[] }
  | { readonly id: number; readonly failure: string };

interface Waiting {
  readonly resolve: (rows: readonly Row[]) => void;
  readonly reject: (error: Error) => void;
}

/** Time without a query after which the thread ends, in milliseconds. */
const idle = 20_000;

/**
 * Runs queries one after the other. The thread starts with the first query and ends after a time without queries.
 */
export class SqliteReader {
  readonly #path: string;
  readonly #waiting = new Map<number, Waiting>();
  #thread: Worker | undefined;
  #timer: NodeJS.Timeout | undefined;
  #ids = 0;
  #isClosed = false;

  constructor(path: string) {
    this.#path = path;
  }

  /** Runs a SELECT; `?` is a placeholder. Rejects when it fails. */
  ask(sql: string, values: readonly SqlValue[]): Promise<readonly Row[]> {
    if (this.#isClosed) return Promise.reject(new Error('The database is closed.'));
    return new Promise((resolve, reject) => {
      clearTimeout(this.#timer);
      const thread = (this.#thread ??= this.#start());
      this.#ids += 1;
      const id = this.#ids;
      this.#waiting.set(id, { resolve, reject });
      thread.ref();
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- that is a matter of windows
      thread.postMessage({ id, sql, values } satisfies Question);
    });
  }

  /** Ends the thread. Rejects pending queries. */
  close(): void {
    this.#isClosed = true;
    this.#end();
  }

  #start(): Worker {
    const thread = new Worker(new URL(`sqlite-reader-thread${extname(import.meta.url)}`, import.meta.url), {
      execArgv: [],
      workerData: this.#path,
      resourceLimits: { maxYoungGenerationSizeMb: 16 },
    });
    thread.unref();
    thread.on('message', (answer: Answer) => this.#answered(answer));
    // An error is followed by the exit.
    let reason = 'The thread that reads the database has ended.';
    thread.on('error', (error) => (reason = error instanceof Error ? error.message : String(error)));
    thread.on('exit', () => {
      if (this.#thread !== thread) return;
      this.#thread = undefined;
      for (const { reject } of this.#waiting.values()) reject(new Error(reason));
      this.#waiting.clear();
    });
    return thread;
  }

  #answered(answer: Answer): void {
    const waiting = this.#waiting.get(answer.id);
    this.#waiting.delete(answer.id);
    if (this.#waiting.size === 0) {
      this.#thread?.unref();
      this.#timer = setTimeout(() => this.#end(), idle).unref();
    }
    if ('rows' in answer) waiting?.resolve(answer.rows);
    else waiting?.reject(new Error(answer.failure));
  }

  #end(): void {
    clearTimeout(this.#timer);
    void this.#thread?.terminate();
    if (!this.#isClosed) this.#thread = undefined;
  }
}
