/** Limits how much work runs at the same time. */

/** A counting semaphore: work beyond the limit waits in its order. The queue is not bounded. */
export class Semaphore {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  /** `limit`: maximum number of works that run at the same time. */
  constructor(limit: number) {
    this.#free = limit;
  }

  /** Runs work when a permit is free. */
  async run<Value>(work: () => Promise<Value>): Promise<Value> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      // The next work that waits takes the permit over.
      const next = this.#waiting.shift();
      if (next === undefined) this.#free += 1;
      else next();
    }
  }
}
