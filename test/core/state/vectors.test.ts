import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { openStores, type Stores } from '../../../core/state/stores.ts';
import type { StoredVector, VectorStore } from '../../../core/sdk/author/vectors.ts';
import { startPostgres, withoutPgvector, type TestPostgres } from '../../support/postgres.ts';

const limits = { perPartition: 10, most: 100 };

function open(url: string): Stores {
  const stores = openStores(url);
  onTestFinished(() => stores.close());
  return stores;
}

test('SQLite keeps no vectors', async () => {
  expect(await open('sqlite::memory:').vectors('texts', limits)).toBeUndefined();
});

const missing = withoutPgvector();
describe.skipIf(missing !== undefined)(`vectors in PostgreSQL ${missing ?? ''}`, () => {
  let server: TestPostgres;
  beforeAll(async () => {
    server = await startPostgres({ hasVectors: true });
  });
  afterAll(() => server.close());

  async function opened(url: string, name = 'texts', more = limits): Promise<VectorStore> {
    const vectors = await open(url).vectors(name, more);
    if (vectors === undefined) throw new Error('There is no collection.');
    return vectors;
  }

  const of = (id: string, vector: readonly number[], more: Partial<StoredVector> = {}): StoredVector => ({
    id,
    partition: 'p',
    group: 'g',
    vector: Float32Array.from(vector),
    ttl: 600_000,
    ...more,
  });
  const nearest = async (vectors: VectorStore, ...numbers: readonly number[]) =>
    vectors.nearest('p', Float32Array.from(numbers));

  test('are found by their direction, in their collection, partition and length', async () => {
    const url = await server.createDatabase();
    const vectors = await opened(url);
    await vectors.add(of('one', [1, 0]));
    await vectors.add(of('two', [0, 1e-7]));
    await vectors.add(of('long', [1, 0, 0]));
    await vectors.add(of('elsewhere', [0.9, 0.1], { partition: 'q' }));
    await (await opened(url, 'others')).add(of('other', [0.9, 0.1]));
    expect((await nearest(vectors, 0.9, 0.1))?.id).toBe('one');
    expect((await nearest(vectors, 0, 5))?.similarity).toBeCloseTo(1);
    expect((await nearest(vectors, -1, -1))?.similarity).toBeLessThan(0);
    expect(await nearest(vectors, 1, 0, 0, 0)).toBeUndefined();
    // No direction, no length, or none that can be kept.
    expect(await nearest(vectors, 0, 0)).toBeUndefined();
    for (const vector of [[], [Number.NaN, 1], Array.from({ length: 16_001 }, () => 1)]) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      await vectors.add(of('never', vector));
      // oxlint-disable-next-line no-await-in-loop -- as above
      expect(await nearest(vectors, ...vector)).toBeUndefined();
    }
    await vectors.add(of('zero', [0, 0]));
    expect((await nearest(vectors, 1, 0))?.id).toBe('one');
  });

  test('are replaced, deleted and cleared by group', async () => {
    const vectors = await opened(await server.createDatabase());
    await vectors.add(of('one', [1, 0]));
    await vectors.add(of('one', [0, 1]));
    expect((await nearest(vectors, 1, 0))?.similarity).toBeCloseTo(0);
    await vectors.add(of('two', [1, 0], { group: 'h' }));
    await vectors.clear('g');
    expect((await nearest(vectors, 0, 1))?.id).toBe('two');
    await vectors.delete('two');
    expect(await nearest(vectors, 0, 1)).toBeUndefined();
    await vectors.add(of('three', [1, 0]));
    await vectors.add(of('four', [1, 0], { ttl: -1 }));
    expect((await nearest(vectors, 1, 0))?.id).toBe('three');
    await vectors.clear();
    expect(await nearest(vectors, 1, 0)).toBeUndefined();
  });

  test('of gateways that start and write at the same time are bounded, and none of them fails', async () => {
    const url = await server.createDatabase();
    const bounds = { perPartition: 3, most: 8 };
    const all = await Promise.all(Array.from({ length: 4 }, () => opened(url, 'texts', bounds)));
    await Promise.all(
      all.flatMap((vectors, gateway) =>
        Array.from({ length: 60 }, (_, index) =>
          vectors.add(of(`${(gateway + index) % 80}`, [1, index], { partition: `part-${index % 5}` })),
        ),
      ),
    );
    for (let part = 0; part < 5; part += 1)
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      await all[0]?.add(of(`last-${part}`, [1, 1], { partition: `part-${part}` }));
    const counts = await server.run(url, 'SELECT count(*)::int AS n FROM sluice_vectors GROUP BY part');
    const numbers = counts.map(({ n }) => Number(n));
    expect(Math.max(...numbers)).toBeLessThanOrEqual(3);
    expect(numbers.reduce((sum, n) => sum + n, 0)).toBe(8);
  });
});
