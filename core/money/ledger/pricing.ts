/** Price rules of teams and organisations. */
import type { Amounts } from '../../model/usage-record.ts';
import type { PriceRule } from '../../sdk/budget.ts';
import { matchesName } from '../../sdk/name-patterns.ts';

/** Patterns of a rule, each in a list of its own: what a list is compiled to is kept with the list. */
const patterns = new WeakMap<PriceRule, readonly (readonly [list: readonly string[], factor: number])[]>();

/** Returns the factor of a model. `model`: as it is asked for after all edits. */
export function factorFor(rule: PriceRule | undefined, model: string): number {
  if (rule === undefined) return 1;
  const { factor = 1, models } = rule;
  if (models === undefined) return factor;
  let known = patterns.get(rule);
  if (known === undefined)
    patterns.set(rule, (known = models.map((one) => [[one.model], one.factor] as const)));
  return known.find(([list]) => matchesName(list, model))?.[1] ?? factor;
}

/** Multiplies the micro-dollars of amounts. Rounds up, so that a part of a cost never comes to more than is reserved for the whole. */
export function multiplied(amounts: Amounts, factor: number): Amounts {
  return factor === 1 ? amounts : { ...amounts, microDollars: charged(amounts.microDollars, factor) };
}

/** Multiplies micro-dollars. */
export function charged(microDollars: number, factor: number): number {
  // The product of decimals may lie a little above a whole number: 10 × 1.1 is 11.000000000000002.
  return factor === 1 ? microDollars : Math.ceil(Number((microDollars * factor).toPrecision(14)));
}
