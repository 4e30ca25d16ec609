import { z } from 'zod';
import type { JsonObject } from '../../model/json.ts';
import type { Units, Usage } from '../../model/usage.ts';

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
      const { cacheRead, cacheWrite, cacheWriteLong, reasoning, ...units } = others;
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

/** Millionths of a micro-dollar: the smallest price per token that is told apart. */
const PICO = 1_000_000n;

/** The prices of one row at one length of context, as whole numbers of 1e-12 dollars, so that no sum is off by a rounding. */
export class Tariff {
  readonly #input: bigint;
  readonly #cacheRead: bigint;
  readonly #cacheWrite: bigint;
  readonly #cacheWriteLong: bigint;
  readonly #output: bigint;
  readonly #reasoning: bigint;
  readonly #units: { readonly [Unit in keyof Units]-?: bigint };
  readonly #call: bigint;
  /** Applies to calls with more input tokens than this. */
  readonly above: number;
  /** What stands in the record of a call. */
  readonly shown: JsonObject;

  /** `source`: where the row comes from, when it is not the config. */
  constructor(model: string, row: PriceRow, tier: z.output<typeof tierSchema> | undefined, source?: string) {
    const prices = { ...row, ...defined(tier ?? {}), tiers: undefined };
    const { input = 0, output = 0 } = prices;
    const { cacheRead = input, cacheWrite = input, reasoning = output } = prices;
    const { cacheWriteLong = cacheWrite } = prices;
    this.#input = pico(input, 6);
    this.#cacheRead = pico(cacheRead, 6);
    this.#cacheWrite = pico(cacheWrite, 6);
    this.#cacheWriteLong = pico(cacheWriteLong, 6);
    this.#output = pico(output, 6);
    this.#reasoning = pico(reasoning, 6);
    const { perImage = 0, perSecond = 0, perCharacter = 0, perCall = 0 } = prices;
    this.#units = {
      images: pico(perImage, 12),
      seconds: pico(perSecond, 12),
      characters: pico(perCharacter, 12),
    };
    this.#call = pico(perCall, 12);
    this.above = tier?.above ?? 0;
    this.shown = Object.freeze({ model, ...defined({ source }), ...defined(prices) }) as JsonObject;
  }

  /** In micro-dollars, rounded up. Parts that exceed their whole (some providers count so) are charged as they are told. */
  cost({ input, output, cacheRead, cacheWrite, cacheWriteLong = 0, reasoning }: Usage, units: Units): number {
    const long = Math.min(count(cacheWriteLong), count(cacheWrite));
    const plainInput = Math.max(0, count(input) - count(cacheRead) - count(cacheWrite));
    const plainOutput = Math.max(0, count(output) - count(reasoning));
    return micro(
      BigInt(plainInput) * this.#input +
        BigInt(count(cacheRead)) * this.#cacheRead +
        BigInt(count(cacheWrite) - long) * this.#cacheWrite +
        BigInt(long) * this.#cacheWriteLong +
        BigInt(plainOutput) * this.#output +
        BigInt(count(reasoning)) * this.#reasoning +
        this.#besides(units),
    );
  }

  /** The most that so many tokens can cost in micro-dollars, whatever they turn out to be. */
  most(input: number, output: number, units: Units): number {
    return micro(
      BigInt(count(input)) * largest(this.#input, this.#cacheRead, this.#cacheWrite, this.#cacheWriteLong) +
        BigInt(count(output)) * largest(this.#output, this.#reasoning) +
        this.#besides(units),
    );
  }

  #besides({ images = 0, seconds = 0, characters = 0 }: Units): bigint {
    const { images: image, seconds: second, characters: character } = this.#units;
    // Seconds are told in fractions: their price is that of the milliseconds begun.
    const milliseconds = BigInt(count(Math.ceil(Math.max(0, seconds) * 1000)));
    return (
      this.#call +
      BigInt(count(images)) * image +
      (milliseconds * second + 999n) / 1000n +
      BigInt(count(characters)) * character
    );
  }
}

/** Dollars as a whole number of 1e-12 dollars; what is finer is rounded up. `digits` is 6 for prices per million. */
function pico(dollars: number, digits: 6 | 12): bigint {
  const scaled = dollars * 10 ** digits;
  const near = Math.round(scaled);
  // 0.1 + 0.2 and the like: what is off by less than a double can tell is the number that was meant.
  return BigInt(Math.abs(scaled - near) <= Math.abs(scaled) * 1e-12 ? near : Math.ceil(scaled));
}

function micro(amount: bigint): number {
  return Number((amount + PICO - 1n) / PICO);
}

/** Counts come from providers: anything that is no count is none. */
function count(tokens: number): number {
  return tokens > 0 ? Math.min(Math.trunc(tokens), Number.MAX_SAFE_INTEGER) : 0;
}

function largest(...amounts: readonly bigint[]): bigint {
  return amounts.reduce((most, amount) => (amount > most ? amount : most));
}

function defined<T extends object>(members: T): T {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as T;
}
