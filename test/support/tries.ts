/** True with `npm run fuzz`: nothing is spared. */
export const everything = process.env.SLUICE_FUZZ === 'all';

/**
 * How often a property is tried: a fifteenth of `all` in each run of the suite, which always tries the same ones, and all of them with
 * `npm run fuzz`. FC_SEED=random looks at others.
 */
export function tries(all: number): number {
  return everything ? all : Math.ceil(all / 15);
}

/**
 * Where to cut so many bytes: everywhere with `npm run fuzz`, otherwise in one place of 29, and wherever one of those that `near`
 * names is at most 40 bytes away. A frame of a fixture has some 150 bytes, so that each is cut in several places. Of more than 20 kB it is one place of 97.
 */
export function cuts(length: number, near: readonly number[]): number[] {
  const step = length > 20_000 ? 97 : everything ? 1 : 29;
  return Array.from({ length }, (_, at) => at).filter(
    (at) => at % step === 0 || near.some((one) => Math.abs(at - one) <= 40),
  );
}

/** Returns every `oneOf`-th case, starting at an index that depends on `offset`, for cases that are much alike. Returns all of them with `npm run fuzz`. */
export function selectRotating<T>(cases: readonly T[], offset: number, oneOf = cases.length): readonly T[] {
  return cases.filter((_, index) => everything || (index + offset) % oneOf === 0);
}
