import type { JsonObject } from '../../model/json.ts';
import { sumUsage, type Usage } from '../../model/usage.ts';
import type { Amounts } from '../../model/usage-record.ts';
import type { HeldReservation } from './claim.ts';

/** Cost of what a call has used. */
export interface Charge {
  readonly amounts: Amounts;
  /** As the provider told it, or estimated from what was seen. Absent when no provider gave anything. */
  readonly usage?: Usage;
  /** Absent when the model has no price: its tokens are counted all the same. */
  readonly price?: JsonObject;
  /** The reservation that the charge settles; absent when nothing had to be reserved. */
  readonly reservation?: HeldReservation;
}

/**
 * Adds two charges of one call. The price is that of the second, where it has one, and the reservation is the larger one: what is reserved
 * for a further request covers the charges before it, too.
 */
export function sumOfCharges(before: Charge, more: Charge): Charge {
  const reservation = larger(before.reservation, more.reservation);
  const usage =
    before.usage === undefined || more.usage === undefined
      ? (before.usage ?? more.usage)
      : sumUsage(before.usage, more.usage);
  return {
    ...before,
    ...more,
    amounts: {
      microDollars: before.amounts.microDollars + more.amounts.microDollars,
      tokens: before.amounts.tokens + more.amounts.tokens,
    },
    ...(usage === undefined ? {} : { usage }),
    ...(reservation === undefined ? {} : { reservation }),
  };
}

/** Returns the reservation of more money, or of more tokens where neither is of money. */
function larger(
  one: HeldReservation | undefined,
  other: HeldReservation | undefined,
): HeldReservation | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  const isMore = one.most.microDollars - other.most.microDollars || one.most.tokens - other.most.tokens;
  return isMore > 0 ? one : other;
}
