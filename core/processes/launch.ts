/** Starts the workers of a generation, and starts them again when files change meanwhile or a worker ends early. */
import type { Log } from '../log.ts';
import type { WorkerIdentity, WorkerProcess } from './worker-process.ts';

/** Maximum number of consecutive early exits before the start of a worker fails. */
export const mostEarlyEnds = 3;

/** Delay before the first restart of a worker, in milliseconds. Each further delay is twice the one before. */
export const firstPause = 200;

/** Maximum number of rounds when files change while workers read them, and the delay between rounds, in milliseconds. */
const mostRounds = 5;
const settleTime = 300;

/** Functions that starting a generation needs. */
export interface Launcher {
  /** Returns the number of a new generation, higher than all before. */
  nextGeneration(): number;
  /** Starts a worker. */
  fork(identity: WorkerIdentity): WorkerProcess;
  /** Waits for a time in milliseconds, or until the gateway stops. */
  pause(time: number): Promise<void>;
  isStopping(): boolean;
  /** Returns the current log. */
  log(): Log;
}

/** Result of starting a generation. */
export type Launched =
  | { readonly workers: readonly WorkerProcess[] }
  | { readonly problems: readonly string[] };

/** Result of starting the workers of a generation once: some may serve although others failed. */
export interface Round {
  readonly workers: readonly WorkerProcess[];
  /** Numbers of the workers that did not start. */
  readonly missing: readonly number[];
  readonly problems: readonly string[];
}

/**
 * Starts a new generation in which all workers have read the same files. When files change during the start, starts the workers again.
 * Workers of a failed generation retire, because clients may already be connected to them.
 */
export async function launchGeneration(launcher: Launcher): Promise<Launched> {
  for (let round = 0; round < mostRounds && !launcher.isStopping(); round += 1) {
    if (round > 0) await launcher.pause(settleTime);
    const { workers, problems } = await launchRound(launcher);
    const failure = problems.length > 0 ? problems : await tryOut(workers);
    if (failure.length === 0 && haveReadTheSame(workers)) return { workers };
    for (const worker of workers) worker.retire();
    if (failure.length > 0) return { problems: failure };
    launcher.log().warn({ round: round + 1 }, 'files changed while workers read them: restarting workers');
  }
  if (launcher.isStopping()) return { problems: stopping };
  return {
    problems: ['The configuration files keep changing while workers read them. Retry when they are stable.'],
  };
}

const stopping = ['The gateway is stopping.'];

/** Returns true if every worker has read the same, unchanged files. */
export function haveReadTheSame(workers: readonly WorkerProcess[]): boolean {
  const files = workers[0]?.facts?.files;
  return files !== undefined && workers.every(({ facts }) => facts?.files === files);
}

/** Returns why the workers cannot take over: one of them ended during its trial time. */
async function tryOut(workers: readonly WorkerProcess[]): Promise<readonly string[]> {
  const trials = await Promise.all(workers.map(({ trial }) => trial));
  const failed = trials.find((trial) => 'ended' in trial);
  if (failed === undefined) return [];
  return [`A worker process exited just after its start (${failed.ended}). See the log.`];
}

/**
 * Starts one worker, which reads how many there are in all, and then the others. `firstServes` runs in between, because clients can reach
 * the first worker from then on.
 */
export async function launchRound(
  launcher: Launcher,
  firstServes: (worker: WorkerProcess) => void = () => {},
): Promise<Round> {
  const generation = launcher.nextGeneration();
  const first = await launchOne(launcher, 1, generation);
  if ('problems' in first) return { workers: [], missing: [1], problems: first.problems };
  firstServes(first.worker);
  const others = Array.from({ length: (first.worker.facts?.workers ?? 1) - 1 }, (_, index) => index + 2);
  const starts = await Promise.all(others.map((number) => launchOne(launcher, number, generation)));
  const problems = starts.flatMap((start) => ('problems' in start ? start.problems : []));
  return {
    workers: [first, ...starts].flatMap((start) => ('worker' in start ? [start.worker] : [])),
    missing: others.filter((_, index) => 'problems' in (starts[index] ?? {})),
    problems: [...new Set(problems)],
  };
}

/** Starts a worker, and tries again if it ends without a reason. */
async function launchOne(
  launcher: Launcher,
  number: number,
  generation: number,
): Promise<{ readonly worker: WorkerProcess } | { readonly problems: readonly string[] }> {
  let how = '';
  for (let tries = 0; tries < mostEarlyEnds; tries += 1) {
    if (tries > 0) await launcher.pause(firstPause * 2 ** (tries - 1));
    if (launcher.isStopping()) return { problems: stopping };
    const worker = launcher.fork({ worker: number, generation });
    const start = await worker.start;
    if ('facts' in start) return { worker };
    if ('problems' in start) return { problems: start.problems };
    how = start.ended;
    launcher.log().warn({ worker: number, how }, 'a worker exited before it could serve');
  }
  return { problems: [`Worker processes exited before they could serve (${how}), ${mostEarlyEnds} times.`] };
}
