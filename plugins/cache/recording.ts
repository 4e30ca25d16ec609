/** Records the events of a response for the cache, within a limit for each response and one for all that a worker records. */
import type { GatewayEvent } from 'sluice';
import { sizeOf } from './entry.ts';

/** Memory of the responses that a worker records, in bytes. */
export interface Budget {
  /** Maximum of all of them together. */
  readonly most: number;
  used: number;
}

/** Records one response for one call. It stops, and drops the events, when the response or the sum of all recordings exceeds its limit. */
export class Recording {
  readonly #limit: number;
  readonly #budget: Budget;
  #events: GatewayEvent[] | undefined = [];
  #bytes = 0;

  /** `limit`: maximum number of bytes of the response. */
  constructor(limit: number, budget: Budget) {
    this.#limit = limit;
    this.#budget = budget;
  }

  add(event: GatewayEvent): void {
    if (this.#events === undefined) return;
    const size = sizeOf(event);
    this.#events.push(event);
    this.#bytes += size;
    this.#budget.used += size;
    if (this.#bytes > this.#limit || this.#budget.used > this.#budget.most) this.end();
  }

  /** Frees the memory. Returns the events; undefined where they were too long. */
  end(): readonly GatewayEvent[] | undefined {
    const events = this.#events;
    this.#events = undefined;
    this.#budget.used -= this.#bytes;
    this.#bytes = 0;
    return events;
  }
}
