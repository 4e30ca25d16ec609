/** Counts and logs telemetry that was not exported. */
import type { Log, PluginCounter } from 'sluice';

/** Kind of telemetry. */
export type Signal = 'traces' | 'metrics' | 'logs';

/** Reason for a loss: the queue had no room, the receiver failed or was not reached in time, or it refused a part of an export. */
export type LossReason = 'queue_full' | 'export_failed' | 'rejected';

/** Milliseconds between two lines of the log about losses. */
const pause = 60_000;

/** Counts of losses. The first loss is logged at once, further ones at most once a minute. */
export class Losses {
  readonly #log: Log;
  readonly #counter: PluginCounter;
  #unlogged = new Map<string, number>();
  #cause: string | undefined;
  #timer: NodeJS.Timeout | undefined;
  #observers: ((signal: Signal, reason: LossReason, count: number) => void)[] = [];

  constructor(log: Log, counter: PluginCounter) {
    this.#log = log;
    this.#counter = counter;
  }

  /** Calls a function with every loss, for the metrics that are exported. */
  observe(observer: (signal: Signal, reason: LossReason, count: number) => void): void {
    this.#observers.push(observer);
  }

  /** Counts a loss. `cause`: error of the receiver or of the connection. */
  add(signal: Signal, reason: LossReason, count: number, cause?: string): void {
    if (count <= 0) return;
    this.#counter.add({ signal, reason }, count);
    for (const observer of this.#observers) observer(signal, reason, count);
    const name = `${signal} ${reason}`;
    this.#unlogged.set(name, (this.#unlogged.get(name) ?? 0) + count);
    this.#cause = cause ?? this.#cause;
    if (this.#timer === undefined) this.#report();
  }

  /** Logs the losses that no line has named yet. */
  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#write();
  }

  #report(): void {
    this.#write();
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (this.#unlogged.size > 0) this.#report();
    }, pause);
    this.#timer.unref();
  }

  #write(): void {
    if (this.#unlogged.size === 0) return;
    const dropped = Object.fromEntries(this.#unlogged);
    const cause = this.#cause;
    this.#unlogged = new Map();
    this.#cause = undefined;
    this.#log.warn({ dropped, ...(cause === undefined ? {} : { cause }) }, 'telemetry was dropped');
  }
}
