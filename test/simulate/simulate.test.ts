import { describe, expect, test } from 'vitest';
import { everything } from '../support/tries.ts';
import { runWorlds } from './run.ts';

/** The same in each run of the suite, as for property tests: see test/support/seed.ts. */
const from =
  process.env['FC_SEED'] === 'random'
    ? Math.floor(Math.random() * 2 ** 31)
    : Number(process.env['FC_SEED'] ?? 1);

describe('simulated processes before a database that fails, with clocks that differ', () => {
  test(`exceed no budget, refuse no call without need and lose no charge, from seed ${from}`, async () => {
    const { broken, calls, fromMemory } = await runWorlds({ from, count: everything ? 8_000 : 400, most: 5 });
    expect(broken).toEqual([]);
    expect(fromMemory).toBeGreaterThan(calls / 10);
  });
});
