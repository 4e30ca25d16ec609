import type { Held } from '../call/exchange.ts';
import { clientLeft } from './body-errors.ts';

/** What all bodies that are held may come to. */
export interface ByteBudget {
  /** What it is in all. */
  readonly most: number;
  /** Throws 503 when there is no room for so much more. */
  take(bytes: number): void;
  giveBack(bytes: number): void;
}

/** What the body of one call takes of a budget, until neither the call nor one that goes on with its body needs it any more. */
export class BudgetShare implements Held {
  readonly #budget: ByteBudget;
  #bytes = 0;
  #holders = 1;

  constructor(budget: ByteBudget) {
    this.#budget = budget;
  }

  /**
   * Makes it `bytes` in all, or the whole budget where that is less. Throws 503 when there is no room for so many, and when nobody needs
   * the body any more.
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

  /** Makes it exactly `bytes` in all. Throws 503 when there is no room. */
  hold(bytes: number): void {
    if (bytes > this.#held) this.take(bytes - this.#held);
    else this.giveBack(this.#held - bytes);
  }

  /** Gives all back, once. */
  close(): void {
    this.giveBack(this.#held);
    this.#isClosed = true;
  }
}
