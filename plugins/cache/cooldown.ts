import type { PluginTools } from 'sluice';
import { RareWarning } from './rare-warning.ts';

/** Milliseconds for which a database that failed is not used. */
const cooldownMs = 5_000;

/** Cooldown of a database that failed. Failures are logged at most once a minute. */
export class Cooldown {
  readonly #warning: RareWarning;
  #until = 0;

  /** `message`: log message for a failure. */
  constructor(log: PluginTools['log'], message: string) {
    this.#warning = new RareWarning(log, message);
  }

  /** True while the database is not to be used. */
  get isActive(): boolean {
    return Date.now() < this.#until;
  }

  /** Starts the cooldown after a failure. */
  start(error: unknown): void {
    this.#until = Date.now() + cooldownMs;
    this.#warning.write({ error });
  }
}
