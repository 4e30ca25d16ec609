/** Settings of V8 for memory: when garbage is collected, and how an idle process gives memory back. Reasons and figures stand at each. */
import { constants, PerformanceObserver, type NodeGCPerformanceDetail } from 'node:perf_hooks';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { memoryLimit } from '../settings/environment.ts';

/** When it is first looked whether there is nothing to do, how often from then on, and how long there must have been no call; milliseconds. */
const times = { first: 15_000, again: 10_000, quiet: 300_000 };

/** So many calls have hardly anything compiled for them. */
const few = 100;

/** What a process has done. */
export interface Work {
  /** True while no call runs. */
  readonly isIdle: boolean;
  /** Calls that have ended since the start. */
  readonly ended: number;
}

/**
 * Gives back to the system what the start of a process took and nobody needs any more, once: V8 keeps the room for young objects that
 * loading some hundred modules fills. A worker without calls holds 115 MB with it and 152 without. It stands still meanwhile for a tenth of
 * a second, so that it waits until it is likely that nobody has started it for a moment only.
 *
 * Between calls it is put off. Everything that was compiled for the objects of calls is let go of when none of them is there: a small call
 * took three times the CPU in the second behind it, and half as much again as before for ten more under load.
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

/** Collects all garbage, and shrinks what it stood in: Node has no other way to ask for that than the function that it shows to tests. */
export function collectAll(): void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as NodeJS.GCFunction;
  setFlagsFromString('--no-expose-gc');
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' });
}

/** What may be added to what is in use before V8 looks at all of it again, in bytes. Where there is little memory it is an eighth of that. */
const room = 128 * 1024 * 1024;

/** That room as a share of what is in use, in percent, and its bounds: a heap of gigabytes must not wait until it has become two. */
const shares = { least: 40, most: 400 };

/**
 * Lets garbage gather for longer. V8 collects all garbage whenever 64 MB of buffers have been made, which are no part of its heap: with
 * bodies of 800 KB that is every 80 calls, each time some 60 ms of CPU in all threads. Counted with the heap, and the two given room, young
 * ones go with the young objects before there are so many. Turn 100 of an agent's session costs 1.5 times a raw proxy with it and 2.2 times
 * without. A busy worker may hold as much more memory as there is room, an idle one holds none.
 *
 * V8 takes the room as a share of what is in use at the end of a collection, so that it is told anew behind each.
 */
export function collectSeldom(): void {
  // Older ones look at buffers in another way, and do not know the flag.
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

/** By how many percent memory in use may grow, of a machine or container with so much. */
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
