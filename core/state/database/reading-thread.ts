/** Runs a program that reads a database in a thread of its own. */
import { Worker } from 'node:worker_threads';
import type { PostgresSettings } from '../../settings/database.ts';
import { PostgresError } from './postgres-error.ts';

/** The database that a thread reads: a file, or a server. */
export type ThreadTarget =
  | { readonly kind: 'sqlite'; readonly path: string }
  | { readonly kind: 'postgres'; readonly settings: PostgresSettings };

/** Message to the thread: a request, the id of an abandoned request, or the order to exit. */
export type ToThread =
  | { readonly id: number; readonly question: unknown }
  | { readonly abandoned: number }
  | { readonly isOver: true };

/** Connections of a thread to a server. */
export type ThreadConnections = Readonly<Record<'size' | 'inUse' | 'idle' | 'waiting', number>>;

/** Message from the thread: a result, a failure, an error that belongs to no request, or the state of its connections. */
export type FromThread =
  | { readonly id: number; readonly answer: unknown }
  | { readonly id: number; readonly failure: string; readonly isOfServer: boolean; readonly code?: string }
  | { readonly report: string }
  | { readonly connections: ThreadConnections };

interface Waiting {
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** Idle time in milliseconds after which the thread exits. */
const idle = 20_000;

/** Maximum time in milliseconds for a thread to close its connections. */
const closing = 2_000;

/**
 * Runs a program in a thread, so that long reads of an operator do not delay calls: neither by SQLite's work nor by the work on
 * statements, rows and results. The thread starts with the first request and exits when it has been idle.
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

  /** `report` receives errors that belong to no request. */
  constructor(program: URL, target: ThreadTarget, report: (error: Error) => void = () => {}) {
    this.#program = program;
    this.#target = target;
    this.#report = report;
  }

  /** Connections of the thread as it last reported them, at most a second ago. Undefined while there is no thread. */
  get connections(): ThreadConnections | undefined {
    return this.#thread === undefined ? undefined : this.#connections;
  }

  /**
   * Sends a request to the program. Rejects with the program's error, when the thread exits, and with the signal's reason when the signal is
   * aborted. The program runs no further statement for an aborted request.
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

  /** Ends the thread. Rejects pending requests. */
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

  /** Terminates a thread that reads a file. A thread that reads a server closes its connections first. */
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
