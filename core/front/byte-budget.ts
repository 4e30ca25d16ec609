/** Shares of the process-wide memory budget for request bodies, forms and files. */
import type { Held } from '../call/exchange.ts';
import { clientLeft } from './body-errors.ts';

/** Budget of bytes for all request bodies in memory. */
export interface ByteBudget {
  /** The whole budget, in bytes. */
  readonly most: number;
  /** Throws 503 when there is no room for so much more. */
  take(bytes: number): void;
  giveBack(bytes: number): void;
}

/** Bytes that the body of one call takes from a budget, until neither the call nor a call that continues with its body needs it. */
export class BudgetShare implements Held {
  readonly #budget: ByteBudget;
  #bytes = 0;
  #holders = 1;

  constructor(budget: ByteBudget) {
    this.#budget = budget;
  }

  /**
   * Raises the share to `bytes`, or to the whole budget where that is less. Throws 503 when there is no room for so many, and 499 when
   * the share was released.
   */
  grow(bytes: number): void {
    if (this.#holders === 0) throw clientLeft();
    const wanted = Math.min(bytes, this.#budget.most);
    if (wanted <= this.#bytes) return;
    this.#budget.take(wanted - this.#bytes);
    this.#bytes = wanted;
  }

  share(): this {
    this.#holders += 1;
    return this;
  }

  letGo(): void {
    this.#holders -= 1;
    if (this.#holders > 0) return;
    this.#budget.giveBack(this.#bytes);
    this.#bytes = 0;
  }
}

/** Memory that one form or file holds of a budget. */
export class HeldMemory {
  readonly #budget: ByteBudget | undefined;
  #held = 0;
  #isClosed = false;

  constructor(budget: ByteBudget | undefined) {
    this.#budget = budget;
  }

  /** Takes so many bytes more. Throws 503 when there is no room for them. */
  take(bytes: number): void {
    if (this.#isClosed) return;
    this.#budget?.take(bytes);
    this.#held += bytes;
  }

  giveBack(bytes: number): void {
    if (this.#isClosed) return;
    this.#held -= bytes;
    this.#budget?.giveBack(bytes);
  }

  /** Makes it at least `bytes` in all, or the whole budget where that is less. Throws 503 when there is no room. */
  grow(bytes: number): void {
    const wanted = Math.min(bytes, this.#budget?.most ?? bytes);
    if (wanted > this.#held) this.take(wanted - this.#held);
  }

  /** Sets the reservation to exactly `bytes`. Throws 503 when the budget is exhausted. */
  hold(bytes: number): void {
    if (bytes > this.#held) this.take(bytes - this.#held);
    else this.giveBack(this.#held - bytes);
  }

  /** Releases the whole reservation. */
  close(): void {
    this.giveBack(this.#held);
    this.#isClosed = true;
  }
}
