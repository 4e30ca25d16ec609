/**
 * How often a property is tried: a tenth of `all` in each run of the suite, which always tries the same ones, and all of them with
 * `npm run fuzz`. FC_SEED=random looks at others.
 */
export function tries(all: number): number {
  return process.env.SLUICE_FUZZ === 'all' ? all : Math.ceil(all / 10);
}
