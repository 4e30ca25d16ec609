/** Adds up what calls are charged, by holder of budgets and time. */
import type { Span } from '../../model/time-zones.ts';
import { periods, periodStart } from './periods.ts';
import { bucketOf, isEndUser, type HolderSeries } from './windows.ts';

/** Milliseconds of a day of UTC: it knows no other days. */
const dayLength = 86_400_000;

/** One row to add to what is spent. */
export type ChargeRow = readonly [
  holder: string,
  period: string,
  since: number,
  microDollars: number,
  tokens: number,
];

type Sum = { microDollars: number; tokens: number };

/** A key, the owners of it and the series that are charged for a call. Calls of one key have the same lists. */
type ChargedTo = readonly [keyId: string, owners: readonly string[], series: readonly HolderSeries[]];

/** Sums by key or owner, and day, of which those of longer periods are made in the end: a batch has many calls and few days. */
export class ChargeSums {
  /** Sums of the latest call: most calls of a batch have the same holders. */
  #latest: { readonly holders: ChargedTo; readonly span: Span; readonly sums: readonly Sum[] } | undefined;
  readonly #byHolder = new Map<string, Map<number, Sum>>();
  /** By holder, and by series. */
  readonly #series = new Map<string, Map<string, Map<number, Sum>>>();
  #day = 0;

  /** Adds what a call is charged to all that it is charged to. */
  add(holders: ChargedTo, at: number, microDollars: number, tokens: number): void {
    let latest = this.#latest;
    const isSame =
      latest !== undefined &&
      holders.every((one, index) => one === latest?.holders[index]) &&
      at >= latest.span.start &&
      at < latest.span.end;
    if (latest === undefined || !isSame) latest = this.#latest = this.#find(holders, at);
    for (const sum of latest.sums) {
      sum.microDollars += microDollars;
      sum.tokens += tokens;
    }
  }

  /** Returns the sums that a call at this time is added to, and the time in which others are added to the same. */
  #find(holders: ChargedTo, at: number) {
    const [keyId, owners, series] = holders;
    const day = this.#dayOf(at);
    let [start, end] = [day, day + dayLength];
    const sums = [keyId, ...owners].flatMap((holder) => (isEndUser(holder) ? [] : this.#sumOf(holder, day)));
    for (const one of series) {
      const bucket = bucketOf(one.series, at);
      [start, end] = [Math.max(start, bucket.start), Math.min(end, bucket.end)];
      sums.push(this.#sumIn(one, bucket.start));
    }
    return { holders, span: { start, end }, sums };
  }

  #dayOf(at: number): number {
    if (at < this.#day || at >= this.#day + dayLength) this.#day = periodStart('day', at);
    return this.#day;
  }

  #sumOf(holder: string, day: number): Sum {
    let days = this.#byHolder.get(holder);
    if (days === undefined) this.#byHolder.set(holder, (days = new Map()));
    return sumAt(days, day);
  }

  #sumIn({ holder, series }: HolderSeries, start: number): Sum {
    let all = this.#series.get(holder);
    if (all === undefined) this.#series.set(holder, (all = new Map()));
    let buckets = all.get(series);
    if (buckets === undefined) all.set(series, (buckets = new Map()));
    return sumAt(buckets, start);
  }

  rows(): readonly ChargeRow[] {
    const holders = new Set([...this.#byHolder.keys(), ...this.#series.keys()]);
    return [...holders].toSorted().flatMap((holder) => [...this.#daysOf(holder), ...this.#seriesOf(holder)]);
  }

  #daysOf(holder: string): readonly ChargeRow[] {
    const days = this.#byHolder.get(holder);
    if (days === undefined) return [];
    return periods.flatMap((period) => {
      const sums = new Map<number, Sum>();
      for (const [day, { microDollars, tokens }] of days)
        addTo(sums, periodStart(period, day), microDollars, tokens);
      return rowsOf(holder, period, sums);
    });
  }

  #seriesOf(holder: string): readonly ChargeRow[] {
    const all = [...(this.#series.get(holder) ?? [])].toSorted(([one], [other]) => (one < other ? -1 : 1));
    return all.flatMap(([series, sums]) => rowsOf(holder, series, sums));
  }
}

/** Returns the sum at a time, which begins with nothing. */
function sumAt(sums: Map<number, Sum>, since: number): Sum {
  let total = sums.get(since);
  if (total === undefined) sums.set(since, (total = { microDollars: 0, tokens: 0 }));
  return total;
}

function addTo(sums: Map<number, Sum>, since: number, microDollars: number, tokens: number): void {
  const total = sumAt(sums, since);
  total.microDollars += microDollars;
  total.tokens += tokens;
}

/** Rows of one period, the oldest first. */
function rowsOf(holder: string, period: string, sums: ReadonlyMap<number, Sum>): readonly ChargeRow[] {
  return [...sums]
    .toSorted(([one], [other]) => one - other)
    .map(([since, { microDollars, tokens }]) => [holder, period, since, microDollars, tokens] as const);
}
