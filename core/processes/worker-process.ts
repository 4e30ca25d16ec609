import cluster, { type Worker } from 'node:cluster';
import { getCompileCacheDir } from 'node:module';
import { dirname } from 'node:path';
import type { Log } from '../log.ts';
import type { WorkerStatus } from '../state/links/processes.ts';
import type { Facts, StartOrder, ToPrimary, ToWorker } from './messages.ts';

/** For a worker to end after its time has passed, in milliseconds: then it is killed. */
const grace = 5_000;

/** How a worker's start came out. */
export type Start =
  | { readonly facts: Facts }
  | { readonly problems: readonly string[] }
  /** It ended without a word. */
  | { readonly ended: string };

/** What a worker asks of the primary process once it serves. */
export type Question = Exclude<ToPrimary, { type: 'awake' | 'ready' | 'failed' }>;

/** What the primary process does for a worker. */
export interface WorkerOwner {
  /** What it is told when it is awake. */
  order(): StartOrder;
  /** It serves from now on. */
  ready(): void;
  asked(question: Question): void;
  /** `how`: the signal or the code with which it ended. */
  ended(how: string | number): void;
  /** The log as it is now. */
  log(): Log;
}

/** Says which program workers run. Called before the first of them is made. */
export function prepareWorkers(program: string): void {
  cluster.schedulingPolicy = cluster.SCHED_RR;
  cluster.setupPrimary({ exec: program, args: [], execArgv: workerArguments(process.execArgv) });
}

/** A process that serves, or will, or did: as the primary process sees it. It runs as soon as it is made. */
export class WorkerProcess {
  /** Its number among those that serve together, from 1 on. */
  readonly worker: number;
  readonly generation: number;
  readonly start: Promise<Start>;
  readonly ended: Promise<void>;
  readonly #process: Worker;
  readonly #owner: WorkerOwner;
  #state: WorkerStatus['state'] = 'starting';
  #since = Date.now();
  #facts: Facts | undefined;
  /** It has not read what was sent to it: news that it can do without are not sent meanwhile. */
  #isBehind = false;

  constructor(worker: number, generation: number, owner: WorkerOwner) {
    this.worker = worker;
    this.generation = generation;
    this.#owner = owner;
    // Its folder is one of this version of Node, within the one that is to be named.
    const compiled = getCompileCacheDir();
    this.#process = cluster.fork(compiled === undefined ? {} : { NODE_COMPILE_CACHE: dirname(compiled) });
    const started = Promise.withResolvers<Start>();
    const ended = Promise.withResolvers<void>();
    this.start = started.promise;
    this.ended = ended.promise;
    this.#process.on('message', (message: ToPrimary) => this.#heard(message, started.resolve));
    // A message to a process that has just ended: its exit is what counts.
    this.#process.on('error', () => {});
    this.#process.once('exit', (code, signal) => {
      started.resolve({ ended: signal ?? `code ${code}` });
      ended.resolve();
      this.#owner.ended(signal ?? code);
    });
  }

  /** No other process of this gateway has it. */
  get id(): number {
    return this.#process.id;
  }

  get state(): WorkerStatus['state'] {
    return this.#state;
  }

  /** When its state began, in milliseconds since 1970. */
  get since(): number {
    return this.#since;
  }

  /** What it says of itself, once it serves. */
  get facts(): Facts | undefined {
    return this.#facts;
  }

  get status(): WorkerStatus {
    return {
      worker: this.worker,
      pid: this.#process.process.pid ?? 0,
      state: this.#state,
      version: this.#facts?.version ?? '',
      since: this.#since,
    };
  }

  tell(message: ToWorker): void {
    if (this.#process.isConnected()) this.#process.send(message);
  }

  /** Tells it what it can do without. False where it was not sent, because the worker reads nothing. */
  offer(message: ToWorker): boolean {
    if (this.#isBehind || !this.#process.isConnected()) return false;
    this.#isBehind = !this.#process.send(message, undefined, {}, () => {
      this.#isBehind = false;
    });
    return true;
  }

  /** Another one has taken over: it finishes what it has, in the time that a reload gives. */
  retire(): void {
    if (this.#state === 'leaving') return;
    this.#state = 'leaving';
    this.#since = Date.now();
    this.tell({ type: 'retire' });
    this.#endWithin((this.#facts?.reload ?? 0) + grace);
  }

  /** The gateway stops: it finishes what it has, in the time that this gives. */
  stop(): void {
    this.#state = 'leaving';
    this.tell({ type: 'stop' });
    this.#endWithin((this.#facts?.drain ?? 0) + grace);
  }

  kill(): void {
    this.#process.process.kill('SIGKILL');
  }

  #heard(message: ToPrimary, started: (start: Start) => void): void {
    switch (message.type) {
      case 'awake':
        this.tell(this.#state === 'leaving' ? { type: 'stop' } : this.#owner.order());
        return;
      case 'ready':
        this.#facts = message.facts;
        this.#since = Date.now();
        if (this.#state === 'starting') this.#state = 'serving';
        this.#owner.ready();
        started({ facts: message.facts });
        return;
      case 'failed':
        this.#state = 'leaving';
        this.#endWithin(grace);
        started({ problems: message.problems });
        return;
      default:
        this.#owner.asked(message);
    }
  }

  /** Kills it when it has not ended in its time: something in it is stuck. */
  #endWithin(time: number): void {
    const timer = setTimeout(() => {
      this.#owner.log().error({ worker: this.worker }, 'a worker did not end in its time, and is killed');
      this.kill();
    }, time);
    void this.ended.then(() => clearTimeout(timer));
  }
}

/**
 * Megabytes in which young objects stand, unless whoever started the gateway has said otherwise: for less memory, not for speed. With 64 a small
 * call costs 7 % less, an agent's first turn 5 % and a long one the same, and a busy worker holds 370 MB in place of 250.
 */
const semiSpace = '--max-semi-space-size=16';

/** The arguments of Node that a worker gets. */
function workerArguments(own: readonly string[]): string[] {
  const isTold = own.some((argument) => argument.startsWith('--max-semi-space-size'));
  return isTold ? [...own] : [...own, semiSpace];
}
