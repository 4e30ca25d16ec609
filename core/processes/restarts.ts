/** Restarts workers that ended on their own or did not start, with growing delays, and gives up when none can serve. */
import { firstPause, mostEarlyEnds, type Launcher } from './launch.ts';
import type { Facts } from './messages.ts';
import { redactProblems } from './redact-problems.ts';
import type { WorkerIdentity, WorkerProcess } from './worker-process.ts';

/** Time in milliseconds after which a worker that serves counts as sound. */
const soundAfter = 10_000;

/** Maximum delay before a worker is restarted, in milliseconds. */
const longestPause = 10_000;

/** Functions that restarting workers needs. */
export interface RestartOptions extends Launcher {
  /** Returns true if the generation is the one in force. */
  isInForce(generation: number): boolean;
  /** Returns true if any worker serves. */
  isServing(): boolean;
  /** Runs when a restarted worker serves. */
  restarted(facts: Facts): void;
  /** Returns the folder of the config. */
  root(): string | undefined;
}

/** Restarts of the workers of one gateway, and their numbers. */
export class Restarts {
  readonly #options: RestartOptions;
  readonly #givenUp = Promise.withResolvers<string>();
  #crashes = 0;
  #lastCrashAt: number | undefined;
  #earlyEnds = 0;
  #isSound = false;

  constructor(options: RestartOptions) {
    this.#options = options;
  }

  /** Number of workers that ended on their own. */
  get crashes(): number {
    return this.#crashes;
  }

  /** Time of the last of these crashes, in milliseconds since 1970. */
  get lastCrashAt(): number | undefined {
    return this.#lastCrashAt;
  }

  /** Resolves to a reason when no worker serves and new ones end again and again. */
  get givenUp(): Promise<string> {
    return this.#givenUp.promise;
  }

  /** Records that a worker has begun to serve. `isAlive` returns true while it runs. */
  watch(isAlive: () => boolean): void {
    setTimeout(() => {
      if (isAlive()) this.#isSound = true;
    }, soundAfter).unref();
  }

  /** Replaces a worker that ended on its own. `how` is its exit code or signal. */
  async replace(lost: WorkerProcess, how: string | number): Promise<void> {
    const { isStopping, log } = this.#options;
    if (isStopping()) return;
    this.#crashes += 1;
    this.#lastCrashAt = Date.now();
    const lasted = Date.now() - lost.since;
    this.#earlyEnds = lasted < soundAfter ? this.#earlyEnds + 1 : 0;
    log().error({ worker: lost.worker, how, lasted }, 'a worker crashed: starting another one');
    await this.startWorker(lost, how);
  }

  /** Starts the spare worker of a generation. */
  startSpare(worker: number, generation: number): Promise<void> {
    return this.startWorker({ worker, generation, isSpare: true }, 'early');
  }

  /** Starts a worker of the generation until one serves, the generation is replaced, or the gateway stops. */
  async startWorker(identity: WorkerIdentity, how: string | number): Promise<void> {
    const { worker, generation } = identity;
    const { isStopping, isInForce, fork, restarted } = this.#options;
    let last = how;
    while (!this.#givesUp(last)) {
      await this.#pause();
      if (isStopping() || !isInForce(generation)) return;
      const start = await fork(identity).start;
      if (isStopping() || !isInForce(generation)) return;
      if ('facts' in start) {
        restarted(start.facts);
        return;
      }
      this.#earlyEnds += 1;
      last = 'problems' in start ? 'it could not start' : start.ended;
      this.report(worker, 'problems' in start ? start.problems : [start.ended]);
    }
  }

  /** Logs why a worker did not start. */
  report(worker: number, problems: readonly string[]): void {
    const { log, root } = this.#options;
    log().error({ worker, problems: redactProblems(problems, root()) }, 'a worker cannot start: retrying');
  }

  #pause(): Promise<void> {
    return this.#options.pause(
      Math.min(longestPause, firstPause * 2 ** Math.max(0, Math.min(this.#earlyEnds, 20) - 1)),
    );
  }

  /** Returns true when no more restarts are tried. Never while a worker serves, because too few workers are better than none. */
  #givesUp(how: string | number): boolean {
    if (this.#isSound || this.#earlyEnds < mostEarlyEnds || this.#options.isServing()) return false;
    this.#givenUp.resolve(
      `A worker process exited ${mostEarlyEnds} times, each time soon after its start (${how}). See the log.`,
    );
    return true;
  }
}
