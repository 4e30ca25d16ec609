/** Budgets of keys and of their owners. */
import type { PriceRow } from '../settings/prices.ts';

/**
 * Maximum spending in a period.
 *
 * @example
 * const budget: Budget = { unit: 'micro-dollar', period: 'hours', hours: 5, amount: 2_000_000 };
 */
export interface Budget {
  readonly unit: 'micro-dollar' | 'token';
  /**
   * `hours`: the last hours at any time, a rolling window. Weeks begin on Monday. A budget by hours, or by days, weeks and months of a time zone
   * other than UTC, counts what is spent from when it is set; the others also count what was spent before.
   */
  readonly period: 'hours' | 'day' | 'week' | 'month' | 'total';
  readonly amount: number;
  /** Length of the window of `hours`: 1 to 168. */
  readonly hours?: number;
  /** The IANA time zone in which days, weeks and months begin. Default UTC. */
  readonly timeZone?: string;
}

/**
 * A budget that a call must fit in: of its key, or of an owner of the key, which is a member, a team or an organisation.
 *
 * @example
 * const ofTeam = key.budgets?.find(({ owner }) => owner?.name.startsWith('the team'));
 */
export interface HeldBudget extends Budget {
  /** Absent for a budget of the key. `name` is for sentences: `the team "research"`. `scope`: of an end user, the id of the key or owner that sets the budget. */
  readonly owner?: { readonly id: string; readonly name: string; readonly scope?: string };
}

/**
 * Price rule: the charge to the budgets of a team or organisation and of its keys, in place of the cost at the provider. The first model pattern that
 * matches the requested model decides, else `factor`. Costs that are multiplied are rounded up to whole micro-dollars.
 *
 * @example
 * const pricing: PriceRule = { factor: 1.2, models: [{ model: 'internal/*', factor: 0 }, { model: 'gpt-*', price: { input: 3, output: 15 } }] };
 */
export interface PriceRule {
  /** Multiplies the cost: 0 to 1,000. Default 1. */
  readonly factor?: number;
  /** Prices of models, by exact names and patterns with `*`. At most 200. */
  readonly models?: readonly ModelPrice[];
}

/**
 * The price of a model for a team or organisation: either a factor, or a row of prices as in the `prices` of the config. With a row a call is charged by
 * what it has used, whatever the provider costs, also where that has no price. Services that the row does not name, what is kept at a provider
 * and runs of tools are charged what they cost; the last two by `factor`.
 *
 * @example
 * const price: ModelPrice = { model: 'gpt-*', price: { input: 3, output: 15 } };
 */
export interface ModelPrice {
  readonly model: string;
  readonly factor?: number;
  readonly price?: PriceRow;
}

/**
 * Separate budget of each end user of a key or team. There is none in total, because their sums are removed when a period is over.
 *
 * @example
 * const each: EndUserBudget = { unit: 'micro-dollar', period: 'day', amount: 500_000 };
 */
export interface EndUserBudget extends Budget {
  readonly period: 'hours' | 'day' | 'week' | 'month';
}
