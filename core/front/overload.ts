/**
 * Load shedding of one process: limits running and waiting calls and the bytes of their bodies, and refuses calls while the event loop or
 * memory is strained.
 */
import { getHeapStatistics } from 'node:v8';
import type { ProcessLoad } from '../sdk/author/operations.ts';
import type { Call } from '../sdk/call.ts';
import { GatewayError } from '../sdk/errors.ts';
import type { ByteBudget } from './byte-budget.ts';
import { InFlight } from '../sdk/in-flight.ts';
import { CallWaits, lookEvery, type Arrival } from './call-waits.ts';
import type { Log } from '../log.ts';
import type { OverloadSettings } from '../settings/processes.ts';

/** Load of the process, with the budget of request bodies. */
export interface WholeLoad extends ProcessLoad {
  /** Budget of those bytes, for code that holds a body. */
  readonly bodyBudget: ByteBudget;
}

/** Measurements of the process; tests replace them. */
export interface Gauges {
  /** Milliseconds of a monotonic clock. */
  now(): number;
  /** Returns the share of the memory that is full, 0 to 1. */
  memory(): number;
}

/** Number of checks of the event loop for each check of the memory. */
const looksPerMemory = 20;

/** Hysteresis: share of memory below the limit at which a process recovers. */
const recovery = 0.05;

/** Minimum interval between log entries about refused calls, in milliseconds. */
const logInterval = 10_000;

/**
 * Rejects calls before their bodies are read when too many run, when calls wait too long for the event loop, or when memory is nearly full.
 * Costs one read of the clock for an accepted call.
 */
export class Overload implements WholeLoad {
  readonly bodyBudget: ByteBudget;
  readonly #settings: OverloadSettings;
  readonly #log: Log;
  readonly #gauges: Gauges;
  readonly #waiting = new InFlight<() => void>();
  #looking: NodeJS.Timeout | undefined;
  #running = 0;
  #ended = 0;
  /** Maximum number of running calls now; 0 while the process is strained. */
  #most: number;
  readonly #mostBodies: number;
  #refused = 0;
  #bodies = 0;
  readonly #waits: CallWaits;
  #looks = 0;
  #memory: number;
  #strain: ProcessLoad['strain'];
  #loggedAt = -Infinity;

  /** `largestBody`: bytes of the largest body that is accepted, for which there is always room. */
  constructor(settings: OverloadSettings, largestBody: number, log: Log, gauges: Gauges) {
    this.#settings = settings;
    this.#mostBodies = Math.max(settings.bodies, largestBody);
    this.#log = log;
    this.#gauges = gauges;
    this.#most = settings.running;
    this.#waits = new CallWaits(settings.lag, () => gauges.now());
    this.#memory = gauges.memory();
    this.bodyBudget = {
      most: this.#mostBodies,
      take: (bytes) => this.#takeBytes(bytes),
      giveBack: (bytes) => {
        this.#bodies -= bytes;
      },
    };
  }

  /** Starts to measure the event loop and the memory. Not earlier, because the work of a start is no load of calls. */
  begin(): void {
    this.#waits.begin();
    this.#looking ??= setInterval(() => this.look(), lookEvery).unref();
  }

  get running(): number {
    return this.#running;
  }

  /** Calls that entered and have left. */
  get ended(): number {
    return this.#ended;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  get refused(): number {
    return this.#refused;
  }

  get bodies(): number {
    return this.#bodies;
  }

  get lag(): number {
    return this.#waits.wait;
  }

  get memory(): number {
    return this.#memory;
  }

  get strain(): ProcessLoad['strain'] {
    return this.#strain;
  }

  /** True: the call runs, and {@link leave} must follow. False: it may {@link wait}. `arrival`: of a connection whose first call it is. */
  enter(arrival?: Arrival): boolean {
    this.#waits.note(arrival);
    if (this.#strain === undefined && this.#waits.isStanding) this.#setStrain('lag');
    if (this.#running >= this.#most && !this.#isInTime()) return false;
    this.#running += 1;
    return true;
  }

  /** Returns true for a call that runs although others are refused because they have waited. */
  #isInTime(): boolean {
    const { running } = this.#settings;
    if (this.#strain !== 'lag' || this.#running >= running || this.waiting > 0) return false;
    return !this.#waits.isLate;
  }

  /** Ends a running call, and starts the call that has waited longest. */
  leave(): void {
    this.#running -= 1;
    this.#ended += 1;
    this.#admit();
  }

  /**
   * Waits until the call may run, and runs `entered` at that very moment. Rejects with 503 when there is no room to wait, when it took
   * too long, or when the call has ended.
   */
  wait(call: Call, entered: () => void): Promise<void> {
    if (this.#strain !== undefined) {
      const sentence = 'The gateway is overloaded. Retry after 5 seconds.';
      return Promise.reject(this.#refusal(sentence, 5));
    }
    if (this.#waiting.size >= this.#settings.waiting)
      return Promise.reject(
        this.#refusal('The gateway is at its limit of running and waiting calls. Retry after 1 second.', 1),
      );
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.remove(entry);
        forget();
        reject(
          this.#refusal(
            'The gateway is at its limit of running calls, and none ended in time. Retry after 1 second.',
            1,
          ),
        );
      }, this.#settings.patience);
      const entry = this.#waiting.add(() => {
        clearTimeout(timer);
        forget();
        entered();
        resolve();
      });
      const forget = call.onEnd(() => {
        if (!this.#waiting.remove(entry)) return;
        clearTimeout(timer);
        reject(new GatewayError('client_closed_request', 'The client left while its call was waiting.'));
      });
    });
  }

  /** Checks the event loop and, less often, the memory. Runs twenty times a second after {@link begin}. */
  look(): void {
    const { memory: mostMemory } = this.#settings;
    this.#waits.look();
    this.#looks = (this.#looks + 1) % looksPerMemory;
    if (this.#looks === 0) this.#memory = this.#gauges.memory();
    const isFull = this.#memory > mostMemory - (this.#strain === 'memory' ? recovery : 0);
    this.#setStrain(isFull ? 'memory' : this.#waits.isStanding ? 'lag' : undefined);
  }

  close(): void {
    clearInterval(this.#looking);
  }

  #setStrain(strain: ProcessLoad['strain']): void {
    if (strain === this.#strain) return;
    this.#strain = strain;
    this.#most = strain === undefined ? this.#settings.running : 0;
    const { lag, memory, running } = this;
    if (strain === undefined)
      this.#log.info({ lag, memory, running }, 'overload has ended: accepting new calls');
    else this.#log.warn({ strain, lag, memory, running }, 'overload: rejecting new calls');
    this.#admit();
  }

  #admit(): void {
    while (this.#running < this.#most) {
      const go = this.#waiting.shift();
      if (go === undefined) return;
      this.#running += 1;
      go();
    }
  }

  #takeBytes(bytes: number): void {
    if (this.#bodies + bytes > this.#mostBodies)
      throw this.#refusal('The gateway is at its limit of request bytes in memory. Retry after 1 second.', 1);
    this.#bodies += bytes;
  }

  #refusal(sentence: string, retryAfter: number): GatewayError {
    this.#refused += 1;
    const now = this.#gauges.now();
    if (this.#strain === undefined && now - this.#loggedAt > logInterval) {
      this.#loggedAt = now;
      const { running, waiting, bodies, refused } = this;
      this.#log.warn(
        { running, waiting, bodies, refused },
        'rejecting calls: limit of concurrent calls reached',
      );
    }
    return new GatewayError('server_is_overloaded', sentence, { retryAfter });
  }
}

/** Measures this process, which has this share of the machine's memory where that is limited: 0.5 for one of two workers. */
export function processGauges(share: number): Gauges {
  // Without a limit there is a number beyond all memory, or none.
  const limit = process.constrainedMemory() * share;
  const isLimited = limit > 0 && limit < Number.MAX_SAFE_INTEGER;
  return {
    now: () => performance.now(),
    memory() {
      const { used_heap_size: used, heap_size_limit: most } = getHeapStatistics();
      return Math.max(used / most, isLimited ? process.memoryUsage.rss() / limit : 0);
    },
  };
}
