import type { Clock } from '../../core/money/ledger/clock.ts';

/** Numbers from 0 to 1 that depend on a seed alone (mulberry32). */
export class Chance {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  }

  /** True with this probability. */
  is(probability: number): boolean {
    return this.next() < probability;
  }

  /** A whole number from `least` to `most`. */
  whole(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  of<T>(choices: readonly T[]): T {
    const chosen = choices[Math.floor(this.next() * choices.length)];
    if (chosen === undefined) throw new Error('There is nothing to choose from.');
    return chosen;
  }
}

/**
 * Resolves when all promises that follow from the present step are settled. Node runs a tick that a microtask has scheduled when no microtask is
 * left. A turn of the event loop has the same effect and takes several times as long.
 */
const whenSettled = (resolve: () => void): void => process.nextTick(resolve);

interface Event {
  readonly at: number;
  readonly order: number;
  readonly job: () => void;
  isCancelled: boolean;
}

/** The time of a simulated world: events happen one after the other, in an order that is the same for each run. */
export class Timeline {
  now = 0;
  /** A binary heap. */
  readonly #events: Event[] = [];
  #order = 0;

  after(milliseconds: number, job: () => void): () => void {
    return this.at(this.now + Math.max(0, milliseconds), job);
  }

  /** Runs the job at a time; `isFirst`: before all others of that time that are not. */
  at(at: number, job: () => void, isFirst = false): () => void {
    const order = (this.#order += 1) - (isFirst ? Number.MAX_SAFE_INTEGER : 0);
    const event: Event = { at, order, job, isCancelled: false };
    this.#push(event);
    return () => {
      event.isCancelled = true;
    };
  }

  /** Runs events until this time. `settled` runs when all that an event has led to at once has happened. */
  async runUntil(end: number, settled: () => void): Promise<void> {
    // From here on this is a microtask.
    await Promise.resolve();
    for (;;) {
      const [first] = this.#events;
      if (first === undefined || first.at > end) break;
      this.#pop();
      if (first.isCancelled) continue;
      this.now = Math.max(this.now, first.at);
      first.job();
      // oxlint-disable-next-line no-await-in-loop -- one event after the other is the point
      await new Promise<void>(whenSettled);
      settled();
    }
    this.now = end;
  }

  #push(event: Event): void {
    const heap = this.#events;
    let at = heap.push(event) - 1;
    while (at > 0) {
      const above = (at - 1) >> 1;
      const parent = heap[above];
      if (parent === undefined || !isBefore(event, parent)) break;
      heap[at] = parent;
      at = above;
    }
    heap[at] = event;
  }

  #pop(): void {
    const heap = this.#events;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      const [left, right] = [heap[below], heap[below + 1]];
      if (left === undefined) break;
      if (right !== undefined && isBefore(right, left)) below += 1;
      const child = heap[below];
      if (child === undefined || !isBefore(child, last)) break;
      heap[at] = child;
      at = below;
    }
    heap[at] = last;
  }
}

function isBefore(one: Event, other: Event): boolean {
  return one.at < other.at || (one.at === other.at && one.order < other.order);
}

/** The clock of one process: its rate and its time of day may differ from those of others, and it stands still while its process does. */
export class ProcessClock implements Clock {
  readonly #time: Timeline;
  readonly #rate: number;
  /** Milliseconds by which its time of day is wrong. */
  skew: number;
  /** Until when nothing happens in the process. */
  #stoppedUntil = 0;
  /** True when the process stands still where it waits for input: it reads what has come before it looks at its timers. */
  #readsFirst = false;
  #isGone = false;

  constructor(time: Timeline, rate: number, skew: number) {
    this.#time = time;
    this.#rate = rate;
    this.skew = skew;
  }

  now(): number {
    return this.#time.now * this.#rate;
  }

  wall(): number {
    return Math.floor(startOfTime + this.#time.now * this.#rate + this.skew);
  }

  after(milliseconds: number, job: () => void): () => void {
    return this.#time.after(milliseconds / this.#rate, () => this.#run(job, false));
  }

  /** Runs a job that input from outside leads to, as soon as the process runs; never when it is gone. */
  run(job: () => void): void {
    this.#run(job, true);
  }

  #run(job: () => void, isInput: boolean): void {
    if (this.#isGone) return;
    if (this.isStopped)
      this.#time.at(this.#stoppedUntil, () => this.#run(job, isInput), isInput && this.#readsFirst);
    else job();
  }

  /** The process stands still for so many milliseconds, and goes on as if nothing had been. */
  stop(milliseconds: number, readsFirst = false): void {
    this.#stoppedUntil = Math.max(this.#stoppedUntil, this.#time.now + milliseconds);
    this.#readsFirst = readsFirst;
  }

  /** Until when the process stands still. */
  get stoppedUntil(): number {
    return this.#stoppedUntil;
  }

  /** True while the process stands still. */
  get isStopped(): boolean {
    return this.#stoppedUntil > this.#time.now;
  }

  /** The process is killed. */
  end(): void {
    this.#isGone = true;
  }

  get isGone(): boolean {
    return this.#isGone;
  }
}

/** Milliseconds since 1970 at which simulations begin: five minutes before the end of a month, so that periods change in them. */
export const startOfTime = Date.UTC(2026, 10, 30, 23, 55);
