import type { PriceRow } from '../../settings/prices.ts';
import { largest, pico } from './amounts.ts';

/** Price of an image of a quality, a size or both. */
interface SizeRow {
  readonly quality: string | undefined;
  /** Pixels; undefined for a row of any size. */
  readonly pixels: number | undefined;
  readonly price: bigint;
}

/** Quality and size of an image for which the request names none, where a table has them: https://developers.openai.com/api/docs/api-reference/images */
const usual = { quality: 'standard', pixels: 1024 * 1024 } as const;

/** Image prices of a row, in 1e-12 dollars. */
export class ImagePrices {
  /** Price of an image of which neither quality nor size is known. */
  readonly plain: bigint;
  /** The most that an image may cost. */
  readonly highest: bigint;
  readonly #named: ReadonlyMap<string, bigint>;
  readonly #rows: readonly SizeRow[];
  /** The rows of any quality. */
  readonly #ofAny: readonly SizeRow[];
  readonly #hasUsual: boolean;

  constructor({ perImage, perImageAt = {} }: PriceRow) {
    this.#named = new Map(
      Object.entries(perImageAt).map(([name, price]) => [name.toLowerCase(), pico(price, 12)]),
    );
    this.#rows = [...this.#named]
      .map(([name, price]) => ({ ...partsOf(name), price }))
      .toSorted((one, other) => (one.pixels ?? 0) - (other.pixels ?? 0));
    this.#ofAny = this.#rows.filter((row) => row.quality === undefined);
    this.#hasUsual = this.#rows.some((row) => row.quality === usual.quality);
    const most = largest(...this.#named.values());
    const first = this.#hasUsual ? this.#find(undefined, undefined) : undefined;
    this.plain = perImage === undefined ? (first ?? most) : pico(perImage, 12);
    this.highest = largest(this.plain, most);
  }

  /**
   * Returns the price of an image by the name of its quality, its size or both. A size that the table does not have costs as much as the
   * next larger one, and what the table does not know at all as much as an image can cost.
   */
  of(name: string): bigint {
    if (this.#rows.length === 0) return this.plain;
    const known = this.#named.get(name.toLowerCase());
    if (known !== undefined) return known;
    const { quality, pixels } = partsOf(name.toLowerCase());
    const own = this.#find(quality, pixels);
    if (own !== undefined) return own;
    const isKnown = quality === undefined || this.#rows.some((row) => row.quality === quality);
    // Another quality may have the size.
    return (isKnown ? this.#find(undefined, pixels) : undefined) ?? this.highest;
  }

  #find(quality: string | undefined, pixels: number | undefined): bigint | undefined {
    const named = quality ?? (this.#hasUsual ? usual.quality : undefined);
    const ofQuality = this.#rows.filter((row) => row.quality === named);
    const rows = named === undefined ? this.#rows : ofQuality.length > 0 ? ofQuality : this.#ofAny;
    const wanted = pixels ?? (this.#hasUsual ? usual.pixels : undefined);
    const fitting = rows.filter(
      (row) => row.pixels === undefined || wanted === undefined || row.pixels >= wanted,
    );
    const [least] = fitting;
    if (least === undefined) return undefined;
    // Several qualities of one size, or sizes of one quality: the provider may choose the dearest.
    const open = wanted === undefined ? fitting : fitting.filter((row) => row.pixels === least.pixels);
    return largest(...open.map(({ price }) => price));
  }
}

/** Reads `high/1024x1536`, `1024x1536`, `high` or `2k`. */
function partsOf(name: string): Omit<SizeRow, 'price'> {
  const [first = '', second] = name.split('/');
  const pixels = pixelsOf(second ?? first);
  if (second !== undefined) return { quality: first, pixels };
  return pixels === undefined ? { quality: first, pixels } : { quality: undefined, pixels };
}

function pixelsOf(size: string): number | undefined {
  const [, width, height, thousands] = /^(?:(\d{1,5})x(\d{1,5})|(\d{1,2}(?:\.\d+)?)k)$/.exec(size) ?? [];
  if (thousands !== undefined) return (Number(thousands) * 1024) ** 2;
  return width === undefined || height === undefined ? undefined : Number(width) * Number(height);
}
