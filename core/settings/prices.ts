/** Schemas of the rows of the price table. */
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
  /** Prices of tokens that stand for one kind of content. Default: like `input`, `cacheRead` and `output`. */
  inputText: perMillion.optional(),
  inputAudio: perMillion.optional(),
  inputImage: perMillion.optional(),
  inputVideo: perMillion.optional(),
  cacheReadText: perMillion.optional(),
  cacheReadAudio: perMillion.optional(),
  cacheReadImage: perMillion.optional(),
  cacheReadVideo: perMillion.optional(),
  outputText: perMillion.optional(),
  outputAudio: perMillion.optional(),
  outputImage: perMillion.optional(),
  outputVideo: perMillion.optional(),
};

const tierSchema = z.strictObject({
  above: z
    .int('must be a whole number of input tokens')
    .min(1, 'must be at least 1 input token')
    .describe('the prices of this tier hold for calls with more input tokens than this'),
  ...tokenPrices,
});

const named = z.record(z.string().min(1).max(100), each);

/** Prices of one service tier; what it leaves out costs what it does without the tier. */
const serviceTierSchema = z.strictObject({
  ...tokenPrices,
  /** Prices for long contexts. Absent: those of the row, or those of the tier where these are higher. */
  tiers: z.array(tierSchema).min(1, 'must have a tier, or be left out').optional(),
});

/** A row of the price table: dollars per million tokens, and dollars for what is not counted in tokens. */
export const rowSchema = z
  .strictObject({
    ...tokenPrices,
    perImage: each.optional(),
    perSecond: each.optional(),
    perCharacter: each.optional(),
    /** Dollars for a page of a document that is read, and for annotating it besides. Default of the latter: `perPage`. */
    perPage: each.optional(),
    perAnnotatedPage: each.optional(),
    perCall: each.optional(),
    /** Dollars for each use of a service that the provider runs for the model, by its name: `{ 'web-search': 0.01 }`. Default: as it is known. */
    services: named.optional(),
    /** Dollars for an image of a quality, a size or both (`high/1024x1536`). Default: `perImage`. */
    perImageAt: named.optional(),
    /** Dollars for a second of a resolution (`720p`). Default: `perSecond`. */
    perSecondAt: named.optional(),
    /** Dollars for a call with a search context of a size (`low`, `medium`, `high`). Default: `perCall`. */
    perCallAt: named.optional(),
    /** Token prices by service tier (`priority`, `flex`, `fast`). */
    serviceTiers: z.record(z.string().min(1).max(40), serviceTierSchema).optional(),
    /** False: calls cost what this row says, also where the provider states their cost. Default true. */
    providerCost: z.boolean().optional(),
    /** Other token prices for long contexts; what a tier leaves out stays as it is. */
    tiers: z.array(tierSchema).min(1, 'must have a tier, or be left out').optional(),
  })
  .superRefine((row, context) => {
    const complain = (path: (string | number)[], message: string): void =>
      context.addIssue({ code: 'custom', path, message });
    const { input, output, tiers, serviceTiers, ...others } = row;
    // Forgetting one of them would give it away.
    if (input === undefined && output !== undefined)
      complain(['input'], 'is missing beside "output": write 0 when the input is free');
    if (output === undefined && input !== undefined)
      complain(['output'], 'is missing beside "input": write 0 when there is no output, or it is free');
    if (input === undefined && output === undefined) {
      const { services: _, providerCost: _own, ...units } = others;
      const parts = Object.entries(others).filter(([name]) => Object.hasOwn(tokenPrices, name));
      const alone = [...parts, ['tiers', tiers] as const, ['serviceTiers', serviceTiers] as const].find(
        ([, value]) => value !== undefined,
      );
      if (alone !== undefined) complain([alone[0]], 'needs "input" and "output" beside it');
      else if (Object.values(units).every((value) => value === undefined))
        complain([], 'names no price: write input: 0 and output: 0 for what is free');
    }
    const checkTiers = (
      path: readonly string[],
      steps: readonly z.output<typeof tierSchema>[] = [],
    ): void => {
      const seen = new Set<number>();
      steps.forEach(({ above, ...prices }, index) => {
        if (seen.has(above)) complain([...path, index, 'above'], `is the same as another tier's: ${above}`);
        seen.add(above);
        if (Object.values(prices).every((value) => value === undefined))
          complain([...path, index], 'changes no price');
      });
    };
    checkTiers(['tiers'], tiers);
    for (const [name, { tiers: steps, ...prices }] of Object.entries(serviceTiers ?? {})) {
      checkTiers(['serviceTiers', name, 'tiers'], steps);
      if (Object.values(prices).every((value) => value === undefined))
        complain(['serviceTiers', name], 'changes no price');
    }
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

/** The prices of a service tier. */
export type ServiceTierPrices = z.output<typeof serviceTierSchema>;

/** Prices of tokens, in dollars per million. */
export type TokenPrices = { readonly [Member in keyof typeof tokenPrices]?: number | undefined };

/** The checked table. */
export type PriceTable = z.output<typeof pricesSchema>;
