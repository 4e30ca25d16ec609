import type { JsonObject } from '../../model/json.ts';
import type { Units, Usage } from '../../model/usage.ts';
import type { PriceRow, PriceTier } from '../../settings/prices.ts';

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
  readonly #units: { readonly [Unit in Exclude<keyof Units, 'services'>]-?: bigint };
  readonly #call: bigint;
  /** Applies to calls with more input tokens than this. */
  readonly above: number;
  /** What stands in the record of a call. */
  readonly shown: JsonObject;

  /** `source`: where the row comes from, when it is not the config. */
  constructor(model: string, row: PriceRow, tier: PriceTier | undefined, source?: string) {
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

  /** The most that so many tokens of so many calls can cost in micro-dollars, whatever they turn out to be: each is rounded up by itself. */
  most(input: number, output: number, units: Units, calls = 1): number {
    const others = BigInt(Math.max(0, count(calls) - 1));
    return micro(
      BigInt(count(input)) * largest(this.#input, this.#cacheRead, this.#cacheWrite, this.#cacheWriteLong) +
        BigInt(count(output)) * largest(this.#output, this.#reasoning) +
        this.#besides(units) +
        others * (this.#call + PICO + this.#units.seconds / 1000n + 2n),
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

/** Returns what uses of a service cost in micro-dollars, rounded up. */
export function microDollarsOf(uses: number, dollars: number): number {
  return micro(BigInt(count(Math.ceil(uses))) * pico(dollars, 12));
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
