/** Settings of V8 for memory: when garbage is collected, and how an idle process gives memory back. Each setting has its reason and figures. */
import { constants, PerformanceObserver, type NodeGCPerformanceDetail } from 'node:perf_hooks';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { memoryLimit } from '../settings/environment.ts';

/** Time of the first check for idleness, interval of further checks, and required time without calls, in milliseconds. */
const times = { first: 15_000, again: 10_000, quiet: 300_000 };

/** Number of calls below which V8 has compiled hardly any code for them. */
const few = 100;

/** Activity of a process. */
export interface Work {
  /** True while no call runs. */
  readonly isIdle: boolean;
  /** Calls that have ended since the start. */
  readonly ended: number;
}

/**
 * Returns memory of the start to the system, once: V8 keeps the memory for young objects that loading some hundred modules has filled. An idle
 * worker uses 115 MB with this and 152 without. The collection blocks the process for a tenth of a second, so it waits until a process that
 * was started only for a moment has probably ended.
 *
 * The collection is postponed while calls run or have just run, because V8 drops the code compiled for objects of calls when none exist. A
 * small call then took three times the CPU in the following second, and 1.5 times for ten more seconds under load.
 */
export function giveBackMemory(work: Work, collect: () => void = collectAll): void {
  let before = 0;
  let quiet = 0;
  const look = (): void => {
    const { isIdle, ended } = work;
    quiet = isIdle && ended === before ? quiet + times.again : 0;
    before = ended;
    if (isIdle && (ended < few || quiet >= times.quiet)) collect();
    else setTimeout(look, times.again).unref();
  };
  setTimeout(look, times.first).unref();
}

/** Collects all garbage and shrinks the heap. Uses the function `gc`, which Node exposes for tests, because there is no other API. */
export function collectAll(): void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as NodeJS.GCFunction;
  setFlagsFromString('--no-expose-gc');
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}

/** Growth of used memory after which V8 collects all garbage again, in bytes. At most an eighth of the available memory. */
const room = 128 * 1024 * 1024;

/** Bounds of that growth as a share of used memory, in percent, so that a heap of gigabytes need not double first. */
const shares = { least: 40, most: 400 };

/**
 * Makes V8 collect all garbage less often. By default V8 does so whenever 64 MB of buffers have been created, because they are not part of its
 * heap. With bodies of 800 KB that is every 80 calls, with about 60 ms of CPU in all threads each time. When buffers count with the heap, and both
 * may grow, short-lived buffers are collected together with young objects before that. Turn 100 of an agent's session then costs 1.5 times a raw
 * proxy, and 2.2 times without this. A busy worker may use as much more memory as the allowed growth, an idle one does not.
 *
 * V8 takes the growth as a share of the used memory at the end of a collection, so it is set again after each one.
 */
export function collectSeldom(): void {
  // Older versions count buffers in another way, and do not have the flag.
  if (Number.parseInt(process.versions.node, 10) < 24) return;
  setFlagsFromString('--external-memory-accounted-in-global-limit');
  const limit = memoryLimit();
  const allow = (): void => {
    const { used_heap_size: heap, external_memory: buffers } = getHeapStatistics();
    setFlagsFromString(`--heap-growing-percent=${shareOf(heap + buffers, limit)}`);
  };
  allow();
  new PerformanceObserver((list) => {
    const details = list.getEntries() as readonly { readonly detail?: NodeGCPerformanceDetail }[];
    if (details.some(({ detail }) => detail?.kind === constants.NODE_PERFORMANCE_GC_MAJOR)) allow();
  }).observe({ entryTypes: ['gc'] });
}

/** Returns the allowed growth of used memory in percent, for a machine or container with this limit. */
export function shareOf(used: number, limit: number): number {
  const share = Math.round((100 * Math.min(room, limit / 8)) / used);
  return Math.max(shares.least, Math.min(shares.most, share));
}

/**
 * Megabytes for young objects in a worker, unless the operator has set them: for less memory, not for speed. With 64 a small call costs
 * 7 % less, an agent's first turn 5 % and a long one the same, and a busy worker holds 370 MB instead of 250.
 */
const semiSpace = '--max-semi-space-size=16';

/** Returns the arguments of Node for a worker, made from those of the primary process. */
export function workerArguments(own: readonly string[]): string[] {
  const isSet = own.some((argument) => argument.startsWith('--max-semi-space-size'));
  return isSet ? [...own] : [...own, semiSpace];
}
