/** Price rules of teams and organisations. */
import type { Amounts } from '../../model/usage-record.ts';
import type { PriceRule } from '../../sdk/budget.ts';
import { matchesName } from '../../sdk/name-patterns.ts';
import { OwnRow, type PricedUsage } from '../prices/own-row.ts';

/** What a rule says of a model. */
export interface OwnPrice {
  /** Multiplies costs, where there is no row, or the row does not price them. */
  readonly factor: number;
  /** Prices of the owners for what a call uses. */
  readonly row?: OwnRow;
}

/** Prices of a rule, each with its pattern in a list of its own: what a list is compiled to is kept with the list. */
const compiled = new WeakMap<PriceRule, readonly (readonly [list: readonly string[], price: OwnPrice])[]>();

const asItCosts: OwnPrice = { factor: 1 };

/** Returns the price of a model. `model`: as it is asked for after all edits. */
export function priceFor(rule: PriceRule | undefined, model: string): OwnPrice {
  if (rule === undefined) return asItCosts;
  let known = compiled.get(rule);
  if (known === undefined) compiled.set(rule, (known = pricesOf(rule)));
  return known.find(([list]) => matchesName(list, model))?.[1] ?? asItCosts;
}

function pricesOf({ factor = 1, models = [] }: PriceRule) {
  const own = models.map(
    (one) =>
      [
        [one.model],
        one.price === undefined
          ? { factor: one.factor ?? factor }
          : { factor, row: new OwnRow(one.model, one.price) },
      ] as const,
  );
  return [...own, [['*'], { factor }] as const];
}

/** Returns the factor of a model, for costs that no row prices: what is kept at a provider, and runs of tools. */
export function factorFor(rule: PriceRule | undefined, model: string): number {
  return priceFor(rule, model).factor;
}

/**
 * Returns what owners are charged for usages that cost so much. `share`: the part of their price that is charged, as for batches, which give no
 * discount for services.
 */
export function chargedFor(
  { factor, row }: OwnPrice,
  cost: Amounts,
  usages: readonly PricedUsage[],
  share = 1,
): Amounts {
  if (row === undefined || usages.length === 0) return multiplied(cost, factor);
  let [tokens, services] = [0, 0];
  for (const usage of usages) {
    const [ofTokens, ofServices] = row.charge(usage);
    tokens += ofTokens;
    services += ofServices;
  }
  const microDollars = charged(tokens, share) + services;
  return microDollars === cost.microDollars ? cost : { ...cost, microDollars };
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
