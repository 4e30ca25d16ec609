/** Shares one request to a provider, and its response while it streams, among equal calls that run at the same time (request coalescing). */
import type { Observable } from 'rxjs';
import { GatewayError, type Call, type DetachedCall, type GatewayEvent } from 'sluice';
import { sizeOf, type Entry } from './entry.ts';
import { LogReader, type EventLog } from './log-reader.ts';
import type { Budget } from './recording.ts';
import { shownTo } from './shown.ts';

/** Options of a {@link Flight}. */
export interface FlightOptions {
  /** Maximum number of bytes of a response that is kept. */
  readonly limit: number;
  readonly budget: Budget;
  /** The format of the call whose request is sent. */
  readonly format: string;
  /** Receives the outcome, once. Must not throw. */
  readonly ended: (outcome: Outcome) => void;
  /** True for a request that refreshes the cache in the background and continues without readers. */
  readonly isOfNobody?: boolean;
}

/** Outcome of a flight: its events where all of them were kept, or its error. */
export type Outcome = { readonly events?: readonly GatewayEvent[] } | { readonly error: unknown };

/** Number of events that all readers have passed before they are dropped together. */
const run = 64;

/**
 * One request to a provider that several calls wait for. While its response is within the limits all of it is buffered, so that a call may join
 * at any time and a slow reader does not delay others. Of a longer response only the part that the slowest reader has not read is buffered, with
 * backpressure to the provider, and no call may join any more.
 */
export class Flight implements EventLog {
  readonly #limit: number;
  readonly #budget: Budget;
  readonly #ended: (outcome: Outcome) => void;
  readonly #readers = new Set<LogReader>();
  readonly #started = Promise.withResolvers<void>();
  readonly #settled = Promise.withResolvers<void>();
  #events: GatewayEvent[] = [];
  /** Number of events that were dropped. */
  #dropped = 0;
  #bytes = 0;
  #isWhole = true;
  #holdsProvider = false;
  #own: DetachedCall | undefined;
  #subscription: { unsubscribe(): void } | undefined;
  #end: { readonly error?: unknown } | undefined;
  readonly #isOfNobody: boolean;
  /** True when the response was found in the cache, and no request was sent to a provider. */
  isFound = false;
  /** The format in which the response names dropped fields. */
  format: string;

  constructor({ limit, budget, format, ended, isOfNobody = false }: FlightOptions) {
    this.#limit = limit;
    this.#budget = budget;
    this.format = format;
    this.#ended = ended;
    this.#isOfNobody = isOfNobody;
    this.#started.promise.catch(() => {});
    this.#settled.promise.catch(() => {});
  }

  /** Resolves when the response has begun; rejects if it fails before. */
  get started(): Promise<void> {
    return this.#started.promise;
  }

  /** Resolves when the response is complete, or too long to be kept; rejects where it failed before. */
  get settled(): Promise<void> {
    return this.#settled.promise;
  }

  /** True while a call may join. */
  get isOpen(): boolean {
    return this.#isWhole && this.#end === undefined;
  }

  get end(): { readonly error?: unknown } | undefined {
    return this.#end;
  }

  eventAt(index: number): GatewayEvent | undefined {
    return this.#events[index - this.#dropped];
  }

  /** Adds a reader, from now on: the flight goes on as long as it has one. `isOwn`: the request is that of this call. */
  join(call: Call, isOwn = false): LogReader {
    const leave = (): void => this.#leave(reader);
    const shown = shownTo(call, this);
    const reader = new LogReader(this, call.gate, {
      progress: () => this.#progressed(),
      left: leave,
      shown: isOwn ? (event) => (this.isFound ? shown(event) : event) : shown,
    });
    this.#readers.add(reader);
    call.onEnd(leave);
    return reader;
  }

  /** Sends the request. Never rejects. */
  async send(own: DetachedCall, next: (call: Call) => Promise<Observable<GatewayEvent>>): Promise<void> {
    this.#own = own;
    own.call.onEnd(() => this.fail(own.call.failure ?? interrupted()));
    try {
      const reply = await own.send((call) => next(call.with({ decoded: true })));
      if (this.#end !== undefined) return;
      this.#started.resolve();
      this.#subscription = reply.subscribe({
        next: (event) => this.#push(event),
        error: (error) => this.fail(error),
        complete: () => this.#complete(),
      });
      if (this.#end !== undefined) this.#subscription.unsubscribe();
    } catch (error) {
      this.fail(error);
    }
  }

  /** Sends a response that was found in the cache to all readers. */
  serve({ events, format }: Pick<Entry, 'events' | 'format'>): void {
    this.isFound = true;
    this.format = format;
    this.#started.resolve();
    for (const event of events) this.#push(event);
    this.#complete();
  }

  /** Ends the flight from outside. */
  stop(): void {
    this.fail(interrupted());
  }

  /** Fails all readers. Does nothing once the flight has ended. */
  fail(error: unknown): void {
    if (this.#end !== undefined) return;
    this.#end = { error };
    const reason = error instanceof Error ? error : new Error('The response failed.', { cause: error });
    this.#started.reject(reason);
    this.#settled.reject(reason);
    this.#subscription?.unsubscribe();
    this.#over({ error });
  }

  #push(event: GatewayEvent): void {
    if (this.#end !== undefined) return;
    const size = sizeOf(event);
    this.#events.push(event);
    this.#bytes += size;
    this.#budget.used += size;
    if (this.#isWhole && (this.#bytes > this.#limit || this.#budget.used > this.#budget.most)) {
      this.#isWhole = false;
      this.#settled.resolve();
    }
    for (const reader of this.#readers) reader.pump();
    if (this.#isWhole) return;
    // Without readers, a response that is not stored is of no use.
    if (this.#readers.size === 0) this.stop();
    else this.#trim();
  }

  /** Drops the events that all readers have passed, and pauses the provider while too many bytes are left. */
  #trim(): void {
    let first = Infinity;
    for (const { index } of this.#readers) first = Math.min(first, index);
    const count = Math.min(first - this.#dropped, this.#events.length);
    const isTooMuch = this.#bytes > this.#limit;
    if (count < run && !isTooMuch) return;
    if (count > 0) {
      const freed = this.#events.splice(0, count).reduce((sum, event) => sum + sizeOf(event), 0);
      this.#dropped += count;
      this.#bytes -= freed;
      this.#budget.used -= freed;
    }
    this.#hold(this.#bytes > this.#limit);
  }

  #hold(shut: boolean): void {
    if (shut === this.#holdsProvider || this.#own === undefined) return;
    this.#holdsProvider = shut;
    if (shut) this.#own.call.gate.close();
    else this.#own.call.gate.open();
  }

  #progressed(): void {
    if (this.#holdsProvider) this.#trim();
  }

  #leave(reader: LogReader): void {
    if (!this.#readers.delete(reader)) return;
    if (this.#readers.size > 0) this.#progressed();
    else if (this.#end === undefined) {
      if (!this.#isOfNobody) this.stop();
    } else this.#release();
  }

  #complete(): void {
    if (this.#end !== undefined) return;
    this.#end = {};
    const outcome = this.#isWhole ? { events: this.#events } : {};
    this.#settled.resolve();
    this.#over(outcome);
  }

  /** Reports the outcome before readers see the end, because a reader that asks again must not join a flight that has ended. */
  #over(outcome: Outcome): void {
    this.#ended(outcome);
    this.#own?.end();
    for (const reader of this.#readers) reader.pump();
    if (this.#readers.size === 0) this.#release();
  }

  /** Frees the events, because no reader is left. */
  #release(): void {
    this.#budget.used -= this.#bytes;
    this.#bytes = 0;
    this.#events = [];
  }
}

function interrupted(): GatewayError {
  return new GatewayError('upstream_cut', 'The request that this response came from was ended.', {
    origin: 'upstream',
  });
}
