import { expect, test } from 'vitest';
import { tryDeaths } from './deaths.ts';

test.each([
  ['two workers', 'workers: 2, spareWorker: false'],
  ['a worker and a spare', 'workers: 1, spareWorker: true'],
])('%s: no connection hangs and none is refused when they are killed', async (_, members) => {
  const result = await tryDeaths({
    rounds: 3,
    members,
    ready: 2,
    connections: 60,
    patience: 60_000,
    say: (line) => console.log(line),
  });
  console.log(JSON.stringify(result));
  expect(result).toMatchObject({ rounds: 3, hung: 0, refused: 0 });
  expect(result.answered + result.cut).toBe(180);
  // Only what the worker had taken ends with it.
  expect(result.answered).toBeGreaterThan(100);
});
