/** Where half, a quarter and three quarters of the values lie below. */
export interface Spread {
  readonly low: number;
  readonly median: number;
  readonly high: number;
}

/** Median and quartiles; between two values, their weighted mean. */
export function spread(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number): number => {
    const place = share * (sorted.length - 1);
    const below = sorted[Math.floor(place)] ?? Number.NaN;
    const above = sorted[Math.ceil(place)] ?? below;
    return below + (above - below) * (place - Math.floor(place));
  };
  return { low: at(0.25), median: at(0.5), high: at(0.75) };
}
