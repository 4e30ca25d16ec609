/** Price rules of teams and organisations in words. */
import { isMembers } from './json-schema.ts';

/** Returns a name of the API as words: `cacheRead` is `cache read`. */
export const wordsOf = (name: string): string =>
  name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

/** Returns prices in words: `input $3, output $15, services (web-search $0.01)`. */
export function pricesText(prices: object): string {
  return Object.entries(prices)
    .map(([name, value]: [string, unknown]) => `${wordsOf(name)} ${priceText(name, value)}`)
    .join(', ');
}

function priceText(name: string, value: unknown): string {
  if (Array.isArray(value)) return value.map((one) => priceText('', one)).join(' ');
  if (isMembers(value)) return `(${pricesText(value)})`;
  // The step of prices for long contexts is a number of tokens.
  return typeof value === 'number' && name !== 'above' ? `$${value}` : String(value);
}

/** Returns what a model, or all others, are charged by a factor. */
const factorText = (factor: unknown): string => `${String(factor)} × the cost`;

/** Returns the lines of a price rule, by what each is about. */
export function pricingLines(rule: unknown): readonly (readonly [about: string, text: string])[] {
  if (!isMembers(rule)) return [];
  const { factor = 1, models } = rule;
  const rows = Array.isArray(models) ? models.filter(isMembers) : [];
  return [
    ...rows.map(({ model, factor: own, price }) => {
      const text = isMembers(price) ? pricesText(price) : factorText(own);
      return [String(model), text] as const;
    }),
    [rows.length === 0 ? 'every model' : 'other models', factorText(factor)] as const,
  ];
}
