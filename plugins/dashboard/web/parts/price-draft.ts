/** The price rule of a team or organisation while it is typed, and the value that it stands for. */
import type { OwnerView } from '../../../admin/schemas/index.ts';
import type { Problems } from './limits-draft.ts';
import { amountForm, readAmount } from './number-text.ts';

type PriceRule = NonNullable<OwnerView['pricing']>;
type ModelPrice = NonNullable<PriceRule['models']>[number];
type PriceRow = NonNullable<ModelPrice['price']>;

/** Prices that have a field: dollars per million tokens. */
export const priceNames = ['input', 'output', 'cacheRead', 'cacheWrite'] as const;
type PriceName = (typeof priceNames)[number];

/** The price of a model, or of those of a pattern, while it is typed. */
export interface ModelPriceDraft {
  readonly id: number;
  readonly model: string;
  readonly by: 'factor' | 'price';
  /** As typed; so are the prices. */
  readonly factor: string;
  readonly prices: Readonly<Record<PriceName, string>>;
  /** The prices as they are stored, with those that have no field. */
  readonly stored: PriceRow;
}

/** A price rule while it is typed. */
export interface PriceRuleDraft {
  /** As typed; empty for none. */
  readonly factor: string;
  readonly models: readonly ModelPriceDraft[];
}

const noPrices = { input: '', output: '', cacheRead: '', cacheWrite: '' };

/** Returns the row of another model. */
export function newModelPrice(id: number): ModelPriceDraft {
  return { id, model: '', by: 'factor', factor: '', prices: noPrices, stored: {} };
}

/** Returns the fields of a form with a rule, or with none. */
export function draftOfPricing(rule: PriceRule | undefined): PriceRuleDraft {
  const text = (value: number | undefined): string => (value === undefined ? '' : String(value));
  const isEmpty = rule !== undefined && Object.keys(rule).length === 0;
  return {
    // A team with an empty rule is charged the cost, whatever the rule of its organisation is.
    factor: isEmpty ? '1' : text(rule?.factor),
    models: (rule?.models ?? []).map(({ model, factor, price = {} }, id) => ({
      id,
      model,
      by: factor === undefined ? 'price' : 'factor',
      factor: text(factor),
      prices: Object.fromEntries(
        priceNames.map((name) => [name, text(price[name])]),
      ) as ModelPriceDraft['prices'],
      stored: price,
    })),
  };
}

/** Returns the prices of a row that have no field, and stay as they are. */
export function otherPrices(stored: PriceRow): object {
  return Object.fromEntries(
    Object.entries(stored).filter(([name]) => !priceNames.some((one) => one === name)),
  );
}

/** Reads the fields; undefined for no rule. Problems are texts that are no numbers; the gateway checks the rest. */
export function readPricing(draft: PriceRuleDraft): {
  readonly rule: PriceRule | undefined;
  readonly problems: Problems<object>;
} {
  const problems: Problems<object> = {};
  const numberOf = (typed: string, path: string): number => {
    const number = readAmount(typed) ?? Number.NaN;
    if (Number.isNaN(number)) problems[`pricing.${path}`] = `must be a number of 0 or more, ${amountForm}`;
    return number;
  };
  const models = draft.models.map((row, index): ModelPrice => {
    const path = `models.${index}`;
    const model = row.model.trim();
    if (row.by === 'factor') return { model, factor: numberOf(row.factor, `${path}.factor`) };
    // The members stay in the order in which they are stored, so that nothing differs where nothing was changed.
    const price = { ...row.stored };
    for (const name of priceNames) {
      if (row.prices[name].trim() === '') delete price[name];
      else price[name] = numberOf(row.prices[name], `${path}.price.${name}`);
    }
    return { model, price };
  });
  const rule = {
    ...(draft.factor.trim() !== '' && { factor: numberOf(draft.factor, 'factor') }),
    ...(models.length > 0 && { models }),
  };
  return { rule: Object.keys(rule).length === 0 ? undefined : rule, problems };
}
