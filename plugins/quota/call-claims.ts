import { accountOf, Claim, noAmounts, sumOfAmounts, type Call } from 'sluice/internal';
import type { Amounts, Bookkeeper } from './core-types.ts';

/**
 * Everything that one call has claimed of its key's budgets. A further claim covers what was claimed and charged before it, because the
 * charges of a call are settled together, by one reservation that covers them.
 */
export class CallClaims {
  readonly #call: Call;
  readonly #bookkeeper: Bookkeeper;
  #claims: readonly Claim[];
  #last: Promise<unknown> = Promise.resolve();

  /** `first`: the reservation with which the call was admitted. */
  constructor(call: Call, bookkeeper: Bookkeeper, first: Claim) {
    this.#call = call;
    this.#bookkeeper = bookkeeper;
    this.#claims = [first];
  }

  /**
   * Makes a further claim, one after the other. `reserve` gets the amounts that the claim must hold beside its own. Rejects when the call has
   * ended.
   */
  further<Result>(reserve: (claim: Claim, before: Amounts) => Promise<Result>): Promise<Result> {
    const made = this.#last.then(async () => {
      const claim = new Claim(this.#bookkeeper);
      claim.endWith(this.#call);
      const result = await reserve(claim, this.#before);
      this.#claims = [...this.#claims.filter(({ held }) => held !== undefined), claim];
      return result;
    });
    this.#last = made.catch(() => {});
    return made;
  }

  get #before(): Amounts {
    const charged = accountOf(this.#call).charged?.amounts ?? noAmounts;
    return this.#claims.reduce((all, { held = noAmounts }) => sumOfAmounts(all, held), charged);
  }
}
