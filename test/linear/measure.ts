import { setImmediate } from 'node:timers/promises';
import { ofNames } from './requests.ts';

/** A piece of work whose input has a size. */
export interface Work {
  /** Code under measurement, for example `messages: request decode`. */
  readonly part: string;
  /** Shape of the input. */
  readonly shape: string;
  /** The size that is begun with; it is doubled until the work takes long enough to be measured. Default 512. */
  readonly least?: number;
  /** No more than this, for what has a limit. */
  readonly most?: number;
  /** False for what comes in many steps, between which others have their turn. Default true. */
  readonly oneStep?: boolean;
  /** Why it is measured to be known, and not judged. */
  readonly except?: string;
  make(size: number): Job;
  /** Drops what the runs have left behind. The work can be made again after that. */
  close?(): Promise<void>;
}

/** One input, and what is done with it. May be run again and again. */
export interface Job {
  /** Bytes of the input on the wire. */
  readonly bytes: number;
  run(): unknown;
}

/** Growth of the work. */
export interface Growth {
  readonly work: Work;
  readonly size: number;
  /** Milliseconds at four times the size. */
  readonly time: number;
  /** 1 for work that is proportional to its input, 2 for its square. Of names: without what tables of them grow by beyond that. */
  readonly exponent: number;
  /** Milliseconds for each megabyte of input, those of a table of names apart. */
  readonly perMegabyte: number;
}

/** Ratio of the sizes of both inputs. */
export const factor = 4;

/** Milliseconds that the smaller input takes, where there can be so much of it, and the most that a run may. */
const measurable = 2;
const tooLong = 1_000;
/** Bytes of the larger input: at first, and where it must be so large for caches not to show. */
const enough = 4 * 1024 * 1024;
const largest = 64 * 1024 * 1024;
/** Milliseconds that are measured in one go. */
const inOneGo = 5;
/** Milliseconds of the same work before it is measured: what a gateway does for the first time is slower, whatever it does. */
const warming = 30;
/**
 * Milliseconds from which on the processor's time is taken in place of the time that has passed: its clock may tick every four milliseconds,
 * and what is shorter is seldom interrupted.
 */
const exact = 40;
/** Runs that are measured in one go, at most. */
export const mostRuns = 50;
/** Milliseconds for each megabyte in which memory is copied once or twice: the larger a copy is, the less of it is in a cache. */
const copying = 3;
/** Tables of all names that a call makes on its way, at most. */
const mostTables = 16;

/** The exponent behind two values at sizes that differ by {@link factor}. */
export function exponentOf(small: number, large: number): number {
  return Math.log(Math.max(1, large) / Math.max(1, small)) / Math.log(factor);
}

/** Maximum values of {@link Growth}. */
export interface Limits {
  readonly exponent: number;
  readonly perMegabyte: number;
}

/**
 * Measures the time of this thread. What is above a limit is measured again with four times as much, and again: the caches that a larger
 * input no longer fits into, the collection of garbage, and what is done once whatever the size, cost less there in proportion, work that
 * grows faster than its input more.
 */
export async function measure(work: Work, limits: Limits): Promise<Growth> {
  const limit = limits.exponent;
  let best: Growth | undefined;
  let size = Math.min(work.least ?? 512, Math.floor((work.most ?? Infinity) / factor));
  let less = work.make(size);
  for (;;) {
    const taken = await timed(less, 1);
    let more = Math.min(32, 2 ** Math.ceil(Math.log2(measurable / taken)));
    while (more > 1 && !fits(work, less, size, more * factor, enough)) more /= 2;
    if (more <= 1) break;
    const { bytes } = less;
    size *= more;
    less = work.make(size);
    // What says no more the larger it is will never be large enough.
    if (less.bytes <= bytes) break;
  }
  await warm(less);
  for (;;) {
    const more = work.make(size * factor);
    let first = await timed(less, 3);
    let second = await timed(more, 2);
    if (second >= measurable && exponentOf(first * 1000, second * 1000) > limit) {
      first = Math.min(first, await timed(less, 3));
      second = Math.min(second, await timed(more, 3));
    }
    const table = await ofTable(work, size);
    const beyond = Math.min(mostTables, second / table.time) * table.beyond;
    const growth: Growth = {
      work,
      size,
      time: second,
      // Too quick to tell: nobody will notice how it grows.
      exponent:
        second < measurable || (more.bytes >= enough && second < (copying * more.bytes) / 1e6)
          ? 0
          : exponentOf(first * 1000, (second - beyond) * 1000),
      perMegabyte: Math.max(0, second - table.time) / (more.bytes / 1e6),
    };
    const perMegabyte = Math.min(growth.perMegabyte, best?.perMegabyte ?? Infinity);
    best = { ...(best !== undefined && best.exponent <= growth.exponent ? best : growth), perMegabyte };
    if (
      (best.exponent <= limit && (work.oneStep === false || perMegabyte <= limits.perMegabyte)) ||
      work.except !== undefined ||
      second > tooLong / 4 ||
      !fits(work, more, size * factor, factor, largest)
    )
      return best;
    size *= factor;
    less = more;
  }
}

async function warm(job: Job): Promise<void> {
  const end = performance.now() + warming;
  for (let run = 0; run < mostRuns && performance.now() < end; run += 1) await job.run();
}

/** True when an input can be this much larger. */
function fits(work: Work, job: Job, size: number, more: number, bytes: number): boolean {
  return size * more <= (work.most ?? Infinity) && job.bytes * more <= bytes;
}

/**
 * The milliseconds that a table of four times as many names takes, and how many of them are beyond four times those of so many: of
 * more names fewer are in a cache. That is no work of ours, for as many tables as are made at most.
 */
async function ofTable(
  work: Work,
  size: number,
): Promise<{ readonly time: number; readonly beyond: number }> {
  if (!ofNames.test(work.shape)) return { time: 0, beyond: 0 };
  const [first, second] = [await timeOfTable(size), await timeOfTable(size * factor)];
  return { time: second, beyond: Math.max(0, second - first * factor) };
}

const tableTimes = new Map<number, number>();

async function timeOfTable(size: number): Promise<number> {
  const known = tableTimes.get(size);
  if (known !== undefined) return known;
  const time = await timed(tableOf(size), 5);
  tableTimes.set(size, time);
  return time;
}

/** Minimal work of every reader and writer of names: copies a table name by name. */
export function tableOf(size: number): Job {
  const table = Object.fromEntries(Array.from({ length: size }, (_, index) => [`odd_${index}`, index]));
  return {
    bytes: JSON.stringify(table).length,
    run: () => {
      const other: Record<string, number> = {};
      for (const [name, value] of Object.entries(table)) other[name] = value;
      return other;
    },
  };
}

/** The least of several times, in milliseconds, each from a heap without the garbage of others. */
async function timed(job: Job, tries: number): Promise<number> {
  let least = Infinity;
  let runs = 1;
  const began = performance.now();
  for (let left = tries; left > 0;) {
    // Work that the runs before have put off to a later turn of the event loop would wait for ever, and be held in memory.
    await setImmediate();
    if (least > 100 && least < Infinity) globalThis.gc?.();
    const before = process.threadCpuUsage();
    const start = performance.now();
    for (let run = 0; run < runs; run += 1) await job.run();
    const passed = performance.now() - start;
    const { user, system } = process.threadCpuUsage(before);
    const taken = passed < exact ? passed : Math.min(passed, (user + system) / 1000);
    const isLong = performance.now() - began > tooLong;
    if (taken < inOneGo && runs < mostRuns && !isLong) {
      runs = Math.min(mostRuns, Math.ceil((runs * inOneGo * 1.2) / Math.max(taken, 1)));
      continue;
    }
    least = Math.min(least, Math.max(taken / runs, 0.001));
    left -= 1;
    if (isLong) break;
  }
  return least;
}
