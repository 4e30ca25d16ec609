import { z } from 'zod';

const perMillion = z
  .number('must be a number of dollars per million tokens')
  .min(0, 'must be 0 or more dollars per million tokens')
  .max(1_000_000, 'must be at most a million dollars per million tokens');

const each = z
  .number('must be a number of dollars')
  .min(0, 'must be 0 or more dollars')
  .max(1000, 'must be at most 1000 dollars');

/** What tokens cost, in dollars per million. */
const tokenPrices = {
  input: perMillion.optional(),
  /** Default: like `input`. */
  cacheRead: perMillion.optional(),
  /** Writes that last five minutes. Default: like `input`. */
  cacheWrite: perMillion.optional(),
  /** Writes that last an hour. Default: like `cacheWrite`. */
  cacheWriteLong: perMillion.optional(),
  output: perMillion.optional(),
  /** Default: like `output`. */
  reasoning: perMillion.optional(),
};

const tierSchema = z.strictObject({
  above: z
    .int('must be a whole number of input tokens')
    .min(1, 'must be at least 1 input token')
    .describe('the prices of this tier hold for calls with more input tokens than this'),
  ...tokenPrices,
});

/** A row of the price table: dollars per million tokens, and dollars for what is not counted in tokens. */
export const rowSchema = z
  .strictObject({
    ...tokenPrices,
    perImage: each.optional(),
    perSecond: each.optional(),
    perCharacter: each.optional(),
    perCall: each.optional(),
    /** Dollars for each use of a service that the provider runs for the model, by its name: `{ 'web-search': 0.01 }`. Default: as it is known. */
    services: z.record(z.string().min(1).max(100), each).optional(),
    /** Other token prices for long contexts; what a tier leaves out stays as it is. */
    tiers: z.array(tierSchema).min(1, 'must have a tier, or be left out').optional(),
  })
  .superRefine((row, context) => {
    const complain = (path: (string | number)[], message: string): void =>
      context.addIssue({ code: 'custom', path, message });
    const { input, output, tiers, ...others } = row;
    // Forgetting one of them would give it away.
    if (input === undefined && output !== undefined)
      complain(['input'], 'is missing beside "output": write 0 when the input is free');
    if (output === undefined && input !== undefined)
      complain(['output'], 'is missing beside "input": write 0 when there is no output, or it is free');
    if (input === undefined && output === undefined) {
      const { cacheRead, cacheWrite, cacheWriteLong, reasoning, services: _, ...units } = others;
      const parts = { cacheRead, cacheWrite, cacheWriteLong, reasoning, tiers };
      const alone = Object.entries(parts).find(([, value]) => value !== undefined);
      if (alone !== undefined) complain([alone[0]], 'needs "input" and "output" beside it');
      else if (Object.values(units).every((value) => value === undefined))
        complain([], 'names no price: write input: 0 and output: 0 for what is free');
    }
    const seen = new Set<number>();
    tiers?.forEach(({ above, ...prices }, index) => {
      if (seen.has(above)) complain(['tiers', index, 'above'], `is the same as another tier's: ${above}`);
      seen.add(above);
      if (Object.values(prices).every((value) => value === undefined))
        complain(['tiers', index], 'changes no price');
    });
  });

/** A checked row. */
export type PriceRow = z.output<typeof rowSchema>;

/** The `prices` of the config: by public model name or pattern, in dollars per million tokens. */
export const pricesSchema = z
  .record(z.string(), rowSchema)
  .refine((rows) => !('' in rows), 'a row has no name: it must name a model')
  .default({});

/** The prices of a tier. */
export type PriceTier = z.output<typeof tierSchema>;

/** The checked table. */
export type PriceTable = z.output<typeof pricesSchema>;
