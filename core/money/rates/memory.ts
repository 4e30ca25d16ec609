/** Rate windows and concurrency limits counted in the memory of one process. */
import { systemClock, type Clock } from '../ledger/clock.ts';
import type { RateGrant, RateRule, Rates, RateState, RateTimes, RateVerdict, SlotRule } from './index.ts';

/** Number of slices of the sliding minute. */
export const slices = 60;

/** Maximum number of subjects in memory; the least recently used is removed first. */
const mostSubjects = 50_000;

/** Retry delay in milliseconds when no slot is free; the time of the next release is not known. */
export const slotRetry = 1_000;

/** Maximum share of the rest of a limit that is counted ahead at once, because other workers serve calls too. */
export const maxShare = 1 / 8;

/** Counts of the last minute by slice. */
interface Minute {
  /** Numbers of slices, ascending, and what was counted in each. */
  readonly at: number[];
  readonly counted: number[];
  total: number;
  /** The slice of the last use. */
  lastSlice: number;
}

/**
 * The minute is a sliding window: no sixty seconds contain more than the limit, while a fixed window would allow twice as much around its
 * boundary. It moves by the second, so that a subject has at most 61 counts, whatever its limit.
 */
export class MemoryRates implements Rates {
  readonly state = 'ok';
  readonly #slice: number;
  readonly #minutes = new Map<string, Minute>();
  readonly #running = new Map<string, number>();
  readonly #clock: Clock;

  constructor({ minute = 60_000 }: RateTimes = {}, clock: Clock = systemClock) {
    this.#slice = minute / slices;
    this.#clock = clock;
  }

  take(rules: readonly RateRule[], slots: readonly SlotRule[] = []): Promise<RateVerdict> {
    return Promise.resolve(this.takeNow(rules, slots));
  }

  /** {@link take} without a promise. `slice` is the piece of the minute in which it is counted. */
  takeNow(
    rules: readonly RateRule[],
    slots: readonly SlotRule[],
    now = this.#clock.now(),
    slice = this.sliceAt(now),
  ): RateVerdict {
    const minutes = rules.map(({ subject }) => this.#minute(subject, slice));
    let exceeded: string | undefined;
    let retryMs = 0;
    for (const { subject, limit } of slots) {
      if ((this.#running.get(subject) ?? 0) < limit) continue;
      exceeded ??= subject;
      retryMs = slotRetry;
    }
    rules.forEach(({ subject, limit, cost }, index) => {
      const minute = minutes[index];
      if (minute === undefined || minute.total + Math.min(cost, limit) <= limit) return;
      exceeded ??= subject;
      retryMs = Math.max(retryMs, this.#freeAfter(minute, minute.total + Math.min(cost, limit) - limit, now));
    });
    const allowed = exceeded === undefined;
    const states = rules.map(({ subject, limit, cost, ahead: wanted = 0 }, index): RateState => {
      const minute = minutes[index];
      if (minute === undefined) return { subject, limit, remaining: limit, resetMs: 0 };
      let ahead = 0;
      if (allowed) {
        count(minute, slice, Math.min(cost, limit));
        ahead = within(limit - minute.total, wanted, Math.min(cost, limit));
        count(minute, slice, ahead);
      }
      const newest = minute.at.at(-1);
      const resetMs = newest === undefined ? 0 : this.#end(newest) - now;
      const remaining = Math.max(0, limit - minute.total);
      return { subject, limit, remaining, resetMs, ...(ahead === 0 ? {} : { ahead }) };
    });
    if (exceeded !== undefined) return { allowed, states, exceeded, retryMs: Math.ceil(retryMs) };
    for (const { subject } of slots) this.#running.set(subject, (this.#running.get(subject) ?? 0) + 1);
    return { allowed, states, retryMs: 0, grant: this.#grant(slice, slots) };
  }

  /** Takes further slots of a subject, where there is ample room. Returns how many. */
  takeAhead({ subject, limit, ahead = 0 }: SlotRule): number {
    const running = this.#running.get(subject) ?? 0;
    const taken = within(limit - running, ahead, 1);
    if (taken > 0) this.#running.set(subject, running + taken);
    return taken;
  }

  /** Returns the number of the slice at a time of the clock. */
  sliceAt(now: number): number {
    return Math.floor(now / this.#slice);
  }

  /** Returns the milliseconds until the end of the slice. */
  untilNext(now: number): number {
    return (this.sliceAt(now) + 1) * this.#slice - now;
  }

  /** {@link RateGrant.correct} for a call that was counted in this slice. */
  correct(subject: string, difference: number, slice: number): void {
    const now = this.sliceAt(this.#clock.now());
    const minute = this.#minute(subject, now);
    if (difference > 0) count(minute, now, difference);
    else giveBack(minute, slice, -difference);
  }

  /** Gives slots of the subject back. */
  release(subject: string, slots = 1): void {
    const left = (this.#running.get(subject) ?? slots) - slots;
    if (left > 0) this.#running.set(subject, left);
    else this.#running.delete(subject);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #grant(slice: number, slots: readonly SlotRule[]): RateGrant {
    let held = slots;
    return {
      correct: (subject, difference) => this.correct(subject, difference, slice),
      release: () => {
        for (const { subject } of held) this.release(subject);
        held = [];
      },
    };
  }

  /** Returns the subject's minute without expired slices. */
  #minute(subject: string, slice: number): Minute {
    const known = this.#minutes.get(subject);
    const minute = known ?? { at: [], counted: [], total: 0, lastSlice: slice };
    minute.lastSlice = slice;
    // Moves the subject to the end of the map, which is in order of use.
    if (known !== undefined) this.#minutes.delete(subject);
    else this.#makeRoom(slice);
    this.#minutes.set(subject, minute);
    let passed = 0;
    for (; passed < minute.at.length && (minute.at[passed] ?? 0) < slice - slices; passed += 1)
      minute.total -= minute.counted[passed] ?? 0;
    if (passed > 0) {
      minute.at.splice(0, passed);
      minute.counted.splice(0, passed);
    }
    return minute;
  }

  /** Removes up to two subjects that have been idle for longer than a minute, or the least recently used when there are too many. */
  #makeRoom(slice: number): void {
    let looked = 0;
    for (const [subject, { lastSlice }] of this.#minutes) {
      if (lastSlice >= slice - slices && this.#minutes.size < mostSubjects) return;
      this.#minutes.delete(subject);
      if ((looked += 1) === 2) return;
    }
  }

  /** Returns the milliseconds until slices with so many counts have expired. */
  #freeAfter({ at, counted }: Minute, wanted: number, now: number): number {
    let freed = 0;
    for (let index = 0; index < at.length; index += 1) {
      freed += counted[index] ?? 0;
      if (freed >= wanted) return this.#end(at[index] ?? 0) - now;
    }
    return 0;
  }

  /** Returns the time at which a slice expires: a minute and one slice after its start, because its last call may be at its end. */
  #end(slice: number): number {
    return (slice + slices + 1) * this.#slice;
  }
}

/** Returns how much of `wanted` may be counted ahead; 0 where that is not enough for another such call. */
function within(left: number, wanted: number, cost: number): number {
  const ahead = Math.min(wanted, Math.floor(left * maxShare));
  return ahead < Math.max(1, cost) ? 0 : ahead;
}

function count(minute: Minute, slice: number, amount: number): void {
  if (amount === 0) return;
  const last = minute.at.length - 1;
  if (minute.at[last] === slice) minute.counted[last] = (minute.counted[last] ?? 0) + amount;
  else {
    minute.at.push(slice);
    minute.counted.push(amount);
  }
  minute.total += amount;
}

/** Subtracts from the count of a slice, unless the slice has expired. */
function giveBack(minute: Minute, slice: number, amount: number): void {
  const index = minute.at.indexOf(slice);
  const counted = minute.counted[index];
  if (counted === undefined) return;
  const back = Math.min(counted, amount);
  minute.counted[index] = counted - back;
  minute.total -= back;
}
