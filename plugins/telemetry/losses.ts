import type { Log, PluginCounter } from 'sluice';

/** What is exported. */
export type Signal = 'traces' | 'metrics' | 'logs';

/** Why something was not exported: the queue had no room, the receiver failed or was not reached in time, or it refused what it was sent. */
export type LossReason = 'queue_full' | 'export_failed' | 'rejected';

/** Milliseconds between two lines of the log about losses. */
const pause = 60_000;

/** Counts what was not exported, and writes a line about it to the log at once and then no more often than once a minute. */
export class Losses {
  readonly #log: Log;
  readonly #counter: PluginCounter;
  #untold = new Map<string, number>();
  #cause: string | undefined;
  #timer: NodeJS.Timeout | undefined;
  #observers: ((signal: Signal, reason: LossReason, count: number) => void)[] = [];

  constructor(log: Log, counter: PluginCounter) {
    this.#log = log;
    this.#counter = counter;
  }

  /** Has every loss reported, for the metrics that are exported. */
  observe(observer: (signal: Signal, reason: LossReason, count: number) => void): void {
    this.#observers.push(observer);
  }

  /** Counts a loss. `cause`: what the receiver or the connection said. */
  add(signal: Signal, reason: LossReason, count: number, cause?: string): void {
    if (count <= 0) return;
    this.#counter.add({ signal, reason }, count);
    for (const observer of this.#observers) observer(signal, reason, count);
    const name = `${signal} ${reason}`;
    this.#untold.set(name, (this.#untold.get(name) ?? 0) + count);
    this.#cause = cause ?? this.#cause;
    if (this.#timer === undefined) this.#tell();
  }

  /** Writes what no line has said yet. */
  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#write();
  }

  #tell(): void {
    this.#write();
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (this.#untold.size > 0) this.#tell();
    }, pause);
    this.#timer.unref();
  }

  #write(): void {
    if (this.#untold.size === 0) return;
    const dropped = Object.fromEntries(this.#untold);
    const cause = this.#cause;
    this.#untold = new Map();
    this.#cause = undefined;
    this.#log.warn({ dropped, ...(cause === undefined ? {} : { cause }) }, 'telemetry was dropped');
  }
}
