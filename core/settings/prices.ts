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

const tokens = (text: string): z.ZodOptional<typeof perMillion> => perMillion.optional().describe(text);

/** What tokens cost, in dollars per million. */
const tokenPrices = {
  input: tokens('tokens of the request'),
  cacheRead: tokens('tokens of the request that the provider reads from its cache. Default: like `input`'),
  cacheWrite: tokens('tokens that are written to the cache for five minutes. Default: like `input`'),
  cacheWriteLong: tokens('tokens that are written to the cache for an hour. Default: like `cacheWrite`'),
  output: tokens('tokens of the response'),
  reasoning: tokens('tokens of the response that are reasoning. Default: like `output`'),
  inputText: tokens('tokens of the request that stand for text. Default: like `input`'),
  inputAudio: tokens('tokens of the request that stand for sound. Default: like `input`'),
  inputImage: tokens('tokens of the request that stand for images. Default: like `input`'),
  inputVideo: tokens('tokens of the request that stand for video. Default: like `input`'),
  cacheReadText: tokens('cached tokens that stand for text. Default: like `cacheRead`'),
  cacheReadAudio: tokens('cached tokens that stand for sound. Default: like `cacheRead`'),
  cacheReadImage: tokens('cached tokens that stand for images. Default: like `cacheRead`'),
  cacheReadVideo: tokens('cached tokens that stand for video. Default: like `cacheRead`'),
  outputText: tokens('tokens of the response that stand for text. Default: like `output`'),
  outputAudio: tokens('tokens of the response that stand for sound. Default: like `output`'),
  outputImage: tokens('tokens of the response that stand for images. Default: like `output`'),
  outputVideo: tokens('tokens of the response that stand for video. Default: like `output`'),
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
  tiers: z
    .array(tierSchema)
    .min(1, 'must have a tier, or be left out')
    .optional()
    .describe(
      'prices for long contexts. Default: those of the row, or those of the service tier where these are higher',
    ),
});

/** A row of the price table: dollars per million tokens, and dollars for what is not counted in tokens. */
export const rowSchema = z
  .strictObject({
    ...tokenPrices,
    perImage: each.optional().describe('dollars for an image'),
    perSecond: each.optional().describe('dollars for a second of sound or video'),
    perCharacter: each.optional().describe('dollars for a character that is spoken'),
    perPage: each.optional().describe('dollars for a page of a document that is read'),
    perAnnotatedPage: each
      .optional()
      .describe('dollars for a page that is read and annotated. Default: `perPage`'),
    perCall: each.optional().describe('dollars for a call'),
    services: named
      .optional()
      .describe(
        "dollars for each use of a service that the provider runs for the model, by its name: `{ 'web-search': 0.01 }`. Default: as it is known",
      ),
    perImageAt: named
      .optional()
      .describe('dollars for an image of a quality, a size or both (`high/1024x1536`). Default: `perImage`'),
    perSecondAt: named
      .optional()
      .describe('dollars for a second of a resolution (`720p`). Default: `perSecond`'),
    perCallAt: named
      .optional()
      .describe(
        'dollars for a call with a search context of a size (`low`, `medium`, `high`). Default: `perCall`',
      ),
    serviceTiers: z
      .record(z.string().min(1).max(40), serviceTierSchema)
      .optional()
      .describe('token prices by service tier (`priority`, `flex`, `fast`)'),
    providerCost: z
      .boolean()
      .optional()
      .describe(
        'false: calls cost what this row says, also where the provider states their cost. Default true',
      ),
    tiers: z
      .array(tierSchema)
      .min(1, 'must have a tier, or be left out')
      .optional()
      .describe('other token prices for long contexts; what a tier leaves out stays as it is'),
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
  .default({})
  .describe('prices by public model name or pattern, in place of those that are known');

/** The prices of a tier. */
export type PriceTier = z.output<typeof tierSchema>;

/** The prices of a service tier. */
export type ServiceTierPrices = z.output<typeof serviceTierSchema>;

/** Prices of tokens, in dollars per million. */
export type TokenPrices = { readonly [Member in keyof typeof tokenPrices]?: number | undefined };

/** The checked table. */
export type PriceTable = z.output<typeof pricesSchema>;
