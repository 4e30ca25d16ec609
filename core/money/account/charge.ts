/** The charge of a call, and the sum of several charges with one reservation that covers them. */
import type { JsonObject } from '../../model/json.ts';
import { sumUsage, type Usage } from '../../model/usage.ts';
import type { Amounts } from '../../model/usage-record.ts';
import { fits, sum } from '../ledger/amounts.ts';
import type { HeldReservation } from './call-reservation.ts';

/** Charge for the usage of a call. */
export interface Charge {
  /** Amounts that are charged. */
  readonly amounts: Amounts;
  /** Cost in micro-dollars, where a price rule makes the charge another amount. */
  readonly cost?: number;
  /** As the provider reported it, or estimated from the events of the response. Absent when no provider answered. */
  readonly usage?: Usage;
  /** Absent when the model has no price: its tokens are counted all the same. */
  readonly price?: JsonObject;
  /** The reservation that the charge settles; absent when nothing had to be reserved. */
  readonly reservation?: HeldReservation;
}

/**
 * Adds two charges of one call. The price is that of the second, where it has one. The reservation is one that covers both: what is reserved
 * for a further request covers the charges before it, too.
 */
export function sumOfCharges(before: Charge, more: Charge): Charge {
  const amounts = sum(before.amounts, more.amounts);
  const cost = costOf(before) + costOf(more);
  const [{ cost: _before, ...earlier }, { cost: _more, ...later }] = [before, more];
  const reservation = covering(amounts, before.reservation, more.reservation);
  const usage =
    before.usage === undefined || more.usage === undefined
      ? (before.usage ?? more.usage)
      : sumUsage(before.usage, more.usage);
  return {
    ...earlier,
    ...later,
    amounts,
    ...(cost === amounts.microDollars ? {} : { cost }),
    ...(usage === undefined ? {} : { usage }),
    ...(reservation === undefined ? {} : { reservation }),
  };
}

/** Returns the cost of a charge, in micro-dollars. */
export function costOf({ amounts, cost }: Charge): number {
  return cost ?? amounts.microDollars;
}

/** Returns the reservation that covers the amounts; the later one where none does, because a provider charged more than it was allowed. */
function covering(
  amounts: Amounts,
  earlier: HeldReservation | undefined,
  later: HeldReservation | undefined,
): HeldReservation | undefined {
  return [later, earlier].find((one) => one !== undefined && fits(amounts, one.most)) ?? later ?? earlier;
}
