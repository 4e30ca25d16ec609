import { availableParallelism, loadavg } from 'node:os';

/** Seconds for which a poll waits, in a run of everything and where somebody runs single test files and looks on. */
const usual = 120;
const short = 15;

/**
 * Returns the seconds for which a poll waits. `SLUICE_TEST_PATIENCE` sets them. Where the command line names test files a failing poll gives
 * up soon, but not in CI nor on a machine that others keep busy: what is slow there is not wrong.
 */
function secondsToWait(): number {
  const given = Number(process.env.SLUICE_TEST_PATIENCE);
  if (given > 0) return given;
  const [load = 0] = loadavg();
  const isBusy = process.env.CI !== undefined || load > 2 * availableParallelism();
  return !isBusy && process.argv.some((argument) => argument.endsWith('.test.ts')) ? short : usual;
}

const seconds = secondsToWait();

/**
 * How long a test waits for what must become true, in milliseconds, and how long it may take as a whole. Both say only when a wait is
 * hopeless: what is slow on a busy machine is not wrong, and no test says how fast something must be.
 */
export const patience: { readonly wait: number; readonly test: number } = {
  wait: seconds * 1_000,
  test: 300_000,
};

/** Hands the same patience to the processes that run the tests, which do not see the command line. */
export const patienceVariable: Readonly<Record<string, string>> = {
  SLUICE_TEST_PATIENCE: String(seconds),
};
