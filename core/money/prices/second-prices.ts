import type { PriceRow } from '../../settings/prices.ts';
import { largest, pico } from './amounts.ts';

/** Prices per second of a row, in 1e-12 dollars. */
export class SecondPrices {
  /** Price of a second of which no resolution is known. */
  readonly plain: bigint;
  /** The most that a second may cost. */
  readonly highest: bigint;
  readonly #named: ReadonlyMap<string, bigint>;
  /** Prices by the lines of a picture, the fewest first. */
  readonly #byLines: readonly (readonly [lines: number, price: bigint])[];

  constructor({ perSecond, perSecondAt = {} }: PriceRow) {
    this.#named = new Map(
      Object.entries(perSecondAt).map(([name, price]) => [name.toLowerCase(), pico(price, 12)]),
    );
    this.#byLines = [...this.#named]
      .flatMap(([name, price]) => {
        const lines = linesOf(name);
        return lines === undefined ? [] : [[lines, price] as const];
      })
      .toSorted(([one], [other]) => one - other);
    const most = largest(...this.#named.values());
    this.plain = perSecond === undefined ? most : pico(perSecond, 12);
    this.highest = largest(this.plain, most);
  }

  /**
   * Returns the price of a second by the name of its resolution. A resolution that the table does not have costs the plain price, or that of
   * the next lower one where this is more; a word that is no resolution as much as a second can cost.
   */
  of(name: string): bigint {
    if (this.#named.size === 0) return this.plain;
    const known = this.#named.get(name.toLowerCase());
    if (known !== undefined) return known;
    const lines = linesOf(name.toLowerCase());
    if (lines === undefined) return this.highest;
    const lower = this.#byLines.findLast(([most]) => most <= lines);
    return lower !== undefined && lower[0] === lines ? lower[1] : largest(this.plain, lower?.[1] ?? 0n);
  }
}

/** Lines of a picture by the name of its resolution: `720p`; `2k` has 1440 lines and `4k` 2160. */
function linesOf(name: string): number | undefined {
  const [, lines, thousands] = /^(?:(\d{3,4})p|([248])k)$/.exec(name) ?? [];
  if (lines !== undefined) return Number(lines);
  return thousands === undefined ? undefined : thousands === '2' ? 1440 : Number(thousands) * 540;
}
