import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { caller, type Call } from '#sluice';
import { recordOf } from '../_record.ts';
import { liveCall, type LiveCall } from './schemas.ts';

/** The most calls that are told of at a time. */
const mostCalls = 500;

/** A feed that nobody has read for so long forgets what it told, in milliseconds. */
const forgetAfter = 5_000;

const count = z.int().min(0);

/** What is asked of the calls of one process. Nothing is told but their number when it is absent. */
export const feedQuestion = z
  .object({
    /** By feed: what has been read of it. */
    read: z.record(z.string(), count),
    /** Calls that run are told whether they have changed or not. */
    whole: z.boolean(),
  })
  .optional();
type FeedQuestion = NonNullable<z.output<typeof feedQuestion>>;

/** The answer: the calls that have changed since, or have ended. */
export const feedPortion = z.object({
  feed: z.string(),
  /** Goes into the next question. */
  at: count,
  running: count,
  calls: z.array(liveCall),
  skipped: count,
});
/** Checked, as it may come from another process. */
export type FeedPortion = z.output<typeof feedPortion>;

interface Ended {
  readonly at: number;
  readonly view: LiveCall;
}

/**
 * The calls that run in this process, for any number of readers, each of which says what it has read already. While nobody reads, each call
 * costs a place in a set.
 */
export class LiveFeed {
  readonly #name = randomUUID();
  readonly #running = new Set<Call>();
  /** What was told of each call, and when it last was something new. */
  #told = new Map<string, { readonly text: string; readonly at: number }>();
  #ended: Ended[] = [];
  /** Grows with each reading: the time of this feed. */
  #at = 0;
  #readAt = Number.NEGATIVE_INFINITY;

  /** The number of calls that run now. */
  get running(): number {
    return this.#running.size;
  }

  /** A call has come. */
  add(call: Call): void {
    this.#running.add(call);
  }

  /** A call has ended. */
  end(call: Call): void {
    this.#running.delete(call);
    if (this.#isForgotten()) return;
    this.#told.delete(call.id);
    this.#ended.push({ at: this.#at + 1, view: endOf(call) });
    // Readers come several times within that time: what is left behind has been read by all but the slowest.
    if (this.#ended.length > 2 * mostCalls) this.#ended = this.#ended.slice(-mostCalls);
  }

  /** What has changed since it was read last. */
  read({ read, whole }: FeedQuestion): FeedPortion {
    const since = read[this.#name] ?? 0;
    if (this.#isForgotten()) this.#forget();
    this.#readAt = performance.now();
    this.#at += 1;
    const at = this.#at;
    const ended = this.#ended.filter((one) => one.at > since).map(({ view }) => view);
    const told = new Map<string, { readonly text: string; readonly at: number }>();
    const changed: LiveCall[] = [];
    for (const call of this.#newest()) {
      const view = viewOf(call);
      const text = JSON.stringify(view);
      const before = this.#told.get(call.id);
      const now = before?.text === text ? before : { text, at };
      told.set(call.id, now);
      if (whole || now.at > since) changed.push(view);
    }
    this.#told = told;
    return {
      feed: this.#name,
      at,
      running: this.running,
      calls: [...ended.slice(-mostCalls), ...changed],
      skipped: Math.max(0, ended.length - mostCalls),
    };
  }

  #newest(): readonly Call[] {
    return this.running <= mostCalls ? [...this.#running] : [...this.#running].slice(-mostCalls);
  }

  #isForgotten(): boolean {
    return performance.now() - this.#readAt > forgetAfter;
  }

  #forget(): void {
    this.#told = new Map();
    this.#ended = [];
  }
}
