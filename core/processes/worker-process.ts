/** One worker as the primary process sees it: its start, state, messages and end. */
import cluster, { type Worker } from 'node:cluster';
import { getCompileCacheDir } from 'node:module';
import { dirname } from 'node:path';
import type { Log } from '../log.ts';
import { workerArguments } from '../performance/memory.ts';
import type { WorkerStatus } from '../state/links/processes.ts';
import { handConnections } from './handed-connections.ts';
import type { Facts, StartOrder, ToPrimary, ToWorker } from './messages.ts';

/** Time in milliseconds that a worker has to end after its deadline, before it is killed. */
const grace = 5_000;

/** Number and generation of a worker. */
export interface WorkerIdentity {
  /** Its number among those that serve together, from 1 on. */
  readonly worker: number;
  readonly generation: number;
  /** True for one that takes connections only while another worker is missing. */
  readonly isSpare?: boolean;
}

/** Result of a worker's start. */
export type Start =
  | { readonly facts: Facts }
  | { readonly problems: readonly string[] }
  /** The worker exited without a message. */
  | { readonly ended: string };

/** Result of a worker's trial time: it still serves, or it ended with a signal or an exit code. */
export type Trial = { readonly serves: true } | { readonly ended: string | number };

/** Questions of a worker that serves to the primary process. */
export type Question = Exclude<ToPrimary, { type: 'awake' | 'ready' | 'tried' | 'retired' | 'failed' }>;

/** Callbacks of the primary process for a worker. */
export interface WorkerOwner {
  /** Returns the order that the worker gets when it is awake. */
  order(): StartOrder;
  /** Called when the worker serves. */
  ready(): void;
  answer(question: Question): void;
  /** `how`: the signal or the code with which it ended. */
  ended(how: string | number): void;
  /** Returns the log as it is now. */
  log(): Log;
}

/** Sets the program that workers run. Called before the first one is started. */
export function prepareWorkers(program: string): void {
  cluster.schedulingPolicy = cluster.SCHED_RR;
  cluster.setupPrimary({ exec: program, args: [], execArgv: workerArguments(process.execArgv) });
}

/** One worker. The constructor starts its process. */
export class WorkerProcess {
  /** Its number among those that serve together, from 1 on. */
  readonly worker: number;
  readonly generation: number;
  /** True for one that takes connections only while another worker is missing. */
  readonly isSpare: boolean;
  readonly start: Promise<Start>;
  readonly trial: Promise<Trial>;
  /** Resolves when it takes no more connections, after `retire`, or has ended. */
  readonly retired: Promise<void>;
  /** Resolves to the signal or the exit code. */
  readonly ended: Promise<string | number>;
  /** Absent if the system refused to start the process. */
  readonly #process: Worker | undefined;
  readonly #owner: WorkerOwner;
  #state: WorkerStatus['state'] = 'starting';
  #since = Date.now();
  #facts: Facts | undefined;
  /** True when the worker has unread messages. Optional messages are not sent meanwhile. */
  #isBehind = false;

  constructor({ worker, generation, isSpare = false }: WorkerIdentity, owner: WorkerOwner) {
    this.worker = worker;
    this.generation = generation;
    this.isSpare = isSpare;
    this.#owner = owner;
    const started = Promise.withResolvers<Start>();
    const trial = Promise.withResolvers<Trial>();
    const retired = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<string | number>();
    this.start = started.promise;
    this.trial = trial.promise;
    this.retired = retired.promise;
    this.ended = ended.promise;
    this.#process = forkProcess((how) => {
      started.resolve({ ended: typeof how === 'number' ? `code ${how}` : how });
      trial.resolve({ ended: how });
      retired.resolve();
      ended.resolve(how);
      this.#owner.ended(how);
    });
    if (this.#process !== undefined)
      handConnections(this.#process.process, {
        ...(isSpare ? { spareBeside: () => this.#facts?.workers ?? 1 } : {}),
        lost: (count) => this.#lostConnections(count),
        turnedAway: (count) => this.#turnedAwayConnections(count),
      });
    this.#process?.on('message', (message: ToPrimary) => {
      if (message.type === 'tried') trial.resolve({ serves: true });
      else if (message.type === 'retired') retired.resolve();
      else this.#handleMessage(message, started.resolve);
    });
  }

  /** Unique among the processes of this gateway. */
  get id(): number {
    return this.#process?.id ?? 0;
  }

  get state(): WorkerStatus['state'] {
    return this.#state;
  }

  /** Start of its state, in milliseconds since 1970. */
  get since(): number {
    return this.#since;
  }

  /** Facts that the worker reports once it serves. */
  get facts(): Facts | undefined {
    return this.#facts;
  }

  get status(): WorkerStatus {
    return {
      worker: this.worker,
      pid: this.#process?.process.pid ?? 0,
      state: this.#state === 'serving' && this.isSpare ? 'spare' : this.#state,
      version: this.#facts?.version ?? '',
      since: this.#since,
    };
  }

  send(message: ToWorker): void {
    if (this.#process?.isConnected()) this.#process.send(message);
  }

  /** Sends a message that the worker can do without. Returns false where it is not sent, because the worker has not read earlier ones. */
  offer(message: ToWorker): boolean {
    if (this.#isBehind || !this.#process?.isConnected()) return false;
    this.#isBehind = !this.#process.send(message, undefined, {}, () => {
      this.#isBehind = false;
    });
    return true;
  }

  /** Lets the worker finish its calls within `timeouts.reload`, because another one has taken over. */
  retire(): void {
    if (this.#state === 'leaving') return;
    this.#state = 'leaving';
    this.#since = Date.now();
    this.send({ type: 'retire' });
    this.#endWithin((this.#facts?.reload ?? 0) + grace);
  }

  /** Makes it close, after `retire`, the connections over which no call runs, so that it ends with its last call. */
  letGo(): void {
    this.send({ type: 'let-go' });
  }

  /** Announces to load balancers that the gateway will stop. The worker still serves. */
  announce(): void {
    if (this.#state === 'starting') this.stop();
    else this.send({ type: 'announce' });
  }

  /** Lets the worker finish its calls within `timeouts.drain`, because the gateway stops. */
  stop(): void {
    this.#state = 'leaving';
    this.send({ type: 'stop' });
    this.#endWithin((this.#facts?.drain ?? 0) + grace);
  }

  kill(): void {
    this.#process?.process.kill('SIGKILL');
  }

  #handleMessage(
    message: Exclude<ToPrimary, { type: 'tried' | 'retired' }>,
    started: (start: Start) => void,
  ): void {
    switch (message.type) {
      case 'awake':
        this.send(this.#state === 'leaving' ? { type: 'stop' } : this.#owner.order());
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
        this.#owner.answer(message);
    }
  }

  #lostConnections(count: number): void {
    this.#owner
      .log()
      .error(
        { worker: this.worker, pid: this.#process?.process.pid, count },
        'connections were closed before they reached the worker, which may have no file descriptors left. Raise the limit (ulimit -n)',
      );
  }

  #turnedAwayConnections(count: number): void {
    this.#owner
      .log()
      .error(
        { count },
        'connections were closed: too many are waiting for workers. Run more workers or gateways',
      );
  }

  /** Kills the worker when it has not ended after `time` milliseconds. */
  #endWithin(time: number): void {
    const timer = setTimeout(() => {
      this.#owner.log().error({ worker: this.worker }, 'a worker did not exit in time and is killed');
      this.kill();
    }, time);
    void this.ended.then(() => clearTimeout(timer));
  }
}

/**
 * Starts a process. `ended` runs once, later, with its signal or exit code, or with the reason why the system did not start it. Such a
 * process has no exit: a lack of descriptors or processes is an `error` event, and a lack of memory is thrown.
 */
function forkProcess(ended: (how: string | number) => void): Worker | undefined {
  // The folder of the cache is one of this version of Node, within the one that is to be named.
  const compiled = getCompileCacheDir();
  try {
    const worker = cluster.fork(compiled === undefined ? {} : { NODE_COMPILE_CACHE: dirname(compiled) });
    worker.once('exit', (code, signal) => ended(signal ?? code));
    worker.on('error', (error) => {
      // Other errors are of messages to a process that has just ended: its exit counts.
      if (worker.process.pid === undefined) ended(refusalOf(error));
    });
    return worker;
  } catch (error) {
    queueMicrotask(() => ended(refusalOf(error)));
    return undefined;
  }
}

function refusalOf(error: unknown): string {
  return `the system did not start it: ${error instanceof Error ? error.message : String(error)}`;
}
