import type { JsonObject } from '../../model/json.ts';
import { sumUsage, type Usage } from '../../model/usage.ts';
import type { Amounts } from '../../model/usage-record.ts';

/** Cost of what a call has used. */
export interface Charge {
  readonly amounts: Amounts;
  /** As the provider told it, or estimated from what was seen. Absent when no provider gave anything. */
  readonly usage?: Usage;
  /** Absent when the model has no price: its tokens are counted all the same. */
  readonly price?: JsonObject;
  /** The reservation that the charge settles; absent when nothing had to be reserved. */
  readonly reservation?: string;
}

/** Adds two charges of one call. The price and the reservation are those of the second, where it has them. */
export function sumOfCharges(before: Charge, more: Charge): Charge {
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
  };
}
