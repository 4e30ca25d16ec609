import { expect, test } from 'vitest';
import { everything } from '../support/tries.ts';
import { tryDeaths } from './deaths.ts';

const kinds = [
  ['a worker and a spare', 'workers: 1, spareWorker: true'],
  ['two workers', 'workers: 2, spareWorker: false'],
] as const;

// The second is tried by `npm run fuzz`: test/flows/workers.test.ts kills one of two.
test.each(everything ? kinds : kinds.slice(0, 1))(
  '%s: no connection hangs and none is refused when they are killed',
  async (_, members) => {
    const result = await tryDeaths({
      rounds: 3,
      members,
      ready: 2,
      connections: 60,
      patience: 60_000,
      print: (line) => console.log(line),
    });
    console.log(JSON.stringify(result));
    expect(result).toMatchObject({ rounds: 3, hung: 0, refused: 0 });
    expect(result.answered + result.cut).toBe(180);
    // Only what the worker had taken ends with it.
    expect(result.answered).toBeGreaterThan(100);
  },
);
