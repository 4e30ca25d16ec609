import type { Log } from '../log.ts';
import type { WorkerProcess } from './worker-process.ts';

/** Workers that may end early, one after the other, before a gateway that never ran soundly is given up. */
export const mostEarlyEnds = 3;

/** The first wait before a worker is started in the place of one that ended, in milliseconds: each is twice the one before. */
export const firstPause = 200;

/** How often workers are started anew because files changed while they read them, and the wait before, in milliseconds. */
const mostRounds = 5;
const settleTime = 300;

/** What the start of a generation needs of whoever wants it. */
export interface Launcher {
  /** The number of a generation that begins now: higher than those before. */
  nextGeneration(): number;
  /** Starts a worker, by its number among those of its generation. */
  fork(number: number, generation: number): WorkerProcess;
  /** Waits so many milliseconds, but no longer than until the gateway stops. */
  pause(time: number): Promise<void>;
  isStopping(): boolean;
  /** The log as it is now. */
  log(): Log;
}

/** How the start of a generation came out. */
export type Launched =
  | { readonly workers: readonly WorkerProcess[] }
  | { readonly problems: readonly string[] };

/**
 * Starts a new generation, all of which have read the same files: where these changed in between, the workers leave and others start.
 */
export async function launchGeneration(launcher: Launcher): Promise<Launched> {
  for (let round = 0; round < mostRounds && !launcher.isStopping(); round += 1) {
    if (round > 0) await launcher.pause(settleTime);
    const launched = await launchRound(launcher);
    if ('problems' in launched) return launched;
    const { workers } = launched;
    const files = workers[0]?.facts?.files;
    if (files !== undefined && workers.every(({ facts }) => facts?.files === files)) return launched;
    launcher
      .log()
      .warn({ round: round + 1 }, 'files changed while workers read them: they are started again');
    for (const worker of workers) worker.stop();
  }
  if (launcher.isStopping()) return stopping;
  return { problems: ['The files of the configuration change again and again while workers read them.'] };
}

const stopping = { problems: ['The gateway is stopping.'] };

/** Starts one worker, which says how many there shall be, and then the others. */
async function launchRound(launcher: Launcher): Promise<Launched> {
  const generation = launcher.nextGeneration();
  const first = await launchOne(launcher, 1, generation);
  if ('problems' in first) return first;
  const wanted = first.worker.facts?.workers ?? 1;
  const others = await Promise.all(
    Array.from({ length: wanted - 1 }, (_, index) => launchOne(launcher, index + 2, generation)),
  );
  const workers = [first, ...others].flatMap((one) => ('worker' in one ? [one.worker] : []));
  const problems = others.flatMap((one) => ('problems' in one ? one.problems : []));
  if (problems.length === 0) return { workers };
  for (const worker of workers) worker.retire();
  return { problems: [...new Set(problems)] };
}

/** A worker that serves. One that ends without a word may be tried again. */
async function launchOne(
  launcher: Launcher,
  number: number,
  generation: number,
): Promise<{ readonly worker: WorkerProcess } | { readonly problems: readonly string[] }> {
  let how = '';
  for (let tries = 0; tries < mostEarlyEnds; tries += 1) {
    if (tries > 0) await launcher.pause(firstPause * 2 ** (tries - 1));
    if (launcher.isStopping()) return stopping;
    const worker = launcher.fork(number, generation);
    const start = await worker.start;
    if ('facts' in start) return { worker };
    if ('problems' in start) return { problems: start.problems };
    how = start.ended;
  }
  return { problems: [`A worker process ended before it could serve (${how}), ${mostEarlyEnds} times.`] };
}
