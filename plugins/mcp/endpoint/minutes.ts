/** Counts the calls of each key in the present minute. */

/** Maximum number of keys that are counted at the same time. */
const maxKeys = 100_000;

/** Limit for each key separately. */
export class Minutes {
  readonly #limit: number;
  readonly #now: () => number;
  #since = 0;
  #counts = new Map<string, number>();

  /** `now` returns milliseconds. */
  constructor(limit: number, now: () => number = () => performance.now()) {
    this.#limit = limit;
    this.#now = now;
  }

  /** Counts a call. Returns 0, or the seconds to wait where there were too many. */
  take(key: string): number {
    const now = this.#now();
    if (this.#counts.size === 0 || now - this.#since >= 60_000 || this.#counts.size > maxKeys) {
      this.#since = now;
      this.#counts = new Map();
    }
    const count = this.#counts.get(key) ?? 0;
    if (count >= this.#limit) return Math.ceil((this.#since + 60_000 - now) / 1000);
    this.#counts.set(key, count + 1);
    return 0;
  }
}
