import { expect, test } from 'vitest';
import { createSumming } from '../../../../core/money/usage-log/summing.ts';
import type { PostgresDatabase, PostgresValue } from '../../../../core/state/database/postgres.ts';

test('records are added in smaller steps to a server that did not answer in time, and in larger ones when it does', async () => {
  const sizes: PostgresValue[] = [];
  let isSlow = true;
  const database = {
    kind: 'postgres',
    query: () => Promise.resolve([{}]),
    transaction: (work: (session: Pick<PostgresDatabase, 'query'>) => Promise<unknown>) =>
      work({
        query: (sql, values = []) => {
          if (sql.includes('pg_try_advisory_xact_lock')) return Promise.resolve([{ is_ours: true }]);
          if (!sql.includes('DELETE FROM usage_unsummed')) return Promise.resolve([{}]);
          sizes.push(values[0] ?? 0);
          return isSlow ? Promise.reject(new Error('It does not answer in time.')) : Promise.resolve([]);
        },
      }),
  } as unknown as PostgresDatabase;
  const addToSums = createSumming(database, 1);
  for (let step = 0; step < 8; step += 1) await expect(addToSums()).rejects.toThrow('in time');
  isSlow = false;
  for (let step = 0; step < 7; step += 1) expect(await addToSums()).toBe(true);
  expect(sizes).toEqual([1_000, 500, 250, 125, 62, 31, 25, 25, 25, 50, 100, 200, 400, 800, 1_000]);
});
