/** Asks a program that reads a database in a thread of its own. */
import { Worker } from 'node:worker_threads';
import type { PostgresSettings } from '../../settings/database.ts';
import { PostgresError } from './postgres-error.ts';

/** The database that a thread reads: a file, or a server. */
export type ThreadTarget =
  | { readonly kind: 'sqlite'; readonly path: string }
  | { readonly kind: 'postgres'; readonly settings: PostgresSettings };

/** A message to the thread: a question, the id of a question that was abandoned, or the request to end. */
export type ToThread =
  | { readonly id: number; readonly question: unknown }
  | { readonly abandoned: number }
  | { readonly isOver: true };

/** Connections of a thread to a server. */
export type ThreadConnections = Readonly<Record<'size' | 'inUse' | 'idle' | 'waiting', number>>;

/** A message from the thread: an answer, a failure, an error that no question waits for, or how its connections stand. */
export type FromThread =
  | { readonly id: number; readonly answer: unknown }
  | { readonly id: number; readonly failure: string; readonly isOfServer: boolean; readonly code?: string }
  | { readonly report: string }
  | { readonly connections: ThreadConnections };

interface Waiting {
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** How long the thread is kept without a question, in milliseconds. */
const idle = 20_000;

/** How long a thread may take to close its connections, in milliseconds. */
const closing = 2_000;

/**
 * Runs a program in a thread, so that long reads of an operator hold no call up: neither the database's work where it is a file, nor that of
 * statements, rows and answers. The thread starts with the first question, and ends when nobody asks for a while.
 */
export class ReadingThread {
  readonly #program: URL;
  readonly #target: ThreadTarget;
  readonly #report: (error: Error) => void;
  readonly #waiting = new Map<number, Waiting>();
  #thread: Worker | undefined;
  #connections: ThreadConnections | undefined;
  #timer: NodeJS.Timeout | undefined;
  #ids = 0;
  #isClosed = false;

  /** `report` gets errors that no question waits for. */
  constructor(program: URL, target: ThreadTarget, report: (error: Error) => void = () => {}) {
    this.#program = program;
    this.#target = target;
    this.#report = report;
  }

  /** The connections of the thread as it reported them within the last second. Undefined while there is no thread. */
  get connections(): ThreadConnections | undefined {
    return this.#thread === undefined ? undefined : this.#connections;
  }

  /**
   * Asks the program. Rejects with what it rejects with, when the thread ends, and with the reason of the signal when that is aborted: the program
   * runs no further statement for the question.
   */
  ask(question: unknown, signal?: AbortSignal): Promise<unknown> {
    if (this.#isClosed) return Promise.reject(new Error('The database is closed.'));
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      clearTimeout(this.#timer);
      const thread = (this.#thread ??= this.#start());
      this.#ids += 1;
      const id = this.#ids;
      this.#waiting.set(id, { resolve, reject });
      thread.ref();
      send(thread, { id, question });
      signal?.addEventListener('abort', () => {
        if (!this.#waiting.has(id)) return;
        reject(signal.reason as Error);
        if (this.#thread === thread) send(thread, { abandoned: id });
      });
    });
  }

  /** Ends the thread. Questions without an answer are rejected. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const thread = this.#thread;
    this.#rejectAll('The database is closed.');
    this.#end();
    if (thread === undefined || this.#target.kind === 'sqlite') return;
    await new Promise<void>((resolve) => {
      const late = setTimeout(() => void thread.terminate(), closing);
      thread.once('exit', () => {
        clearTimeout(late);
        resolve();
      });
    });
  }

  #start(): Worker {
    this.#connections = undefined;
    const thread = new Worker(this.#program, {
      execArgv: [],
      workerData: this.#target,
      resourceLimits: { maxYoungGenerationSizeMb: 16 },
    });
    thread.unref();
    thread.on('message', (message: FromThread) => this.#received(message));
    // An error is followed by the exit.
    let reason = 'The thread that reads the database has ended.';
    thread.on('error', (error) => (reason = error instanceof Error ? error.message : String(error)));
    thread.on('exit', () => {
      if (this.#thread !== thread) return;
      this.#thread = undefined;
      this.#rejectAll(reason);
    });
    return thread;
  }

  #received(message: FromThread): void {
    if ('connections' in message) {
      this.#connections = message.connections;
      return;
    }
    if ('report' in message) {
      this.#report(new Error(message.report));
      return;
    }
    const waiting = this.#waiting.get(message.id);
    this.#waiting.delete(message.id);
    if (this.#waiting.size === 0) {
      this.#thread?.unref();
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.#end(), idle).unref();
    }
    if ('answer' in message) waiting?.resolve(message.answer);
    else waiting?.reject(errorOf(message));
  }

  #rejectAll(reason: string): void {
    for (const { reject } of this.#waiting.values()) reject(new Error(reason));
    this.#waiting.clear();
  }

  /** A file needs no end; a server is told that its connections close. */
  #end(): void {
    clearTimeout(this.#timer);
    const thread = this.#thread;
    this.#thread = undefined;
    if (thread === undefined) return;
    if (this.#target.kind === 'sqlite') void thread.terminate();
    else send(thread, { isOver: true });
  }
}

function send(thread: Worker, message: ToThread): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- that is a matter of windows
  thread.postMessage(message);
}

function errorOf({ failure, isOfServer, code }: Extract<FromThread, { failure: string }>): Error {
  if (!isOfServer) return new Error(failure);
  return new PostgresError(failure, Object.assign(new Error(failure), { code }));
}
