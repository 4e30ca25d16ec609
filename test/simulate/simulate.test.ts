import { describe, expect, test } from 'vitest';
import { everything } from '../support/tries.ts';
import { runWorlds, worldKinds } from './run.ts';

/** The same in each run of the suite, as for property tests: see test/support/seed.ts. */
const from =
  process.env['FC_SEED'] === 'random'
    ? Math.floor(Math.random() * 2 ** 31)
    : Number(process.env['FC_SEED'] ?? 1);

describe('simulated processes before a database that fails, with clocks that differ', () => {
  test.each(worldKinds)(
    `exceed no budget, refuse no call without need and lose no charge: %s, from seed ${from}`,
    async (only) => {
      const count = everything ? 2_000 : 100;
      const { broken, calls, fromMemory } = await runWorlds({ from, count, most: 5, only });
      expect(broken).toEqual([]);
      expect(fromMemory).toBeGreaterThan(calls / 10);
    },
  );
});
