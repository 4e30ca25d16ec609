import { createLog, type Log } from '../log.ts';
import { Desks } from './desks.ts';
import { firstPause, launchGeneration, mostEarlyEnds, type Launcher } from './launch.ts';
import type { Facts, StartOrder } from './messages.ts';
import type { ProcessesStatus, ReloadOutcome } from '../state/links/processes.ts';
import { publicWords } from './public-words.ts';
import { Watch } from './watch.ts';
import { prepareWorkers, WorkerProcess, type Question } from './worker-process.ts';

/** A worker that ended earlier after it had begun to serve is no good, in milliseconds. */
const soundAfter = 10_000;

/** The longest wait before a worker is started in the place of one that ended, in milliseconds. */
const longestPause = 10_000;

/** Configurations whose workers may be leaving at once: the oldest beyond them get no more time than when the gateway stops. */
const mostLeaving = 4;

/** What a primary process is made of. */
export interface PrimaryOptions {
  /** The program that workers run. */
  readonly program: string;
  /** `--config`, as the operator gave it. */
  readonly config: string | undefined;
  /** Follow changes of files. */
  readonly watch: boolean;
  /** Shows the operator something that is no log line. */
  readonly show: (text: string) => void;
}

/**
 * Starts workers, starts others in their place, and lets them end. It serves nothing by itself. A reload starts new workers with what the
 * files say now, and only when all of them serve the old ones are told to finish: modules cannot be unloaded, processes can.
 */
export class Primary {
  readonly #options: PrimaryOptions;
  readonly #workers = new Set<WorkerProcess>();
  readonly #desks = new Desks();
  readonly #givenUp = Promise.withResolvers<string>();
  #log: Log = createLog('silent');
  /** What is in force: the facts of the first worker of the generation that serves. */
  #facts: Facts | undefined;
  /** What workers ask for where the config leaves the port open. */
  #freePort = 0;
  #generation = 0;
  readonly #launcher: Launcher;
  /** The generation that serves. */
  #inForce = 0;
  #since = Date.now();
  #stopping = false;
  readonly #stopped = Promise.withResolvers<void>();
  #reloading: Promise<ReloadOutcome> | undefined;
  #queued: Promise<ReloadOutcome> | undefined;
  #lastReload: ProcessesStatus['lastReload'];
  #crashes = 0;
  #earlyEnds = 0;
  #isSound = false;
  #watch: Watch | undefined;

  constructor(options: PrimaryOptions) {
    this.#options = options;
    prepareWorkers(options.program);
    this.#launcher = {
      nextGeneration: () => (this.#generation += 1),
      fork: (number, generation) => this.#fork(number, generation),
      pause: (time) => this.#pause(time),
      isStopping: () => this.#stopping,
      log: () => this.#log,
    };
  }

  /** Resolves to a sentence when workers end again and again, and there is no point in going on. */
  get givenUp(): Promise<string> {
    return this.#givenUp.promise;
  }

  /** Starts the first workers. The problems say why it cannot: they are none when it was told to stop meanwhile. */
  async start(): Promise<{ readonly ok: boolean; readonly problems: readonly string[] }> {
    const outcome = await launchGeneration(this.#launcher);
    if (this.#stopping) return { ok: false, problems: [] };
    if ('problems' in outcome) {
      await this.kill();
      return { ok: false, problems: outcome.problems };
    }
    const [first] = outcome.workers;
    this.#enforce(outcome.workers);
    if (first?.facts?.banner !== undefined) this.#options.show(first.facts.banner);
    return { ok: true, problems: [] };
  }

  /** Puts in force what the files say now. Whoever asks while it is being done hears of a second one, which follows. */
  reload(reason: string): Promise<ReloadOutcome> {
    if (this.#reloading !== undefined) {
      this.#queued ??= this.#reloading.then(() => {
        this.#queued = undefined;
        return this.reload(reason);
      });
      return this.#queued;
    }
    this.#reloading = this.#reload(reason).finally(() => {
      this.#reloading = undefined;
    });
    return this.#reloading;
  }

  /** Lets open calls finish within the drain time. Resolves when no worker is left. */
  async stop(signal: string): Promise<void> {
    this.#startNoMore();
    this.#log.info({ signal }, 'stopping: open calls may finish');
    for (const worker of this.#workers) worker.stop();
    await this.#allEnded();
    this.#log.info('stopped');
  }

  /** Ends all workers at once. */
  async kill(): Promise<void> {
    this.#startNoMore();
    for (const worker of this.#workers) worker.kill();
    await this.#allEnded();
  }

  /** Whoever waits to start a worker is told that there is none to be started any more. */
  #startNoMore(): void {
    this.#stopping = true;
    this.#stopped.resolve();
    this.#watch?.close();
  }

  /** Waits, but no longer than until the gateway stops. */
  #pause(time: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, time);
      void this.#stopped.promise.then(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  status(): ProcessesStatus {
    return {
      version: this.#facts?.version ?? '',
      since: this.#since,
      reloads: true,
      watching: this.#watch !== undefined,
      ...(this.#lastReload === undefined ? {} : { lastReload: this.#lastReload }),
      crashes: this.#crashes,
      workers: [...this.#workers].map(({ status }) => status),
    };
  }

  async #reload(reason: string): Promise<ReloadOutcome> {
    if (this.#stopping || this.#facts === undefined)
      return { ok: false, problems: [`The gateway is ${this.#stopping ? 'stopping' : 'starting'}.`] };
    this.#log.info({ reason }, 'reloading');
    const began = performance.now();
    const before = [...this.#workers].filter(({ state }) => state !== 'leaving');
    const launched = await launchGeneration(this.#launcher);
    const at = Date.now();
    const ms = Math.round(performance.now() - began);
    if ('problems' in launched || this.#stopping) {
      const problems =
        'problems' in launched
          ? publicWords(launched.problems, this.#facts?.root)
          : ['The gateway is stopping.'];
      for (const problem of problems)
        this.#log.error({ problem }, 'the reload failed: what ran before goes on');
      this.#lastReload = { ok: false, problems, at, ms };
      return { ok: false, problems };
    }
    this.#enforce(launched.workers);
    for (const worker of before) worker.retire();
    this.#limitLeaving();
    const [first] = launched.workers;
    if (first?.facts?.banner !== undefined) this.#options.show(first.facts.banner);
    this.#lastReload = { ok: true, problems: [], at, ms };
    this.#log.info(
      { version: this.#facts?.version, ms },
      'reloaded: the workers before finish what they have',
    );
    return { ok: true, problems: [] };
  }

  #fork(number: number, generation: number): WorkerProcess {
    const worker: WorkerProcess = new WorkerProcess(number, generation, {
      order: () => this.#startOrder(number),
      ready: () => {
        this.#desks.join(worker);
        setTimeout(() => {
          if (this.#workers.has(worker)) this.#isSound = true;
        }, soundAfter).unref();
      },
      asked: (question) => this.#answer(worker, question),
      ended: (how) => {
        this.#workers.delete(worker);
        this.#desks.forget(worker);
        if (worker.state === 'serving' && generation === this.#inForce) void this.#replace(worker, how);
      },
      log: () => this.#log,
    });
    this.#workers.add(worker);
    return worker;
  }

  #startOrder(worker: number): StartOrder {
    const facts = this.#facts;
    // While a worker listens on a port that was found, others get the same one by asking for any. When none does it must be asked for.
    if (facts !== undefined && [...this.#workers].every(({ state }) => state !== 'serving'))
      this.#freePort = facts.foundPort;
    return {
      type: 'start',
      ...(this.#options.config === undefined ? {} : { config: this.#options.config }),
      worker,
      ...(facts === undefined
        ? {}
        : { before: { database: facts.database, host: facts.host, port: facts.port } }),
      freePort: this.#freePort,
    };
  }

  #answer(worker: WorkerProcess, question: Question): void {
    switch (question.type) {
      case 'status':
        worker.tell({ type: 'told', id: question.id, status: this.status() });
        return;
      case 'reload':
        void this.reload('asked').then((outcome) =>
          worker.tell({ type: 'reloaded', id: question.id, outcome }),
        );
        return;
      default:
        this.#desks.hear(worker, question);
    }
  }

  /** A worker ended by itself: another one takes its place, later each time that it does not last. */
  async #replace(lost: WorkerProcess, how: string | number): Promise<void> {
    if (this.#stopping) return;
    this.#crashes += 1;
    const lasted = Date.now() - lost.since;
    this.#earlyEnds = lasted < soundAfter ? this.#earlyEnds + 1 : 0;
    this.#log.error(
      { worker: lost.worker, how, lasted },
      'a worker ended by itself: another one takes its place',
    );
    for (;;) {
      if (!this.#isSound && this.#earlyEnds >= mostEarlyEnds) {
        this.#givenUp.resolve(
          `A worker process ended ${mostEarlyEnds} times, each time soon after its start (${how}). The log says why.`,
        );
        return;
      }
      await this.#pause(Math.min(longestPause, firstPause * 2 ** Math.max(0, this.#earlyEnds - 1)));
      // After a reload its place belongs to another one.
      if (this.#stopping || lost.generation !== this.#inForce) return;
      const start = await this.#fork(lost.worker, lost.generation).start;
      if (this.#stopping) return;
      if ('facts' in start) {
        if (start.facts.files !== this.#facts?.files)
          void this.reload('files had changed when a worker took the place of another');
        return;
      }
      this.#earlyEnds += 1;
      const problems = 'problems' in start ? publicWords(start.problems, this.#facts?.root) : [start.ended];
      this.#log.error({ worker: lost.worker, problems }, 'a worker cannot start: it is tried again');
    }
  }

  #enforce(workers: readonly WorkerProcess[]): void {
    const [first] = workers;
    if (first?.facts === undefined) return;
    const before = this.#facts;
    this.#facts = first.facts;
    this.#inForce = first.generation;
    this.#since = Date.now();
    // Whatever has ended before its generation was in force has been replaced by nobody.
    for (const worker of workers) if (!this.#workers.has(worker)) void this.#replace(worker, 'early');
    if (before?.logLevel !== first.facts.logLevel) this.#log = createLog(first.facts.logLevel);
    if (!this.#options.watch || before?.file === first.facts.file) return;
    this.#watch?.close();
    this.#watch = new Watch(first.facts.file, () => void this.reload('a file has changed'));
  }

  #limitLeaving(): void {
    const leaving = [...this.#workers].filter(({ state }) => state === 'leaving');
    const generations = [...new Set(leaving.map(({ generation }) => generation))].toSorted((a, b) => b - a);
    const kept = new Set(generations.slice(0, mostLeaving));
    for (const worker of leaving) if (!kept.has(worker.generation)) worker.stop();
  }

  async #allEnded(): Promise<void> {
    while (this.#workers.size > 0) await Promise.all([...this.#workers].map(({ ended }) => ended));
  }
}
