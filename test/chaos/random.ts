/** Draws that come the same way again from the same seed. */
export interface Random {
  /** From 0 up to and without 1. */
  next(): number;
  /** A whole number from 0 up to and without `below`. */
  int(below: number): number;
  /** True this often. */
  chance(share: number): boolean;
  pick<T>(list: readonly [T, ...T[]]): T;
  shuffled<T>(list: readonly T[]): T[];
}

/** Draws from a seed: Mulberry32, which is small and even enough to choose among cases. */
export function randomFrom(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const int = (below: number): number => Math.floor(next() * below);
  return {
    next,
    int,
    chance: (share) => next() < share,
    pick: (list) => list[int(list.length)] ?? list[0],
    shuffled(list) {
      const keyed = list.map((item) => ({ item, key: next() }));
      return keyed.toSorted((a, b) => a.key - b.key).map(({ item }) => item);
    },
  };
}
