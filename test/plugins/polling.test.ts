/** How often is looked for videos and batches whose providers are to be asked. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Polling } from '../../plugins/_polling.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('while the database is gone the pauses between looks grow to the longest, whatever becomes of reports, and are short again after it is back', async () => {
  let [looks, failures, isGone] = [0, 0, true];
  const due: string[] = [];
  const polling = new Polling<string>(
    {
      keyOf: (item) => item,
      async claim() {
        looks += 1;
        if (isGone) throw new Error('the database is gone');
        return due.splice(0);
      },
      claimOne: async () => undefined,
      find: async () => undefined,
      poll: () => Promise.reject(new Error('it could not be kept')),
      failed() {
        failures += 1;
        throw new Error('the log is full');
      },
    },
    { first: 100, most: 500, parallel: 4, patience: 1_000, longestPause: 5_000 },
  );
  const looksIn = async (milliseconds: number): Promise<number> => {
    const before = looks;
    await vi.advanceTimersByTimeAsync(milliseconds);
    return looks - before;
  };
  polling.start();
  await looksIn(60_000);
  expect(await looksIn(60_000)).toBe(12);
  expect(failures).toBe(looks);
  isGone = false;
  await looksIn(5_000);
  const before = failures;
  due.push('video');
  expect(await looksIn(1_000)).toBe(50);
  expect(failures).toBe(before + 1);
  await polling.close();
});
