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

/** Prices of tokens, in dollars per million. */
const tokenPrices = {
  input: tokens('input tokens'),
  cacheRead: tokens('input tokens that the provider reads from its prompt cache. Default: like `input`'),
  cacheWrite: tokens(
    'input tokens that are written to the prompt cache for five minutes. Default: like `input`',
  ),
  cacheWriteLong: tokens(
    'input tokens that are written to the prompt cache for an hour. Default: like `cacheWrite`',
  ),
  output: tokens('output tokens'),
  reasoning: tokens('output tokens of reasoning. Default: like `output`'),
  inputText: tokens('input tokens of text. Default: like `input`'),
  inputAudio: tokens('input tokens of audio. Default: like `input`'),
  inputImage: tokens('input tokens of images. Default: like `input`'),
  inputVideo: tokens('input tokens of video. Default: like `input`'),
  cacheReadText: tokens('cached input tokens of text. Default: like `cacheRead`'),
  cacheReadAudio: tokens('cached input tokens of audio. Default: like `cacheRead`'),
  cacheReadImage: tokens('cached input tokens of images. Default: like `cacheRead`'),
  cacheReadVideo: tokens('cached input tokens of video. Default: like `cacheRead`'),
  outputText: tokens('output tokens of text. Default: like `output`'),
  outputAudio: tokens('output tokens of audio. Default: like `output`'),
  outputImage: tokens('output tokens of images. Default: like `output`'),
  outputVideo: tokens('output tokens of video. Default: like `output`'),
};

const tierSchema = z.strictObject({
  above: z
    .int('must be a whole number of input tokens')
    .min(1, 'must be at least 1 input token')
    .describe('number of input tokens. The prices of this tier apply to calls with more'),
  ...tokenPrices,
});

const named = z.record(z.string().min(1).max(100), each);

/** Prices of one service tier. A price that it leaves out is that of the row. */
const serviceTierSchema = z.strictObject({
  ...tokenPrices,
  tiers: z
    .array(tierSchema)
    .min(1, 'must have at least one tier. Add one, or remove the option')
    .optional()
    .describe(
      'prices for long contexts. Default: the `tiers` of the row, or the prices of the service tier where these are higher',
    ),
});

/** A row of the price table: dollars per million tokens, and dollars per image, second, character, page, call or use of a service. */
export const rowSchema = z
  .strictObject({
    ...tokenPrices,
    perImage: each.optional().describe('dollars per image'),
    perSecond: each.optional().describe('dollars per second of audio or video'),
    perCharacter: each.optional().describe('dollars per character of text that is turned into speech'),
    perPage: each.optional().describe('dollars per page of a document that is read'),
    perAnnotatedPage: each
      .optional()
      .describe('dollars per page that is read and annotated. Default: `perPage`'),
    perCall: each.optional().describe('dollars per call'),
    services: named
      .optional()
      .describe(
        "dollars per use of a service that the provider runs for the model, by its name: `{ 'web-search': 0.01 }`. Default: the price of the catalogue",
      ),
    perImageAt: named
      .optional()
      .describe('dollars per image by quality, size or both (`high/1024x1536`). Default: `perImage`'),
    perSecondAt: named.optional().describe('dollars per second by resolution (`720p`). Default: `perSecond`'),
    perCallAt: named
      .optional()
      .describe(
        'dollars per call by size of the search context (`low`, `medium`, `high`). Default: `perCall`',
      ),
    serviceTiers: z
      .record(z.string().min(1).max(40), serviceTierSchema)
      .optional()
      .describe('token prices by service tier (`priority`, `flex`, `fast`)'),
    providerCost: z
      .boolean()
      .optional()
      .describe(
        'false: charges the prices of this row also where the provider reports the cost. Default: true',
      ),
    tiers: z
      .array(tierSchema)
      .min(1, 'must have at least one tier. Add one, or remove the option')
      .optional()
      .describe('token prices for long contexts. A price that a tier leaves out is that of the row'),
  })
  .superRefine((row, context) => {
    const complain = (path: (string | number)[], message: string): void =>
      context.addIssue({ code: 'custom', path, message });
    const { input, output, tiers, serviceTiers, ...others } = row;
    // Both are required, because a missing price would make those tokens free.
    if (input === undefined && output !== undefined)
      complain(['input'], 'is missing beside "output": set 0 if input is free');
    if (output === undefined && input !== undefined)
      complain(['output'], 'is missing beside "input": set 0 if there is no output, or it is free');
    if (input === undefined && output === undefined) {
      const { services: _, providerCost: _own, ...units } = others;
      const parts = Object.entries(others).filter(([name]) => Object.hasOwn(tokenPrices, name));
      const alone = [...parts, ['tiers', tiers] as const, ['serviceTiers', serviceTiers] as const].find(
        ([, value]) => value !== undefined,
      );
      if (alone !== undefined) complain([alone[0]], 'needs "input" and "output" too');
      else if (Object.values(units).every((value) => value === undefined))
        complain([], 'has no price: set input: 0 and output: 0 for a free model');
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
  .describe('prices by public model name or pattern, in place of those of the catalogue');

/** The prices of a tier. */
export type PriceTier = z.output<typeof tierSchema>;

/** The prices of a service tier. */
export type ServiceTierPrices = z.output<typeof serviceTierSchema>;

/** Prices of tokens, in dollars per million. */
export type TokenPrices = { readonly [Member in keyof typeof tokenPrices]?: number | undefined };

/** The checked table. */
export type PriceTable = z.output<typeof pricesSchema>;
