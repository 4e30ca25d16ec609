/** A gateway with thousands of channels of one model, as operators have them who share out many accounts. */
import { describe, expect, onTestFinished, test } from 'vitest';
import { testPlugins } from 'sluice/testing';
import { findCandidates } from '../../../core/routing/candidates.ts';
import { createCatalog } from '../../../core/routing/catalog.ts';
import { TargetSelector } from '../../../core/routing/target-selector.ts';
import { preferCapable } from '../../../core/routing/prefer-capable.ts';
import { TargetLoads } from '../../../core/routing/load.ts';
import { createPrices } from '../../../core/money/prices/index.ts';
import type { Channel, Target } from '../../../core/sdk/call.ts';
import { makeCall } from '../../../core/sdk/testing/call.ts';
import sessionAffinity from '../../../plugins/session-affinity.ts';
import { fakeChannel, FakeHealth, nameOf, seeded } from './_targets.ts';

/** Channels that count how often they are asked anything. */
class Counted {
  queries = 0;

  channels(count: number, models: (index: number) => readonly string[]): readonly Channel[] {
    const counting = this.#counting.bind(this);
    return Array.from({ length: count }, (_, index) => {
      const names = models(index);
      const channel = fakeChannel({ id: `c${index}`, weight: 1 + (index % 3), known: { takes: ['image'] } });
      return {
        ...channel,
        models: names,
        upstreamModel: counting((model: string) => (names.includes(model) ? model : undefined)),
        traits: counting(channel.traits),
        known: counting(() => ({ takes: ['image'] })),
        priceOf: counting(() => ({ name: 'm', source: 'list', row: { input: 1, output: 2 } })),
      } as Channel;
    });
  }

  #counting<Arguments extends unknown[], Result>(compute: (...given: Arguments) => Result) {
    return (...given: Arguments): Result => {
      this.queries += 1;
      return compute(...given);
    };
  }
}

/** A health that counts how often it is asked. */
class CountingHealth extends FakeHealth {
  queries = 0;

  override waitMs(target: Target): number {
    this.queries += 1;
    return super.waitMs(target);
  }
}

const body = { model: 'm', messages: [{ role: 'user', content: 'Hello' }] };

describe('with 2,000 channels', () => {
  test('a call of a model that all of them serve looks at few of them', async () => {
    const counted = new Counted();
    const catalog = createCatalog(
      counted.channels(2_000, () => ['m']),
      0,
    );
    const prices = createPrices({}, {}, catalog);
    const health = new CountingHealth();
    const { call, exchange, read } = await makeCall({ body });
    read();
    const choose = (): Target | undefined => {
      expect(prices.most('m', 1_000_000, 0)).toBe(1_000_000);
      return new TargetSelector(preferCapable(findCandidates(call, catalog), call), undefined, {
        health,
        load: new TargetLoads(),
        how: 'weight',
        random: seeded(3),
      }).next();
    };
    choose();
    const before = counted.queries;
    health.queries = 0;
    expect(choose()).toBeDefined();
    expect(counted.queries - before).toBe(0);
    expect(health.queries).toBe(1);
    exchange.end();
  });

  test('a call of a model that one of them serves asks that one alone', () => {
    const counted = new Counted();
    const catalog = createCatalog(
      counted.channels(2_000, (index) => [`model-${index}`]),
      0,
    );
    expect(catalog.candidates('model-1234').map(({ channel }) => channel.id)).toEqual(['c1234']);
    expect(catalog.serves('model-7')).toBe(true);
    expect(catalog.serves('unheard-of')).toBe(false);
    expect(counted.queries).toBeLessThan(10);
  });

  test('a session finds its home without asking for the health of all of them', async () => {
    const catalog = createCatalog(
      Array.from({ length: 2_000 }, (_, index) => fakeChannel({ id: `c${index}` })),
      0,
    );
    const health = new CountingHealth();
    const tested = await testPlugins([sessionAffinity], { tools: { catalog, health } });
    onTestFinished(() => tested.close());
    const { sent } = await tested.run({ model: 'm', headers: { 'x-session-id': 'a' } });
    expect(sent[0]?.affinity).toMatchObject({ warm: true });
    // The best so far is found about as often as the logarithm of their number.
    expect(health.queries).toBeLessThan(60);
  });
});

test('of a channel with 2,000 keys few are looked at, each gets calls in its turn, and none that rests', () => {
  const keys = Array.from({ length: 2_000 }, (_, index) => `k${index}`);
  const candidates = createCatalog([fakeChannel({ id: 'x', keys })], 0).candidates('m');
  const health = new CountingHealth();
  for (const key of keys.slice(0, 1_000)) health.waits.set(`x/${key}`, 60_000);
  const load = new TargetLoads();
  const random = seeded(5);
  const names = Array.from({ length: 10_000 }, () => {
    const choice = new TargetSelector(candidates, undefined, { health, load, how: 'weight', random });
    const target = choice.next();
    return target === undefined ? 'none' : nameOf(target);
  });
  expect(names).not.toContain('none');
  expect(names.filter((name) => health.waits.has(name))).toEqual([]);
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  // Ten calls for each on average, and none gets the turns of all those beside it that rest.
  expect(counts.size).toBeGreaterThan(990);
  expect(Math.max(...counts.values())).toBeLessThan(40);
  // All of them are looked at only where four draws fall on keys that rest.
  expect(health.queries / names.length).toBeLessThan(2_000 / 8);
});

test('many channels share the calls by their weights, and those that rest leave theirs to all others', () => {
  const channels = Array.from({ length: 40 }, (_, index) =>
    fakeChannel({ id: `c${index}`, weight: 1 + (index % 3) }),
  );
  const candidates = createCatalog(channels, 0).candidates('m');
  const health = new FakeHealth();
  // Three in four rest, so that most draws fall on one of them.
  const up = channels.filter((_, index) => index % 4 === 0);
  for (const { id } of channels) if (!up.some((one) => one.id === id)) health.waits.set(`${id}/a`, 60_000);
  const random = seeded(11);
  const calls = 40_000;
  const counts = new Map<string, number>();
  for (let call = 0; call < calls; call += 1) {
    const target = new TargetSelector(candidates, undefined, {
      health,
      load: new TargetLoads(),
      how: 'weight',
      random,
    }).next();
    const name = target === undefined ? 'none' : nameOf(target);
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const sum = up.reduce((total, { weight }) => total + weight, 0);
  expect(counts.size).toBe(up.length);
  for (const { id, weight } of up) {
    const expected = (calls * weight) / sum;
    // Five standard deviations.
    expect(Math.abs((counts.get(`${id}/a`) ?? 0) - expected)).toBeLessThan(5 * Math.sqrt(expected));
  }
});

test('a channel that is switched off gets no calls, and gets them again when it is on', () => {
  const catalog = createCatalog([fakeChannel({ id: 'x' }), fakeChannel({ id: 'y' })], 0);
  const ids = (): string[] => catalog.candidates('m', 'chat').map(({ channel }) => channel.id);
  expect(ids()).toEqual(['x', 'y']);
  catalog.switchOff(new Set(['x']));
  expect(ids()).toEqual(['y']);
  catalog.switchOff(new Set());
  expect(ids()).toEqual(['x', 'y']);
});
