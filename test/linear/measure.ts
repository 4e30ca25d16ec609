/** A piece of work whose input has a size. */
export interface Work {
  /** What does it: `messages: request decode`. */
  readonly part: string;
  /** What its input looks like. */
  readonly shape: string;
  /** The size that is begun with; it is doubled until the work takes long enough to be measured. Default 64. */
  readonly least?: number;
  /** No more than this, for what has a limit. */
  readonly most?: number;
  /** False for what comes in many steps, between which others have their turn. Default true. */
  readonly oneStep?: boolean;
  make(size: number): Job;
}

/** One input, and what is done with it. May be run again and again. */
export interface Job {
  /** Bytes of the input on the wire. */
  readonly bytes: number;
  run(): unknown;
}

/** How work grows. */
export interface Growth {
  readonly work: Work;
  readonly size: number;
  /** Milliseconds at four times the size. */
  readonly time: number;
  /** 1 for work that is proportional to its input, 2 for its square. */
  readonly exponent: number;
  /** Milliseconds for each megabyte of input. */
  readonly perMegabyte: number;
}

/** How much larger the second input is. */
export const factor = 4;

/** Milliseconds that the smaller input takes, where there can be so much of it, and the most that a run may. */
const measurable = 5;
const tooLong = 3_000;
/** Bytes of the larger input. */
const largest = 24 * 1024 * 1024;

/** The exponent behind two values at sizes that differ by {@link factor}. */
export function exponentOf(small: number, large: number): number {
  return Math.log(Math.max(1, large) / Math.max(1, small)) / Math.log(factor);
}

/**
 * Measures processor time of this thread. What grows by more than `limit` is measured again with twice as much, and again: the caches that
 * a larger input no longer fits into, and the collection of garbage, cost less there in proportion, work that grows faster than its input more.
 */
export async function measure(work: Work, limit: number): Promise<Growth> {
  const most = (work.most ?? Infinity) / factor;
  const fits = (size: number): boolean => size <= most && work.make(size).bytes <= largest / factor;
  let size = work.least ?? 128;
  while (fits(size * 2) && (await timed(work.make(size), 3)) < measurable) size *= 2;
  let best: Growth | undefined;
  for (let tries = 0; tries < 4; tries += 1) {
    const small = work.make(size);
    const large = work.make(size * factor);
    const first = await timed(small, 5);
    const second = await timed(large, 3);
    const growth: Growth = {
      work,
      size,
      time: second,
      // Too quick to tell: nobody will notice how it grows.
      exponent: second < measurable ? 0 : exponentOf(first * 1000, second * 1000),
      perMegabyte: second / (large.bytes / 1e6),
    };
    if (best === undefined || growth.exponent < best.exponent) best = growth;
    if (best.exponent <= limit || second > tooLong / 4 || !fits(size * 2)) break;
    size *= 2;
  }
  return best as Growth;
}

/** The least of several times, in milliseconds. */
async function timed(job: Job, tries: number): Promise<number> {
  let least = Infinity;
  const began = performance.now();
  for (let index = 0; index < tries; index += 1) {
    const before = process.threadCpuUsage();
    await job.run();
    const { user, system } = process.threadCpuUsage(before);
    least = Math.min(least, (user + system) / 1000);
    if (performance.now() - began > tooLong) break;
  }
  return least;
}
