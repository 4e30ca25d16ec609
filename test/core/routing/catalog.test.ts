import { describe, expect, test } from 'vitest';
import type { Channel } from '../../../core/sdk/call.ts';
import { createCatalog } from '../../../core/routing/catalog.ts';

interface Wanted {
  readonly id: string;
  readonly models: readonly string[];
  readonly priority?: number;
  readonly weight?: number;
  readonly outputLimit?: number;
}

function channel({ id, models, priority = 0, weight = 1, outputLimit = 10 }: Wanted): Channel {
  const serves = (model: string): boolean =>
    models.some((name) => name === model || (name.endsWith('*') && model.startsWith(name.slice(0, -1))));
  return {
    id,
    kind: 'fake',
    models,
    priority,
    weight,
    keys: [{ id: '', index: 0 }],
    codecs: {},
    speaks: { chat: ['messages'] },
    upstreamModel: (model) => (serves(model) ? `${id}/${model}` : undefined),
    traits: () => ({ outputLimit }),
    open: () => Promise.reject(new Error('not opened here')),
    close: () => Promise.resolve(),
  };
}

const catalogOf = (...wanted: Wanted[]) => createCatalog(wanted.map(channel), 7);
const order = (catalog: ReturnType<typeof catalogOf>, model: string): string[] =>
  catalog.targets(model).map(({ channel: { id } }) => id);

describe('the channels for a model', () => {
  test('are those that serve it, by its name there; none for a name nobody knows', () => {
    const catalog = catalogOf({ id: 'a', models: ['x'] }, { id: 'b', models: ['y'] });
    expect(catalog.targets('x')).toMatchObject([{ model: 'a/x', traits: { outputLimit: 10 } }]);
    expect(catalog.targets('z')).toEqual([]);
    expect(catalog.serves('z')).toBe(false);
  });

  test('come by exact name before pattern, then by priority', () => {
    const catalog = catalogOf(
      { id: 'pattern', models: ['x*'], priority: 9 },
      { id: 'low', models: ['xy'], priority: -1 },
      { id: 'high', models: ['xy'], priority: 3 },
    );
    for (let count = 0; count < 50; count += 1)
      expect(order(catalog, 'xy')).toEqual(['high', 'low', 'pattern']);
    expect(order(catalog, 'xz')).toEqual(['pattern']);
    expect(catalog.names('xy')).toBe(true);
    expect(catalog.names('xz')).toBe(false);
    expect(catalog.serves('xz')).toBe(true);
  });

  test('of one priority share the calls by weight, and each is there as a reserve', () => {
    const catalog = catalogOf(
      { id: 'one', models: ['x'], weight: 1 },
      { id: 'three', models: ['x'], weight: 3 },
    );
    const first = { one: 0, three: 0 };
    for (let count = 0; count < 8000; count += 1) {
      const ids = order(catalog, 'x');
      expect(ids).toHaveLength(2);
      first[ids[0] as 'one' | 'three'] += 1;
    }
    // A quarter of 8000 is 2000; a deviation of 300 is eight times the standard one.
    expect(first.one).toBeGreaterThan(1700);
    expect(first.one).toBeLessThan(2300);
  });
});

test('the list names every exact model once, sorted, and no pattern', () => {
  const catalog = catalogOf({ id: 'a', models: ['y', 'x', 'z*'] }, { id: 'b', models: ['x'] });
  expect(catalog.list().map(({ id }) => id)).toEqual(['x', 'y']);
  expect(catalog.list()[0]).toMatchObject({ created: 7, outputLimit: 10 });
});

test('the list has each name as the channel of the highest rank serves it; of equals, as the first in the config', () => {
  const catalog = catalogOf(
    { id: 'low', models: ['x', 'y'], priority: -1, outputLimit: 1 },
    { id: 'first', models: ['x', 'y'], outputLimit: 2 },
    { id: 'second', models: ['x', 'y'], outputLimit: 3 },
    { id: 'high', models: ['y'], priority: 1, outputLimit: 4 },
  );
  expect(catalog.list().map(({ id, outputLimit }) => [id, outputLimit])).toEqual([
    ['x', 2],
    ['y', 4],
  ]);
});

test('a name that a channel lists and does not serve is in no list', () => {
  const plain = channel({ id: 'a', models: ['x'] });
  const catalog = createCatalog([{ ...plain, listed: () => ['x', 'gone'] }], 7);
  expect(catalog.list().map(({ id }) => id)).toEqual(['x']);
});
