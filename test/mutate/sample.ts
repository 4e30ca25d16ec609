/** Returns `count` of the items, or all if there are fewer. The same seed chooses the same of the same items. */
export function sample<T>(items: readonly T[], count: number, seed: number): T[] {
  const random = generator(seed);
  const left = [...items];
  const chosen: T[] = [];
  while (chosen.length < count && left.length > 0)
    chosen.push(...left.splice(Math.floor(random() * left.length), 1));
  return chosen;
}

/** Mulberry32: numbers from 0 up to 1. */
function generator(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Returns the bounds of the share `hits` of `all`, from 0 to 1, with 95 % confidence (Wilson score interval). */
export function interval(hits: number, all: number): readonly [number, number] {
  if (all === 0) return [0, 1];
  const z = 1.96;
  const share = hits / all;
  const middle = share + (z * z) / (2 * all);
  const half = z * Math.sqrt((share * (1 - share)) / all + (z * z) / (4 * all * all));
  const scale = 1 + (z * z) / all;
  return [Math.max(0, (middle - half) / scale), Math.min(1, (middle + half) / scale)];
}
