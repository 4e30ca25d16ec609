import type { PluginTools } from 'sluice';

/** Minimum number of milliseconds between two lines of the log about one kind of failure. */
const quietMs = 60_000;

/** Logs one kind of failure, at most once a minute. */
export class RareWarning {
  readonly #log: PluginTools['log'];
  readonly #message: string;
  #loggedAt = -Infinity;

  constructor(log: PluginTools['log'], message: string) {
    this.#log = log;
    this.#message = message;
  }

  /** Logs a failure with these fields, unless one was logged less than a minute ago. */
  write(fields: Readonly<Record<string, unknown>>): void {
    const now = Date.now();
    if (now - this.#loggedAt < quietMs) return;
    this.#loggedAt = now;
    this.#log.warn(fields, this.#message);
  }
}
