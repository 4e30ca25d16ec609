import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readConfig, inspectConfig } from '../../../../core/config/config.ts';
import type { Usage } from '../../../../core/model/usage.ts';
import { createPrices, type Prices } from '../../../../core/money/prices/index.ts';
import { pricesSchema } from '../../../../core/settings/prices.ts';

type Table = Parameters<typeof pricesSchema.parse>[0];

function pricesOf(table: Table, unknown?: (model: string) => void): Prices {
  return createPrices(pricesSchema.parse(table), unknown && { unknown });
}

/** A usage of which only this is said. */
function used(usage: Partial<Usage>): Usage {
  return { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, reasoning: 0, ...usage };
}

function dollarsOf(row: object, usage: Partial<Usage>): number | undefined {
  return pricesOf({ x: row }).cost('x', used(usage))?.microDollars;
}

const million = 1_000_000;

describe('what a call costs', () => {
  test('is its tokens at dollars per million, each kind at its own price and none twice', () => {
    const row = { input: 3, cacheRead: 0.3, cacheWrite: 3.75, cacheWriteLong: 6, output: 15, reasoning: 20 };
    expect(dollarsOf(row, { input: million })).toBe(3 * million);
    expect(dollarsOf(row, { input: million, cacheRead: million })).toBe(0.3 * million);
    expect(
      dollarsOf(row, { input: million, cacheRead: 400_000, cacheWrite: 500_000, cacheWriteLong: 200_000 }),
    ).toBe(0.1 * 3 * million + 0.4 * 0.3 * million + 0.3 * 3.75 * million + 0.2 * 6 * million);
    expect(dollarsOf(row, { output: million, reasoning: 250_000 })).toBe(
      0.75 * 15 * million + 0.25 * 20 * million,
    );
  });

  test('takes the plain price for what has none of its own', () => {
    const row = { input: 2, output: 8 };
    expect(
      dollarsOf(row, { input: million, cacheRead: 300_000, cacheWrite: 300_000, cacheWriteLong: 100_000 }),
    ).toBe(2 * million);
    expect(dollarsOf(row, { output: million, reasoning: 900_000 })).toBe(8 * million);
    expect(
      dollarsOf({ ...row, cacheWrite: 4 }, { input: million, cacheWrite: million, cacheWriteLong: million }),
    ).toBe(4 * million);
  });

  test('is rounded up once to whole micro-dollars, and nothing that was used is free', () => {
    expect(dollarsOf({ input: 0.075, output: 0.3 }, { input: 1 })).toBe(1);
    expect(dollarsOf({ input: 0.075, output: 0.3 }, { input: 20, output: 5 })).toBe(3);
    expect(dollarsOf({ input: 0.000_001, output: 0 }, { input: million })).toBe(1);
    expect(dollarsOf({ input: 0.000_000_1, output: 0 }, { input: 1 })).toBe(1);
    expect(dollarsOf({ input: 0, output: 0 }, { input: million, output: million })).toBe(0);
  });

  test('has no dust of binary fractions in it', () => {
    // 0.1 + 0.2 is more than 0.3 in doubles, and would be rounded up to one micro-dollar more.
    expect(dollarsOf({ input: 0.1, cacheRead: 0.2, output: 0 }, { input: 20, cacheRead: 10 })).toBe(3);
    expect(dollarsOf({ input: 1.1, output: 0 }, { input: 30 })).toBe(33);
    expect(dollarsOf({ input: 4.35, output: 0 }, { input: 100 })).toBe(435);
    expect(dollarsOf({ input: 0.075, output: 0 }, { input: 40 })).toBe(3);
  });

  test('depends on the length of the context where there are tiers', () => {
    const row = {
      input: 1,
      cacheRead: 0.1,
      output: 10,
      tiers: [
        { above: 500_000, input: 4, output: 30 },
        { above: 200_000, input: 2, cacheRead: 0.2 },
      ],
    };
    expect(dollarsOf(row, { input: 200_000 })).toBe(200_000);
    expect(dollarsOf(row, { input: 200_001 })).toBe(400_002);
    expect(dollarsOf(row, { input: 300_000, cacheRead: 300_000, output: 1000 })).toBe(60_000 + 10_000);
    expect(dollarsOf(row, { input: 600_000, cacheRead: 100_000, output: 1000 })).toBe(
      2_000_000 + 10_000 + 30_000,
    );
  });

  test('counts images, seconds, characters and the call itself', () => {
    const prices = pricesOf({
      x: { perImage: 0.04, perSecond: 0.0001, perCharacter: 0.000_015, perCall: 0.005 },
    });
    const cost = (units: object): number | undefined =>
      prices.cost('x', { ...used({}), units })?.microDollars;
    expect(cost({})).toBe(5000);
    expect(cost({ images: 3 })).toBe(125_000);
    expect(cost({ seconds: 12.3456 })).toBe(5000 + 1235);
    expect(cost({ characters: 1000 })).toBe(20_000);
  });

  test('is never below nothing, whatever a provider counts', () => {
    const row = { input: 3, cacheRead: 0.3, output: 15 };
    expect(dollarsOf(row, { input: 10, cacheRead: 1000 })).toBe(300);
    expect(dollarsOf(row, { input: -5, output: Number.NaN, cacheRead: -1, reasoning: -3 })).toBe(0);
    expect(dollarsOf(row, { output: Number.POSITIVE_INFINITY })).toBeGreaterThan(1e15);
  });
});

describe('which row is used', () => {
  const prices = pricesOf({
    '*': { input: 9, output: 9 },
    'big-*': { input: 2, output: 2 },
    'big-*-mini': { input: 1, output: 1 },
    'big-new-mini': { input: 3, output: 3, tiers: [{ above: 10, input: 4 }] },
  });

  test.each([
    ['big-new-mini', 'big-new-mini'],
    ['big-old-mini', 'big-*-mini'],
    ['big-old', 'big-*'],
    ['other', '*'],
  ])('%s is priced by %s: an exact name first, then the longest pattern', (model, pattern) => {
    expect(prices.row(model)).toMatchObject({ model: pattern });
    expect(prices.cost(model, used({ input: 1 }))?.price).toMatchObject({ model: pattern });
  });

  test('stands beside the cost, with the tier that was in force', () => {
    expect(prices.cost('big-new-mini', used({ input: 5 }))?.price).toEqual({
      model: 'big-new-mini',
      input: 3,
      output: 3,
    });
    expect(prices.cost('big-new-mini', used({ input: 11 }))?.price).toEqual({
      model: 'big-new-mini',
      input: 4,
      output: 3,
      above: 10,
    });
    expect(prices.row('big-new-mini')).toEqual({
      model: 'big-new-mini',
      input: 3,
      output: 3,
      tiers: [{ above: 10, input: 4 }],
    });
  });

  test('is told of once when there is none, and the cost is unknown instead of nothing', () => {
    const missing: string[] = [];
    const some = pricesOf({ known: { input: 1, output: 1 } }, (model) => missing.push(model));
    expect(some.cost('other', used({ input: 1 }))).toBeUndefined();
    expect(some.most('other', 1, 1)).toBeUndefined();
    expect(some.row('other')).toBeUndefined();
    expect(some.cost('other', used({ input: 1 }))).toBeUndefined();
    for (let index = 0; index < 5000; index += 1) some.cost(`flood-${index}`, used({ input: 1 }));
    expect(missing[0]).toBe('other');
    expect(missing.filter((model) => model === 'other')).toHaveLength(1);
    expect(missing.length, 'a flood of names fills no memory').toBeLessThanOrEqual(1000);
  });
});

describe('a price table that makes no sense is refused by row and member', () => {
  test.each([
    [
      { m: { input: -1, output: 1 } },
      'option "prices.m.input": must be 0 or more dollars per million tokens.',
    ],
    [
      { m: { input: '3', output: 1 } },
      'option "prices.m.input": must be a number of dollars per million tokens.',
    ],
    [{ m: { input: 3 } }, 'option "prices.m.output": is missing beside "input": set 0 if there is no output'],
    [{ m: { output: 3 } }, 'option "prices.m.input": is missing beside "output"'],
    [{ m: {} }, 'option "prices.m": has no price: set input: 0 and output: 0 for a free model.'],
    [{ m: { cacheRead: 1 } }, 'option "prices.m.cacheRead": needs "input" and "output" too.'],
    [{ m: { perImage: 5000 } }, 'option "prices.m.perImage": must be at most 1000 dollars.'],
    [{ m: { inputs: 1 } }, 'unknown option "inputs" in prices.m.'],
    [
      { m: { input: 1, output: 1, tiers: [{ above: 0, input: 2 }] } },
      'option "prices.m.tiers.0.above": must be at least 1',
    ],
    [{ m: { input: 1, output: 1, tiers: [{ above: 5 }] } }, 'option "prices.m.tiers.0": changes no price.'],
    [
      {
        m: {
          input: 1,
          output: 1,
          tiers: [
            { above: 5, input: 1 },
            { above: 5, input: 2 },
          ],
        },
      },
      `option "prices.m.tiers.1.above": is the same as another tier's: 5.`,
    ],
    [{ '': { input: 1, output: 1 } }, 'must name a model'],
    [[], 'option "prices"'],
  ])('%j', (prices, sentence) => {
    const { problems } = inspectConfig({ prices }, '/x/gateway.config.ts');
    expect(problems.join('\n')).toContain(sentence);
  });

  test('and a sound one is taken', () => {
    const { settings } = readConfig({ prices: { m: { input: 1, output: 0 } } }, '/x/gateway.config.ts');
    expect(settings.prices).toEqual({ m: { input: 1, output: 0 } });
  });
});

describe('laws', () => {
  const price = fc.oneof(
    fc.integer({ min: 0, max: 100_000_000 }).map((pico) => pico / 1e6),
    fc.double({ min: 0, max: 1000, noNaN: true }),
  );
  const tokens = fc.integer({ min: 0, max: 5_000_000 });
  const optional = fc.option(price, { nil: undefined });
  const row = fc.record({
    input: price,
    output: price,
    cacheRead: optional,
    cacheWrite: optional,
    cacheWriteLong: optional,
    reasoning: optional,
    tiers: fc.option(
      fc.uniqueArray(
        fc.record({ above: fc.integer({ min: 1, max: 3_000_000 }), input: price, output: optional }),
        {
          selector: ({ above }) => above,
          minLength: 1,
          maxLength: 3,
        },
      ),
      { nil: undefined },
    ),
  });
  const usage = fc
    .tuple(
      tokens,
      tokens,
      fc.double({ min: 0, max: 1, noNaN: true }),
      fc.double({ min: 0, max: 1, noNaN: true }),
    )
    .map(([input, output, share, part]): Usage => {
      const cacheRead = Math.floor(input * share);
      const cacheWrite = Math.floor((input - cacheRead) * part);
      return {
        input,
        output,
        cacheRead,
        cacheWrite,
        cacheWriteLong: Math.floor(cacheWrite * share),
        reasoning: Math.floor(output * part),
      };
    });
  const costOf = (prices: Prices, one: Usage): number => prices.cost('x', one)?.microDollars ?? -1;

  test('a cost is a whole number, never below nothing and never above what was reserved for it', () => {
    fc.assert(
      fc.property(row, usage, (one, call) => {
        const prices = pricesOf({ x: one });
        const cost = costOf(prices, call);
        expect(Number.isSafeInteger(cost) && cost >= 0).toBe(true);
        expect(cost).toBeLessThanOrEqual(prices.most('x', call.input, call.output) ?? -1);
      }),
    );
  });

  test('calls that are reserved together never cost more than that, each rounded up by itself', () => {
    const unit = fc.double({ min: 0, max: 0.1, noNaN: true });
    const priced = fc
      .tuple(row, fc.record({ perCall: unit, perSecond: unit, perImage: unit }))
      .map(([one, more]) => ({ ...one, ...more }));
    const call = fc.tuple(usage, fc.double({ min: 0, max: 100, noNaN: true }), fc.nat(4));
    fc.assert(
      fc.property(priced, fc.array(call, { minLength: 1, maxLength: 20 }), (x, given) => {
        const prices = pricesOf({ x });
        const calls = given.map(([one, seconds, images]) => ({ ...one, units: { seconds, images } }));
        const sum = (of: (call: (typeof calls)[number]) => number): number =>
          calls.reduce((total, one) => total + of(one), 0);
        const most = prices.most(
          'x',
          sum(({ input }) => input),
          sum(({ output }) => output),
          { seconds: sum(({ units }) => units.seconds), images: sum(({ units }) => units.images) },
          { calls: calls.length, longest: Math.max(...calls.map(({ input }) => input)) },
        );
        expect(sum((one) => costOf(prices, one))).toBeLessThanOrEqual(most ?? -1);
      }),
    );
  });

  test('more tokens never cost less', () => {
    fc.assert(
      fc.property(row, usage, fc.nat(10_000), ({ tiers: _none, ...one }, call, more) => {
        const prices = pricesOf({ x: one });
        const cost = costOf(prices, call);
        expect(costOf(prices, { ...call, output: call.output + more })).toBeGreaterThanOrEqual(cost);
        expect(costOf(prices, { ...call, input: call.input + more })).toBeGreaterThanOrEqual(cost);
        expect(prices.most('x', call.input + more, call.output)).toBeGreaterThanOrEqual(
          prices.most('x', call.input, call.output) ?? 0,
        );
      }),
    );
  });

  test('a cost is the sum of its parts, but for the rounding of each', () => {
    fc.assert(
      fc.property(row, usage, ({ tiers: _none, ...one }, call) => {
        const prices = pricesOf({ x: one });
        const { input, output, cacheRead, cacheWrite, cacheWriteLong = 0, reasoning } = call;
        const parts = [
          used({ input: input - cacheRead - cacheWrite }),
          used({ input: cacheRead, cacheRead }),
          used({ input: cacheWrite - cacheWriteLong, cacheWrite: cacheWrite - cacheWriteLong }),
          used({ input: cacheWriteLong, cacheWrite: cacheWriteLong, cacheWriteLong }),
          used({ output: output - reasoning }),
          used({ output: reasoning, reasoning }),
        ].map((part) => costOf(prices, part));
        const sum = parts.reduce((total, part) => total + part, 0);
        expect(sum).toBeGreaterThanOrEqual(costOf(prices, call));
        expect(sum - costOf(prices, call)).toBeLessThan(parts.length);
      }),
    );
  });

  test('a cost is what the decimal numbers say, rounded up', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 2_000_000_000 }),
        fc.integer({ min: 0, max: 20_000_000 }),
        (pico, count) => {
          const exact = (BigInt(pico) * BigInt(count) + 999_999n) / 1_000_000n;
          expect(dollarsOf({ input: pico / 1e6, output: 0 }, { input: count })).toBe(Number(exact));
        },
      ),
    );
  });
});
