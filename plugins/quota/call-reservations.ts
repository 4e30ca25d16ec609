import { accountOf, CallReservation, noAmounts, sumOfAmounts, type Call } from 'sluice/internal';
import type { Amounts, Bookkeeper } from './core-types.ts';

/**
 * All reservations of one call on the budgets of its key. A further reservation covers what was reserved and charged before it, because the
 * charges of a call are settled together, by one reservation that covers them.
 */
export class CallReservations {
  readonly #call: Call;
  readonly #bookkeeper: Bookkeeper;
  #reservations: readonly CallReservation[];
  #last: Promise<unknown> = Promise.resolve();

  /** `first`: the reservation with which the call was admitted. */
  constructor(call: Call, bookkeeper: Bookkeeper, first: CallReservation) {
    this.#call = call;
    this.#bookkeeper = bookkeeper;
    this.#reservations = [first];
  }

  /**
   * Makes further reservations, one after the other. `reserve` gets the amounts that the reservation must hold beside its own. Rejects when the call has
   * ended.
   */
  further<Result>(
    reserve: (reservation: CallReservation, before: Amounts) => Promise<Result>,
  ): Promise<Result> {
    const made = this.#last.then(async () => {
      const reservation = new CallReservation(this.#bookkeeper);
      reservation.endWith(this.#call);
      const result = await reserve(reservation, this.#before);
      this.#reservations = [...this.#reservations.filter(({ held }) => held !== undefined), reservation];
      return result;
    });
    this.#last = made.catch(() => {});
    return made;
  }

  get #before(): Amounts {
    const charged = accountOf(this.#call).charged?.amounts ?? noAmounts;
    return this.#reservations.reduce((all, { held = noAmounts }) => sumOfAmounts(all, held), charged);
  }
}
