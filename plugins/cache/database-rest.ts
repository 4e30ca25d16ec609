import type { PluginTools } from 'sluice';

/** Milliseconds in which nothing is asked of a database that failed. */
const rest = 5_000;

/** Milliseconds between two lines of the log about it. */
const quiet = 60_000;

/** Spares a database that failed for a while, and logs failures once a minute. */
export class DatabaseRest {
  readonly #log: PluginTools['log'];
  readonly #sentence: string;
  #until = 0;
  #toldAt = -Infinity;

  /** `sentence`: what the log says of a failure. */
  constructor(log: PluginTools['log'], sentence: string) {
    this.#log = log;
    this.#sentence = sentence;
  }

  /** True while nothing is to be asked. */
  get isOn(): boolean {
    return Date.now() < this.#until;
  }

  /** Notes a failure. */
  begin(error: unknown): void {
    const now = Date.now();
    this.#until = now + rest;
    if (now - this.#toldAt < quiet) return;
    this.#toldAt = now;
    this.#log.warn({ error }, this.#sentence);
  }
}
