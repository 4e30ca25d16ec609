/** Number of pico-dollars (1e-12 dollars) in a micro-dollar. Prices per token are whole numbers of pico-dollars. */
export const PICO = 1_000_000n;

/** Dollars as a whole number of 1e-12 dollars; what is finer is rounded up. `digits` is 6 for prices per million. */
export function pico(dollars: number, digits: 6 | 12): bigint {
  const scaled = dollars * 10 ** digits;
  const near = Math.round(scaled);
  // 0.1 + 0.2 and the like: what is off by less than a double can tell is the number that was meant.
  return BigInt(Math.abs(scaled - near) <= Math.abs(scaled) * 1e-12 ? near : Math.ceil(scaled));
}

/** Returns 1e-12 dollars as micro-dollars, rounded up. */
export function micro(amount: bigint): number {
  return Number((amount + PICO - 1n) / PICO);
}

/** Counts come from providers: anything that is no count is none. */
export function count(tokens: number): number {
  return tokens > 0 ? Math.min(Math.trunc(tokens), Number.MAX_SAFE_INTEGER) : 0;
}

/** Returns the largest of the amounts, and 0 without any. */
export function largest(...amounts: readonly bigint[]): bigint {
  return amounts.reduce((most, amount) => (amount > most ? amount : most), 0n);
}

/** Returns what uses of a service cost in micro-dollars, rounded up. */
export function microDollarsOf(uses: number, dollars: number): number {
  return micro(BigInt(count(Math.ceil(uses))) * pico(dollars, 12));
}
