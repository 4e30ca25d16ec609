import { describe, expect, test, vi } from 'vitest';
import type { Usage } from '../../../../core/model/usage.ts';
import { createPrices, type PricedChannels, type Prices } from '../../../../core/money/prices/index.ts';
import type { Channel } from '../../../../core/sdk/call.ts';
import { pricesSchema } from '../../../../core/settings/prices.ts';

/** Channels by id: dollars per million input tokens of their models; undefined for a model without a price. */
type Known = Readonly<Record<string, Readonly<Record<string, number | undefined>>>>;

/** Prices of channels; `patterns` are the channels that serve every model by a pattern alone. */
function pricesOf(
  known: Known,
  { patterns = [], table = {}, unknown }: Options = {},
): Prices & { readonly looks: string[] } {
  const looks: string[] = [];
  const channels = Object.entries(known).map(
    ([id, models]) =>
      ({
        id,
        models: patterns.includes(id) ? ['*'] : Object.keys(models),
        priceOf(model: string) {
          looks.push(`${id}/${model}`);
          const input = models[model.replace('-there', '')];
          return input === undefined
            ? undefined
            : { name: model, source: `list of ${id}`, row: { input, output: 2 * input } };
        },
      }) as unknown as Channel,
  );
  const catalog: PricedChannels = {
    channels,
    candidates: (model) =>
      channels
        .filter(({ id, models }) => models.includes('*') || model in (known[id] ?? {}))
        .map((channel) => ({ channel, targets: [{ model: `${model}-there` }] })),
  };
  return Object.assign(createPrices(pricesSchema.parse(table), unknown && { unknown }, catalog), { looks });
}

interface Options {
  readonly patterns?: readonly string[];
  readonly table?: Parameters<typeof pricesSchema.parse>[0];
  readonly unknown?: (model: string) => void;
}

const used = (input: number): Usage => ({ input, output: 0, cacheRead: 0, cacheWrite: 0, reasoning: 0 });

describe('a model that several channels serve', () => {
  const known: Known = { cheap: { m: 1, one: 5 }, dear: { m: 3 }, middle: { m: 2 } };

  test('costs what the channel that served it takes, and the dearest where that is not told', () => {
    const prices = pricesOf(known);
    const at = (channel: string) => prices.cost('m', used(1_000), { channel, model: 'm-there' });
    expect([at('cheap'), at('dear'), at('middle')].map((cost) => cost?.microDollars)).toEqual([
      1_000, 3_000, 2_000,
    ]);
    expect(at('cheap')?.price).toMatchObject({ model: 'm-there', source: 'list of cheap', input: 1 });
    expect(prices.cost('m', used(1_000))?.microDollars).toBe(3_000);
    expect(prices.cost('m', used(1_000))?.price).toMatchObject({ source: 'list of dear' });
  });

  test('has the most that any of them may take reserved', () => {
    const prices = pricesOf(known);
    expect(prices.most('m', 1_000, 0)).toBe(3_000);
    expect(prices.most('m', 0, 1_000)).toBe(6_000);
    expect([prices.unpriced('m'), prices.most('one', 1_000, 0)]).toEqual([false, 5_000]);
  });

  test('costs nothing where it costs nothing everywhere, which is a price too', () => {
    const prices = pricesOf({ free: { m: 0 }, too: { m: 0 } });
    expect(prices.cost('m', used(1_000))).toMatchObject({ microDollars: 0 });
    expect(prices.most('m', 1_000, 1_000)).toBe(0);
  });

  test('has the price of the config first, whoever serves it', () => {
    const prices = pricesOf(known, { table: { m: { input: 7, output: 7 } } });
    expect(prices.cost('m', used(1_000), { channel: 'cheap', model: 'm-there' })?.microDollars).toBe(7_000);
    expect([prices.cost('m', used(1_000))?.microDollars, prices.most('m', 1_000, 0)]).toEqual([7_000, 7_000]);
    expect(prices.looks).toEqual([]);
  });

  test('is shown with the row of the channel, or of the first that has one', () => {
    const prices = pricesOf({ none: { m: undefined }, ...known });
    expect(prices.row('m')).toMatchObject({ source: 'list of cheap' });
    expect(prices.row('m', { channel: 'dear', model: 'm-there' })).toMatchObject({ source: 'list of dear' });
    expect(prices.row('m', { channel: 'none', model: 'm-there' })).toBeUndefined();
    expect(prices.row('nobody')).toBeUndefined();
  });
});

describe('a channel that knows no price', () => {
  test('of a model that it names leaves the model without one, and is told of once', () => {
    const unknown = vi.fn<(model: string) => void>();
    const prices = pricesOf({ priced: { m: 1 }, silent: { m: undefined } }, { unknown });
    expect([prices.unpriced('m'), prices.most('m', 1_000, 0)]).toEqual([true, undefined]);
    expect(prices.cost('m', used(1_000), { channel: 'silent', model: 'm-there' })).toBeUndefined();
    expect(prices.most('m', 1_000, 0)).toBeUndefined();
    expect(unknown.mock.calls).toEqual([['m']]);
    // Whoever did not serve it is no reason to charge nothing.
    expect(prices.cost('m', used(1_000))?.microDollars).toBe(1_000);
  });

  test('of a model that it serves by a pattern most likely does not have it', () => {
    const prices = pricesOf({ priced: { m: 1 }, any: {} }, { patterns: ['any'] });
    expect([prices.unpriced('m'), prices.most('m', 1_000, 0)]).toEqual([false, 1_000]);
    expect(prices.cost('m', used(1_000), { channel: 'any', model: 'm-there' })?.microDollars).toBe(1_000);
    expect([prices.unpriced('other'), prices.cost('other', used(1))]).toEqual([true, undefined]);
  });

  test('is looked at once for each name, but not for names that are too long to be remembered', () => {
    const prices = pricesOf({ a: { m: 1 } });
    const long = 'x'.repeat(200);
    for (let count = 0; count < 3; count += 1) {
      prices.cost('m', used(1), { channel: 'a', model: 'm' });
      prices.cost('m', used(1), { channel: 'a', model: 'unknown' });
      prices.row('m', { channel: 'a', model: long });
      prices.row('m', { channel: 'a', model: long.slice(1) });
    }
    const looks = (model: string): number => prices.looks.filter((one) => one === `a/${model}`).length;
    expect([looks('m'), looks('unknown'), looks(long.slice(1)), looks(long)]).toEqual([1, 1, 1, 3]);
  });
});

test('names of models that have no price are told of up to a bound', () => {
  const unknownModels = new Set<string>();
  const prices = pricesOf({}, { unknown: (model) => void unknownModels.add(model) });
  for (let count = 0; count < 1_100; count += 1) prices.cost(`m${count}`, used(1));
  expect(unknownModels.size).toBe(1_000);
});
