import { setTimeout as pause } from 'node:timers/promises';
import { Keyv } from 'keyv';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createLog } from '../../../core/log.ts';
import {
  ModelDiscovery,
  type DiscoveryOptions,
  type DiscoveredModels,
} from '../../../core/routing/model-discovery.ts';

const hour = 3_600_000;

function discovering(
  listModels: () => Promise<readonly unknown[]>,
  options: Partial<Omit<DiscoveryOptions, 'ask'>> = {},
) {
  const lines: Record<string, unknown>[] = [];
  let requestCount = 0;
  let changed = 0;
  const kept = options.kept ?? new Keyv<DiscoveredModels>();
  const discovery = new ModelDiscovery({
    cacheKey: 'here',
    log: createLog('debug', { write: (line: string) => lines.push(JSON.parse(line) as never) }),
    retry: 5,
    ...options,
    kept,
    listModels: () => {
      requestCount += 1;
      return listModels() as Promise<readonly string[]>;
    },
  });
  onTestFinished(() => discovery.close());
  return {
    discovery,
    kept,
    lines,
    requestCount: () => requestCount,
    changed: () => changed,
    begin: () => discovery.begin(() => void (changed += 1)),
    names: () => [...(discovery.names ?? [])],
  };
}

const ok =
  (...names: unknown[]) =>
  () =>
    Promise.resolve(names);

describe('what a provider lists', () => {
  test('is asked for in the background, and told once it is known', async () => {
    const one = discovering(ok('a', 'b'));
    expect(one.discovery.names).toBeUndefined();
    one.begin();
    expect(one.discovery.names).toBeUndefined();
    await expect.poll(one.names).toEqual(['a', 'b']);
    await expect.poll(one.changed).toBe(1);
    expect(one.requestCount()).toBe(1);
  });

  test('is asked for again and again, and others hear of it only when it is another', async () => {
    let names = ['a', 'b'];
    const one = discovering(() => Promise.resolve(names), { every: 10 });
    one.begin();
    await expect.poll(one.requestCount).toBeGreaterThan(3);
    const first = one.discovery.names;
    expect(one.changed()).toBe(1);
    names = ['b', 'a', 'a'];
    const before = one.requestCount();
    await expect.poll(one.requestCount).toBeGreaterThan(before + 3);
    expect(one.discovery.names).toBe(first);
    names = ['b'];
    await expect.poll(one.names).toEqual(['b']);
    await expect.poll(one.changed).toBe(2);
  });

  test('stays as it was while the provider fails, which is told once, and is asked for soon', async () => {
    let fails = false;
    const one = discovering(() => (fails ? Promise.reject(new Error('no')) : Promise.resolve(['a'])), {
      every: 10,
      retry: 2,
    });
    one.begin();
    await expect.poll(one.names).toEqual(['a']);
    fails = true;
    const before = one.requestCount();
    await expect.poll(one.requestCount).toBeGreaterThan(before + 3);
    expect(one.names()).toEqual(['a']);
    fails = false;
    await expect
      .poll(() => one.lines.some(({ msg }) => msg === 'a provider returns its model list again'))
      .toBe(true);
    const failures = one.lines.filter(({ msg }) => msg === 'a provider does not return its model list');
    expect(failures.filter(({ level }) => level === 'warn')).toHaveLength(1);
    for (const { error } of failures) expect(error).toMatchObject({ message: 'no' });
  });

  test('has names that can be shown, each once, and not without end', async () => {
    const many = Array.from({ length: 100_000 }, (_, index) => `model-${index}`);
    const nonsense = [
      '',
      ' a',
      'b ',
      'c\nd',
      '\u0007',
      'e*',
      'f'.repeat(257),
      7,
      null,
      {},
      ['x'],
      'two words',
      'two  blanks',
    ];
    const one = discovering(() => Promise.resolve([...nonsense, ...many, ...many]));
    one.begin();
    await expect.poll(() => one.names().length).toBe(5000);
    expect(one.names().slice(0, 3)).toEqual(['two words', 'two  blanks', 'model-0']);
    expect(one.lines).toMatchObject([{ level: 'warn', models: 100_002, kept: 5000 }]);
  });

  test('is known at once by those that come later, and asked for when it is old', async () => {
    const first = discovering(ok('a'));
    first.begin();
    await expect.poll(() => first.kept.get('here')).toMatchObject({ names: ['a'] });

    const second = discovering(ok('b'), { kept: first.kept });
    await second.discovery.load();
    expect(second.names()).toEqual(['a']);
    second.begin();
    await pause(20);
    expect(second.requestCount()).toBe(0);

    await first.kept.set('here', { at: Date.now() - 2 * hour, names: ['a'] });
    const third = discovering(ok('c'), { kept: first.kept });
    await third.discovery.load();
    expect(third.names()).toEqual(['a']);
    third.begin();
    await expect.poll(third.names).toEqual(['c']);
  });

  test('is taken from another process that has asked meanwhile', async () => {
    const kept = new Keyv<DiscoveredModels>();
    const one = discovering(ok('own'), { kept, every: 200 });
    await kept.set('here', { at: Date.now(), names: ['a'] });
    await one.discovery.load();
    await kept.set('here', { at: Date.now() + 1000, names: ['of the other'] });
    one.begin();
    await expect.poll(one.names).toEqual(['of the other']);
    expect(one.requestCount()).toBe(0);
  });

  test.each([
    [
      'a damaged entry',
      { get: () => Promise.resolve({ at: 'x', names: 7 }), set: () => Promise.resolve(true) },
    ],
    [
      'a database that is down',
      { get: () => Promise.reject(new Error('down')), set: () => Promise.reject(new Error('down')) },
    ],
  ])('survives %s', async (_what, kept) => {
    const one = discovering(ok('a'), { kept: kept as unknown as Keyv<DiscoveredModels> });
    await one.discovery.load();
    one.begin();
    await expect.poll(one.names).toEqual(['a']);
    await expect.poll(one.changed).toBe(1);
  });

  test('is not asked for any more when the gateway closes, and what comes too late changes nothing', async () => {
    let answer: (names: readonly string[]) => void = () => {};
    const one = discovering(() => new Promise((resolve) => (answer = resolve)), { every: 5 });
    one.begin();
    await expect.poll(one.requestCount).toBe(1);
    one.discovery.close();
    answer(['late']);
    await pause(30);
    expect(one.requestCount()).toBe(1);
    expect(one.changed()).toBe(0);
    expect(one.discovery.names).toBeUndefined();
  });
});

describe('what a provider tells of prices', () => {
  const price = { input: 1, output: 2 };

  test('is there with its day, for the models that have sound ones', async () => {
    const one = discovering(
      ok(
        { name: 'priced', price },
        { name: 'free' },
        { name: 'odd', price: { input: 'much' } },
        { name: ' bad', price },
        { name: 'variant', price, isVariant: true },
        'plain',
      ),
    );
    expect([one.discovery.prices, one.discovery.priceOf('priced')]).toEqual([undefined, undefined]);
    const day = new Date().toISOString().slice(0, 10);
    one.begin();
    await expect.poll(one.names).toEqual(['priced', 'free', 'odd', 'plain']);
    const found = one.discovery.priceOf('priced');
    expect(found).toMatchObject({ name: 'priced', row: price });
    expect(found?.source).toMatch(/^provider's list of \d{4}-\d{2}-\d{2}$/);
    expect((found?.source ?? '') >= `provider's list of ${day}`).toBe(true);
    for (const name of ['free', 'odd', ' bad', 'plain', 'toString'])
      expect([name, one.discovery.priceOf(name)]).toEqual([name, undefined]);
    // A variant has a price of its own, and is not listed.
    expect(one.discovery.priceOf('variant')).toMatchObject({ row: price });
    expect(Object.keys(one.discovery.prices ?? {})).toEqual(['priced', 'variant']);
  });

  test('is nothing where it tells none', async () => {
    const one = discovering(ok('a', { name: 'b' }));
    one.begin();
    await expect.poll(one.names).toEqual(['a', 'b']);
    expect(one.discovery.prices).toBeUndefined();
    expect(await one.kept.get('here')).not.toHaveProperty('prices');
  });

  test('is no older than what is known already', async () => {
    const one = discovering(ok('a'));
    await one.kept.set('here', { at: 5_000, names: ['newer'] });
    await one.discovery.load();
    await one.kept.set('here', { at: 4_000, names: ['older'] });
    await one.discovery.load();
    expect(one.names()).toEqual(['newer']);
  });
});
