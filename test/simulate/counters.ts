import { AsyncLocalStorage } from 'node:async_hooks';
import { RatesServer } from '../../core/money/rates/server.ts';
import { PrimaryRates } from '../../core/money/rates/primary.ts';
import type {
  Rates,
  RatesAnswer,
  RatesLine,
  RatesQuestion,
  RatesRecall,
  RateTimes,
} from '../../core/money/rates/index.ts';
import { ProcessClock, type Chance, type Timeline } from './time.ts';

/** A worker whose calls are counted. */
export interface CountingWorker {
  readonly id: number;
  readonly clock: ProcessClock;
}

/** Trace of how a call was counted. */
export interface Trace {
  /** True when the worker asked for it, and false when it was served from memory. */
  isRequested: boolean;
  /** Time of the last count in the store. */
  countedAt: number;
}

/** The trace of the call that asks. */
export const traces = new AsyncLocalStorage<Trace>();

/** Counters of a world, and the connections of its workers to them. */
export interface Counters {
  /** The largest part by which the clocks of workers run too fast or too slow. */
  readonly drift: number;
  open(worker: CountingWorker): Rates;
  /** A worker was killed. */
  forget(worker: CountingWorker): void;
  /** Lets something go wrong that concerns the worker or all. */
  fail(worker: CountingWorker, chance: Chance): Trouble;
  /** Number of slots of a limit that are taken, by the worker or by all. Absent where workers cannot lose slots. */
  slotsOf?(subject: string, worker?: CountingWorker): number;
}

/** Failures. */
export interface Trouble {
  /** Milliseconds for which calls may be refused without need. */
  readonly length: number;
  /** Whose leases may run out meanwhile. */
  readonly unleases?: 'worker' | 'all';
  /** Whose slots may stay taken after their calls. */
  readonly concerns?: 'worker' | 'all';
  /** Loses the counts between these times at their end. Workers detect the loss within `found` milliseconds. */
  readonly lost?: { readonly from: number; readonly until: number; readonly foundIn: number };
}

/** Options of counters. */
export interface CountersOptions {
  readonly time: Timeline;
  readonly chance: Chance;
  readonly times: Required<RateTimes>;
  /** A random time in ms that a message takes. */
  readonly delay: () => number;
}

/** The process that counts for the workers of one gateway. Messages take time and stay in order; processes stand still, and workers are killed. */
export class PrimaryCounters implements Counters {
  readonly drift = 0;
  readonly #options: CountersOptions;
  readonly #primary: ProcessClock;
  readonly #server: RatesServer;
  readonly #workers = new Map<number, CountingWorker>();
  readonly #listeners = new Map<number, (news: RatesAnswer | RatesRecall) => void>();
  /** Arrival time of the latest message in each direction, because messages stay in order. */
  readonly #arrivals = new Map<number, { out: number; in: number }>();

  constructor(options: CountersOptions) {
    this.#options = options;
    this.#primary = new ProcessClock(options.time, 1, 0);
    this.#server = new RatesServer((id, news) => this.#deliver(id, news), options.times, this.#primary);
  }

  open(worker: CountingWorker): Rates {
    const { id, clock } = worker;
    this.#workers.set(id, worker);
    this.#arrivals.set(id, { out: 0, in: 0 });
    const line: RatesLine = {
      send: (question) => {
        this.#send(worker, question);
        return true;
      },
      listen: (listener) => void this.#listeners.set(id, listener),
    };
    return new PrimaryRates(line, 'refuse', () => {}, this.#options.times, clock);
  }

  forget({ id }: CountingWorker): void {
    const { time, delay } = this.#options;
    this.#workers.delete(id);
    time.after(delay(), () => this.#primary.run(() => this.#server.forget(id)));
  }

  fail({ clock }: CountingWorker, chance: Chance): Trouble {
    const length = chance.of([20, 150, 700, 2_500]);
    (chance.is(0.3) ? this.#primary : clock).stop(length, chance.is(0.5));
    return { length };
  }

  #send(worker: CountingWorker, question: RatesQuestion): void {
    const { time, delay } = this.#options;
    const trace = traces.getStore();
    if (question.kind === 'take' && trace !== undefined) trace.isRequested = true;
    const arrivals = this.#arrivals.get(worker.id);
    if (arrivals === undefined) return;
    arrivals.out = Math.max(arrivals.out, time.now + delay());
    time.after(arrivals.out - time.now, () =>
      this.#primary.run(() => {
        if (!worker.clock.isGone) this.#server.receive(worker.id, question);
      }),
    );
  }

  #deliver(id: number, news: RatesAnswer | RatesRecall): void {
    const { time, delay } = this.#options;
    const [worker, arrivals] = [this.#workers.get(id), this.#arrivals.get(id)];
    if (worker === undefined || arrivals === undefined) return;
    arrivals.in = Math.max(arrivals.in, time.now + delay());
    time.after(arrivals.in - time.now, () => worker.clock.run(() => this.#listeners.get(id)?.(news)));
  }
}
