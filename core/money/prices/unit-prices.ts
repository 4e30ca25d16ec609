/** Prices of images, seconds, characters and calls. */
import type { Units } from '../../model/usage.ts';
import type { PriceRow } from '../../settings/prices.ts';
import { count, largest, PICO, pico } from './amounts.ts';
import { ImagePrices } from './image-prices.ts';
import { SecondPrices } from './second-prices.ts';

type ByName = ReadonlyMap<string, bigint>;

/** Prices of a row for units other than tokens, in 1e-12 dollars. */
export class UnitPrices {
  readonly #images: ImagePrices;
  readonly #seconds: SecondPrices;
  readonly #character: bigint;
  readonly #page: bigint;
  readonly #annotatedPage: bigint;
  readonly #call: bigint;
  readonly #callAt: ByName;

  constructor(row: PriceRow) {
    const { perCharacter = 0, perPage = 0, perAnnotatedPage = perPage, perCall, perCallAt } = row;
    this.#images = new ImagePrices(row);
    this.#seconds = new SecondPrices(row);
    this.#callAt = byName(perCallAt);
    // Of an amount that a row knows by names alone, the highest counts where the name is not known.
    this.#call = perCall === undefined ? highest(this.#callAt) : pico(perCall, 12);
    this.#character = pico(perCharacter, 12);
    this.#page = pico(perPage, 12);
    this.#annotatedPage = pico(perAnnotatedPage, 12);
  }

  /** Of one call, in however many requests. */
  cost(units: Units): bigint {
    const { images = 0, imagesAt, seconds = 0, secondsAt, characters = 0, callsAt, calls } = units;
    const { pages = 0, annotatedPages = 0 } = units;
    return (
      this.#callPrice(callsAt, calls) +
      costOf(images, imagesAt, this.#images) +
      // Providers report fractions of seconds: each started millisecond counts.
      (costOf(milliseconds(seconds), inMilliseconds(secondsAt), this.#seconds) + 999n) / 1000n +
      BigInt(count(characters)) * this.#character +
      BigInt(count(pages)) * this.#page +
      BigInt(count(annotatedPages)) * this.#annotatedPage
    );
  }

  /** The most of a call: of images whose size or quality its provider may choose, the highest price. */
  most(units: Units): bigint {
    const { images = 0, imagesAt } = units;
    const named = Object.values(imagesAt ?? {}).reduce((sum, number) => sum + number, 0);
    return this.cost(units) + BigInt(count(images - named)) * (this.#images.highest - this.#images.plain);
  }

  /** Maximum that each further call of several adds: its fee, and the amount by which it is rounded up. */
  get furtherCall(): bigint {
    return largest(this.#call, highest(this.#callAt)) + PICO + this.#seconds.highest / 1000n + 2n;
  }

  #callPrice(callsAt: Units['callsAt'], calls = 1): bigint {
    if (callsAt === undefined || this.#callAt.size === 0) return BigInt(count(calls)) * this.#call;
    let sum = 0n;
    for (const size in callsAt)
      sum += BigInt(count(callsAt[size] ?? 0)) * (this.#callAt.get(size) ?? highest(this.#callAt));
    return sum;
  }
}

function costOf(
  total: number,
  parts: Readonly<Record<string, number>> | undefined,
  prices: { readonly plain: bigint; of(name: string): bigint },
): bigint {
  let rest = count(total);
  let sum = 0n;
  for (const name in parts) {
    const part = Math.min(rest, count(parts[name] ?? 0));
    rest -= part;
    sum += BigInt(part) * prices.of(name);
  }
  return sum + BigInt(rest) * prices.plain;
}

function milliseconds(seconds: number): number {
  return Math.ceil(Math.max(0, seconds) * 1000);
}

function inMilliseconds(parts: Units['secondsAt']): Units['secondsAt'] {
  return (
    parts && Object.fromEntries(Object.entries(parts).map(([name, seconds]) => [name, milliseconds(seconds)]))
  );
}

function byName(prices: Readonly<Record<string, number>> | undefined): ByName {
  return new Map(Object.entries(prices ?? {}).map(([name, price]) => [name, pico(price, 12)]));
}

function highest(prices: ByName): bigint {
  return largest(...prices.values());
}
