/** The primary process: starts, reloads, replaces and stops workers, and serves no calls itself. */
import { createLog, type Log } from '../log.ts';
import { firstLogLevel } from '../settings/environment.ts';
import { Announcement } from './announcement.ts';
import { SharedState } from './shared-state.ts';
import { HandedSecrets } from './handed-secrets.ts';
import { haveReadTheSame, launchGeneration, launchRound, type Launcher, type Round } from './launch.ts';
import type { Facts, StartOrder } from './messages.ts';
import type { ProcessesStatus, ReloadOutcome } from '../state/links/processes.ts';
import { redactProblems } from './redact-problems.ts';
import { ReloadQueue } from './reload-queue.ts';
import { Restarts } from './restarts.ts';
import { limitLeaving, RuntimeReloads } from './runtime-reloads.ts';
import { Watch } from './watch.ts';
import { prepareWorkers, WorkerProcess, type WorkerIdentity, type Question } from './worker-process.ts';

/** Configurations whose workers may be leaving at once: the oldest beyond them get no more time than when the gateway stops. */
const mostLeaving = 4;

/** Options of a primary process. */
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
 * Workers of one gateway. A reload starts new workers with the current files and retires the old ones when all new ones serve, because a
 * process can be replaced, but a loaded module cannot.
 */
export class Primary {
  readonly #options: PrimaryOptions;
  readonly #workers = new Set<WorkerProcess>();
  readonly #shared = new SharedState();
  readonly #secrets = new HandedSecrets();
  /** Replaced when the config is known. The first one logs what happens before that. */
  #log: Log = createLog(firstLogLevel());
  /** Facts of the first worker of the generation that serves. */
  #facts: Facts | undefined;
  /** Port that workers listen on where the config has port 0; 0: any free one. */
  #freePort = 0;
  #generation = 0;
  readonly #launcher: Launcher;
  readonly #restarts: Restarts;
  /** The generation that serves. */
  #inForce = 0;
  #since = Date.now();
  #stopping = false;
  readonly #announcement = new Announcement();
  readonly #started = Promise.withResolvers<void>();
  readonly #stopped = Promise.withResolvers<void>();
  readonly #reloads = new ReloadQueue((reason) => this.#reload(reason));
  readonly #runtimeReloads = new RuntimeReloads({
    revision: () => this.#facts?.runtimeRevision ?? 0,
    reload: () => this.reload('the run-time configuration was changed'),
    leaving: () => (this.#stopping ? [] : this.#leaving()),
    maxLeaving: mostLeaving,
    stopped: this.#stopped.promise,
  });
  #lastReload: ProcessesStatus['lastReload'];
  #watch: Watch | undefined;

  constructor(options: PrimaryOptions) {
    this.#options = options;
    prepareWorkers(options.program);
    this.#launcher = {
      nextGeneration: () => (this.#generation += 1),
      fork: (identity) => this.#fork(identity),
      pause: (time) => this.#pause(time),
      isStopping: () => this.#stopping,
      log: () => this.#log,
    };
    this.#restarts = new Restarts({
      ...this.#launcher,
      isInForce: (generation) => generation === this.#inForce,
      isServing: () => this.#isServing(),
      restarted: ({ files }) => {
        if (files !== this.#facts?.files) void this.reload('files had changed when a worker was replaced');
      },
      root: () => this.#facts?.root,
    });
  }

  /** Resolves to a reason when no worker serves and new ones end again and again. */
  get givenUp(): Promise<string> {
    return this.#restarts.givenUp;
  }

  /**
   * Starts the first workers. Fails, with the problems, only if none of them can serve: from the first one on there are clients. The
   * problems are empty if the gateway was stopped meanwhile.
   */
  async start(): Promise<{ readonly ok: boolean; readonly problems: readonly string[] }> {
    const round = await launchRound(this.#launcher, (first) => this.#enforce([first]));
    if (this.#stopping) return { ok: false, problems: [] };
    const [first] = round.workers;
    if (first === undefined) {
      await this.kill();
      return { ok: false, problems: round.problems };
    }
    if (first.facts?.banner !== undefined) this.#options.show(first.facts.banner);
    this.#started.resolve();
    this.#complete(round);
    return { ok: true, problems: [] };
  }

  /** Tries again the workers of the first start that failed, or follows files that changed during it. */
  #complete({ workers, missing, problems }: Round): void {
    for (const worker of missing) {
      this.#restarts.report(worker, problems);
      void this.#restarts.startWorker({ worker, generation: this.#inForce }, 'early');
    }
    if (missing.length === 0 && !haveReadTheSame(workers))
      void this.reload('files changed while workers read them');
  }

  /** Loads the files as they are now. During a reload, callers share a second one that follows it. */
  reload(reason: string): Promise<ReloadOutcome> {
    return this.#reloads.run(reason);
  }

  /**
   * Announces the stop for `timeouts.drainDelay` unless `announces` is false, then lets open calls finish within `timeouts.drain`. Resolves
   * when no worker is left.
   */
  async stop(signal: string, announces = true): Promise<void> {
    this.#startNoMore();
    const delay = announces && this.#isServing() ? (this.#facts?.drainDelay ?? 0) : 0;
    if (delay > 0) {
      this.#log.info(
        { signal, delay },
        'stopping soon: /readyz answers 503, and new connections are still served',
      );
      for (const worker of this.#workers) worker.announce();
      await this.#announcement.last(delay, this.#allEnded());
    }
    this.#log.info({ signal }, 'stopping: waiting for running calls');
    for (const worker of this.#workers) worker.stop();
    await this.#allEnded();
    this.#log.info('stopped');
  }

  /** Ends the announcement of a stop early. Returns false if there is none. */
  hurry(): boolean {
    return this.#announcement.end();
  }

  /** Ends all workers at once. */
  async kill(): Promise<void> {
    this.#startNoMore();
    for (const worker of this.#workers) worker.kill();
    await this.#allEnded();
  }

  /** Starts no more workers: ends all waits for a start, and stops watching files. */
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
      crashes: this.#restarts.crashes,
      ...(this.#restarts.lastCrashAt === undefined ? {} : { lastCrashAt: this.#restarts.lastCrashAt }),
      workers: [...this.#workers].map(({ status }) => status),
    };
  }

  async #reload(reason: string): Promise<ReloadOutcome> {
    // The workers of the first start belong to one generation: another one must not take over in between.
    await Promise.race([this.#started.promise, this.#stopped.promise]);
    if (this.#stopping) return { ok: false, problems: ['The gateway is stopping.'] };
    this.#log.info({ reason }, 'reloading');
    const began = performance.now();
    const launched = await launchGeneration(this.#launcher);
    const at = Date.now();
    const ms = Math.round(performance.now() - began);
    if ('problems' in launched || this.#stopping) {
      const problems =
        'problems' in launched
          ? redactProblems(launched.problems, this.#facts?.root)
          : ['The gateway is stopping.'];
      for (const problem of problems)
        this.#log.error({ problem }, 'reload failed, previous configuration kept');
      this.#lastReload = { ok: false, problems, at, ms };
      return { ok: false, problems };
    }
    this.#enforce(launched.workers);
    limitLeaving(this.#leaving(), mostLeaving);
    const [first] = launched.workers;
    if (first?.facts?.banner !== undefined) this.#options.show(first.facts.banner);
    this.#lastReload = { ok: true, problems: [], at, ms };
    this.#log.info({ version: this.#facts?.version, ms }, 'reloaded: previous workers finish their calls');
    return { ok: true, problems: [] };
  }

  #fork(identity: WorkerIdentity): WorkerProcess {
    const worker: WorkerProcess = new WorkerProcess(identity, {
      order: () => this.#startOrder(identity),
      ready: () => {
        this.#shared.join(worker);
        this.#restarts.watch(() => this.#workers.has(worker));
      },
      answer: (question) => this.#answer(worker, question),
      ended: (how) => {
        this.#workers.delete(worker);
        this.#shared.forget(worker);
        if (worker.state === 'serving' && identity.generation === this.#inForce)
          void this.#restarts.replace(worker, how);
      },
      log: () => this.#log,
    });
    this.#workers.add(worker);
    return worker;
  }

  #startOrder({ worker, generation }: WorkerIdentity): StartOrder {
    const facts = this.#facts;
    // While a worker listens on the free port, port 0 gives other workers the same one. Without such a worker the port must be requested.
    if (facts !== undefined && !this.#isServing()) this.#freePort = facts.foundPort;
    return {
      type: 'start',
      ...(this.#options.config === undefined ? {} : { config: this.#options.config }),
      worker,
      ...(facts && {
        before: { database: facts.database, host: facts.host, port: facts.port },
        leftOut: facts.leftOut,
      }),
      isReload: facts !== undefined && generation !== this.#inForce,
      ...this.#secrets.order,
      freePort: this.#freePort,
    };
  }

  #answer(worker: WorkerProcess, question: Question): void {
    if (question.type === 'status') worker.send({ type: 'told', id: question.id, status: this.status() });
    else if (question.type === 'secrets') this.#secrets.add(question.known);
    else if (question.type === 'reload')
      void this.#runtimeReloads
        .reload(question.request, () => this.reload('asked'))
        .then((outcome) => worker.send({ type: 'reloaded', id: question.id, outcome }));
    else this.#shared.receive(worker, question);
  }

  readonly #leaving = () => [...this.#workers].filter(({ state }) => state === 'leaving');

  #isServing(): boolean {
    return [...this.#workers].some(({ state }) => state === 'serving');
  }

  /** Puts a generation in force: the workers of all others leave, also those that started only while it did. */
  #enforce(workers: readonly WorkerProcess[]): void {
    const [first] = workers;
    if (first?.facts === undefined) return;
    const before = this.#facts;
    this.#facts = first.facts;
    this.#inForce = first.generation;
    this.#since = Date.now();
    if (before?.logLevel !== first.facts.logLevel) this.#log = createLog(first.facts.logLevel);
    // A worker that ended before its generation was in force has not been replaced yet.
    for (const worker of workers)
      if (!this.#workers.has(worker)) void this.#restarts.replace(worker, 'early');
    for (const worker of this.#workers) if (worker.generation !== this.#inForce) worker.retire();
    if (first.facts.spareWorker) void this.#restarts.startSpare(first.facts.workers + 1, first.generation);
    if (!this.#options.watch || before?.file === first.facts.file) return;
    this.#watch?.close();
    this.#watch = new Watch(first.facts.file, () => void this.reload('a file has changed'));
  }

  async #allEnded(): Promise<void> {
    while (this.#workers.size > 0) await Promise.all([...this.#workers].map(({ ended }) => ended));
  }
}
