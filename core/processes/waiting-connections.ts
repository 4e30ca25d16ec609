/** Connections that the primary process has accepted, until a worker takes them. */
import type { ChildProcess } from 'node:child_process';
import { InFlight } from '../sdk/in-flight.ts';

/** A connection that the primary process has accepted. */
export interface Handle {
  close(): void;
}

/** A connection that no worker has taken yet. */
export interface Waiting {
  readonly handle: Handle;
  /** The message of node:cluster that hands it over. */
  readonly message: HandingMessage;
  /** `performance.now()` when it was accepted. */
  readonly acceptedAt: number;
  /** True: it did not arrive at the worker that it was sent to first. */
  hasFailed: boolean;
}

/** Messages of node:cluster and of handles that matter here. `seq` numbers a message, and `ack` repeats the number in its response. */
export interface HandingMessage {
  readonly cmd?: unknown;
  readonly act?: unknown;
  readonly seq?: unknown;
  readonly ack?: unknown;
  readonly accepted?: unknown;
  /** Milliseconds that a connection has waited for a worker. Only Sluice's own workers read it. */
  readonly waited?: number;
  /** Name of the port. */
  readonly key?: unknown;
  readonly errno?: unknown;
}

/** A worker that takes connections of a port. */
export interface Taker {
  readonly isSpare: boolean;
  /** True for a worker that has acknowledged all that it was sent. */
  readonly isFree: boolean;
  /** Returns false for a spare while the other workers of a port are as many as there are to be. */
  isNeeded(others: number): boolean;
  offer(waiting: Waiting, port: Port): void;
}

/** Worker processes that listen on one port, as node:cluster counts them, and connections that wait for one of them. */
export class Port {
  readonly #hands = new Map<ChildProcess, Taker>();
  readonly #waiting = new InFlight<Waiting>();
  /** Connections that a worker has not accepted. They have waited longest. */
  readonly #again: Waiting[] = [];
  readonly #maxWaiting: number;

  /** Connections that come while `maxWaiting` wait are closed. */
  constructor(maxWaiting: number) {
    this.#maxWaiting = maxWaiting;
  }

  get size(): number {
    return this.#hands.size;
  }

  has(worker: ChildProcess): boolean {
    return this.#hands.has(worker);
  }

  join(worker: ChildProcess, hand: Taker): void {
    this.#hands.set(worker, hand);
    this.handOver();
  }

  leave(worker: ChildProcess): void {
    if (!this.#hands.delete(worker)) return;
    if (this.#hands.size > 0) this.handOver();
    else for (let next = this.#next(); next !== undefined; next = this.#next()) closeForGood(next.handle);
  }

  /** Returns false for a connection that is closed because too many wait. */
  add(waiting: Waiting): boolean {
    if (this.#waiting.size >= this.#maxWaiting) {
      closeForGood(waiting.handle);
      return false;
    }
    this.#waiting.add(waiting);
    this.handOver();
    return true;
  }

  /** Adds a connection again that a worker did not take: another one gets it, or the same one once more. */
  addAgain(waiting: Waiting): void {
    this.#again.push(waiting);
    this.handOver();
  }

  /** Sends connections to free workers in turn. */
  handOver(): void {
    while (this.#waiting.size + this.#again.length > 0) {
      const free = this.#free();
      const next = free === undefined ? undefined : this.#next();
      if (free === undefined || next === undefined) return;
      free.offer(next, this);
    }
  }

  #next(): Waiting | undefined {
    return this.#again.shift() ?? this.#waiting.shift();
  }

  #free(): Taker | undefined {
    const others = [...this.#hands.values()].filter(({ isSpare }) => !isSpare).length;
    for (const [worker, hand] of this.#hands) {
      if (!hand.isFree || !hand.isNeeded(others)) continue;
      this.#hands.delete(worker);
      this.#hands.set(worker, hand);
      return hand;
    }
    return undefined;
  }
}

/** Lets node:cluster close a connection, as it does with one that was taken, without closing it. */
export function keepOpen(handle: Handle): void {
  handle.close = () => {};
}

/** Closes a connection, also one that is kept open. */
export function closeForGood(handle: Handle): void {
  // What `keepOpen` has put before the method of its prototype.
  Reflect.deleteProperty(handle, 'close');
  handle.close();
}

/** Returns true for what node:cluster sends with a message that hands a connection over. */
export function isHandle(value: unknown): value is Handle {
  return typeof value === 'object' && value !== null && 'close' in value && typeof value.close === 'function';
}
