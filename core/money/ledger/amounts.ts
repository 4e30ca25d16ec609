/** Arithmetic of amounts of micro-dollars and tokens. */
import type { Amounts } from '../../model/usage-record.ts';

/** Zero. */
export const none: Amounts = { microDollars: 0, tokens: 0 };

/** Adds amounts. */
export function sum(one: Amounts, other: Amounts): Amounts {
  return { microDollars: one.microDollars + other.microDollars, tokens: one.tokens + other.tokens };
}

/** Subtracts amounts. The result may be negative. */
export function difference(one: Amounts, other: Amounts): Amounts {
  return { microDollars: one.microDollars - other.microDollars, tokens: one.tokens - other.tokens };
}

/** Returns the smaller of each. */
export function smaller(one: Amounts, other: Amounts): Amounts {
  return {
    microDollars: Math.min(one.microDollars, other.microDollars),
    tokens: Math.min(one.tokens, other.tokens),
  };
}

/** True when there is room for the amounts, in micro-dollars and in tokens. */
export function fits(amounts: Amounts, room: Amounts): boolean {
  return amounts.microDollars <= room.microDollars && amounts.tokens <= room.tokens;
}
