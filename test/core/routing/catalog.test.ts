import { describe, expect, test } from 'vitest';
import type { Channel } from '../../../core/sdk/call.ts';
import type { ModelTraits } from '../../../core/model/traits.ts';
import { createCatalog } from '../../../core/routing/catalog.ts';
import type { KnownModel } from '../../../core/sdk/channel.ts';
import type { Operation } from '../../../core/sdk/format.ts';

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
    expect(catalog.isKnown('xy')).toBe(true);
    expect(catalog.isKnown('xz')).toBe(false);
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

describe('what is told of a model in the list', () => {
  const listed = (known: KnownModel | undefined, traits: ModelTraits = {}): unknown => {
    const plain = channel({ id: 'a', models: ['x'] });
    const catalog = createCatalog(
      [{ ...plain, traits: () => traits, ...(known === undefined ? {} : { known: () => known }) }],
      7,
    );
    return catalog.list()[0];
  };
  const plain = { id: 'x', created: 7, ownedBy: 'a' };

  test('is nothing where nothing is known', () => {
    expect(listed(undefined)).toEqual(plain);
    expect(listed({})).toEqual(plain);
  });

  test('of a chat are the traits, and what else is known', () => {
    expect(
      listed(
        { inputLimit: 5, outputLimit: 6, takes: ['image'], can: ['tools'], cannot: ['reasoning'] },
        { inputLimit: 50, reasoning: 'effort' },
      ),
    ).toEqual({
      ...plain,
      inputLimit: 50,
      outputLimit: 6,
      thinking: true,
      takes: ['image'],
      can: ['tools'],
      cannot: ['reasoning'],
    });
    expect(listed({}, { reasoning: 'none', outputLimit: 8 })).toEqual({
      ...plain,
      outputLimit: 8,
      thinking: false,
    });
  });

  test('for anything else are its own limits, because the traits of a channel are about chats', () => {
    expect(
      listed({ operation: 'embed', inputLimit: 5 }, { inputLimit: 50, outputLimit: 60, reasoning: 'effort' }),
    ).toEqual({ ...plain, operation: 'embed', inputLimit: 5 });
  });
});

describe('the channels that can do an operation', () => {
  const chats = channel({ id: 'chats', models: ['x'] });
  const embeds: Channel = { ...channel({ id: 'embeds', models: ['x'] }), speaks: { embed: ['plain'] } };
  const catalog = createCatalog([chats, embeds], 7);
  const can = (operation?: Operation): string[] =>
    catalog.candidates('x', operation).map(({ channel: { id } }) => id);

  test('are those that speak it; tokens are counted and histories summarised over any that chats', () => {
    expect([can(), can('chat'), can('embed'), can('speak')]).toEqual([
      ['chats', 'embeds'],
      ['chats'],
      ['embeds'],
      [],
    ]);
    expect([can('count-tokens'), can('compact')]).toEqual([['chats'], ['chats']]);
  });

  test('are on until they are switched off, and on again with the next that are', () => {
    catalog.switchOff(new Set(['chats']));
    expect([catalog.isOn('chats'), catalog.isOn('embeds'), can()]).toEqual([false, true, ['embeds']]);
    expect(catalog.list()).toMatchObject([{ id: 'x', ownedBy: 'embeds' }]);
    catalog.switchOff(new Set(['embeds']));
    expect([catalog.isOn('chats'), can()]).toEqual([true, ['chats']]);
    catalog.switchOff(new Set());
    expect(can()).toEqual(['chats', 'embeds']);
  });
});

test('a channel that begins to serve a model has its calls after the next refresh, and it is in the list', () => {
  const served = new Set(['x']);
  const lists: Channel = {
    ...channel({ id: 'a', models: ['*'] }),
    listed: () => [...served],
    upstreamModel: (model) => (served.has(model) ? model : undefined),
  };
  const catalog = createCatalog([lists], 7);
  const seen = (): unknown => [
    catalog.isKnown('y'),
    catalog.serves('y'),
    catalog.targets('y').length,
    catalog.list().map(({ id }) => id),
  ];
  expect(seen()).toEqual([false, false, 0, ['x']]);
  served.add('y');
  catalog.refresh();
  expect(seen()).toEqual([true, true, 1, ['x', 'y']]);
});

test('candidates come highest rank first, however the config orders them, with the same targets each time', () => {
  const catalog = catalogOf(
    { id: 'low', models: ['x'], priority: -1 },
    { id: 'high', models: ['x'], priority: 5 },
    { id: 'middle', models: ['x'] },
  );
  expect(catalog.candidates('x').map(({ channel: { id } }) => id)).toEqual(['high', 'middle', 'low']);
  expect(catalog.candidates('x')[0]?.targets[0]).toBe(catalog.candidates('x')[0]?.targets[0]);
});

test('names that strangers invent are looked up each time and fill no memory; those before them stay', () => {
  const catalog = catalogOf({ id: 'a', models: ['*'] });
  const isKept = (model: string): boolean =>
    catalog.candidates(model)[0]?.targets[0] === catalog.candidates(model)[0]?.targets[0];
  const long = 'x'.repeat(200);
  expect([isKept('first'), isKept('x'.repeat(199)), isKept(long)]).toEqual([true, true, false]);
  for (let number = 2; number < 1_000; number += 1) expect(isKept(`m${number}`)).toBe(true);
  expect([isKept('one-more'), isKept('first')]).toEqual([false, true]);
  expect(catalog.candidates('one-more')).toHaveLength(1);
});
