/** Price rules of teams and organisations. */
import type { Amounts } from '../../model/usage-record.ts';
import type { Units } from '../../model/usage.ts';
import type { PriceRule } from '../../sdk/budget.ts';
import { matchesName } from '../../sdk/name-patterns.ts';
import type { Prices } from '../prices/index.ts';
import { OwnRow, type PricedUsage } from '../prices/own-row.ts';
import type { CallBounds } from '../prices/row.ts';

/** Effect of a price rule on a model. */
export interface OwnPrice {
  /** Multiplies costs, where there is no row, or the row does not price them. */
  readonly factor: number;
  /** Prices of the owners for what a call uses. */
  readonly row?: OwnRow | undefined;
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
 * Returns what owners are charged for usages that cost so much. `cost` has the share already; `share`: the part of a row's price that is
 * charged, of tokens and of services, as for cached responses.
 */
export function chargedFor(
  { factor, row }: OwnPrice,
  cost: Amounts,
  usages: readonly PricedUsage[],
  share = 1,
): Amounts {
  if (row === undefined || usages.length === 0) return multiplied(cost, factor);
  let whole = 0;
  for (const usage of usages) {
    const [tokens, services] = row.charge(usage);
    whole += tokens + services;
  }
  const microDollars = charged(whole, share);
  return microDollars === cost.microDollars ? cost : { ...cost, microDollars };
}

/** Returns the most that owners may be charged for calls that use so much together, in micro-dollars; undefined for a model without a price. */
export function mostFor(
  { factor, row }: OwnPrice,
  prices: Pick<Prices, 'most' | 'serviceCost'>,
  model: string,
  [input, output, units]: readonly [input: number, output: number, units?: Units | undefined],
  bounds: CallBounds = {},
): number | undefined {
  if (row !== undefined)
    return row.most([input, output, units ?? {}], bounds, (others) => prices.serviceCost(model, others));
  const most = prices.most(model, input, output, units, bounds);
  return most === undefined ? undefined : charged(most, factor);
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
