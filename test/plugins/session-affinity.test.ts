import { definePlugin, type Affinity } from 'sluice';
import { testPlugins } from 'sluice/testing';
import { describe, expect, onTestFinished, test } from 'vitest';
import sessionAffinity from '../../plugins/session-affinity.ts';
import { catalogOf, FakeHealth, type Wanted } from '../core/routing/_targets.ts';

type RunOptions = Parameters<Awaited<ReturnType<typeof testPlugins>>['run']>[0];

/** Wishes for a place before the plugin is asked. */
const wishing = (affinity: Affinity) =>
  definePlugin({
    name: 'wishing',
    stage: 'shape',
    before: ['session-affinity'],
    setup: () => async (call, next) => next(call.with({ affinity })),
  })();

async function setUp(wanted: readonly Wanted[], health = new FakeHealth(), affinity?: Affinity) {
  const plugins = [...(affinity === undefined ? [] : [wishing(affinity)]), sessionAffinity];
  const tested = await testPlugins(plugins, { tools: { catalog: catalogOf(...wanted), health } });
  onTestFinished(() => tested.close());
  /** Where the call is sent by preference. */
  return async (options: RunOptions): Promise<Affinity | undefined> =>
    (await tested.run(options)).sent[0]?.affinity;
}

const named = (session: number) => ({ model: 'm', headers: { 'x-session-id': `session-${session}` } });
const sessions = Array.from({ length: 2_000 }, (_, index) => index);

describe('sessions', () => {
  test('are shared out by weight, over channels and their keys', async () => {
    const home = await setUp([
      { id: 'one', weight: 1 },
      { id: 'three', weight: 3, keys: ['a', 'b'] },
    ]);
    const counts: Record<string, number> = {};
    const homes = await Promise.all(sessions.map((session) => home(named(session))));
    for (const { channel, key } of homes.map((one) => one ?? { channel: 'none', key: 'none' }))
      counts[`${channel}/${key}`] = (counts[`${channel}/${key}`] ?? 0) + 1;
    // A quarter is 500, three eighths are 750; a deviation of 100 is about five times the standard one.
    expect(Math.abs((counts['one/a'] ?? 0) - 500)).toBeLessThan(100);
    expect(Math.abs((counts['three/a'] ?? 0) - 750)).toBeLessThan(110);
    expect(Math.abs((counts['three/b'] ?? 0) - 750)).toBeLessThan(110);
  });

  test('stay where they are when another key goes; those of the key that went are shared out', async () => {
    const wanted = [{ id: 'x', keys: ['a', 'b', 'c', 'd'] }];
    const whole = await setUp(wanted);
    const health = new FakeHealth();
    health.waits.set('x/b', 60_000);
    const without = await setUp(wanted, health);
    const takenBy = new Set<string>();
    const moves = sessions.map(async (session) => [
      (await whole(named(session)))?.key ?? '',
      (await without(named(session)))?.key ?? '',
    ]);
    for (const [before = '', after = ''] of await Promise.all(moves)) {
      if (before === 'b') takenBy.add(after);
      else expect(after).toBe(before);
    }
    expect([...takenBy].toSorted()).toEqual(['a', 'c', 'd']);
  });

  test('go to the highest rank that has anybody in health', async () => {
    const health = new FakeHealth();
    const home = await setUp(
      [
        { id: 'high', priority: 1, keys: ['a', 'b'] },
        { id: 'low', keys: ['a', 'b'] },
      ],
      health,
    );
    expect((await home(named(1)))?.channel).toBe('high');
    for (const name of ['high/a', 'high/b']) health.waits.set(name, 1_000);
    expect((await home(named(1)))?.channel).toBe('low');
  });

  test('are asked for by what names them, and only where there is a choice', async () => {
    const home = await setUp([{ id: 'x', keys: ['a', 'b'] }]);
    expect(await home({ model: 'm' })).toBeUndefined();
    const input = { operation: 'embed', format: 'embeddings', body: { model: 'm', input: 'x' } } as const;
    expect(await home({ ...input, headers: { 'session-id': 'x' } })).toBeUndefined();
    expect(await home({ model: 'm', headers: { session_id: 'x' } })).toMatchObject({
      channel: 'x',
      warm: true,
    });
    const alone = await setUp([{ id: 'x' }, { id: 'y', priority: -1, keys: ['a', 'b'] }]);
    expect(await alone(named(1))).toBeUndefined();
  });

  test('that must go back somewhere are left alone', async () => {
    const affinity = { channel: 'elsewhere', only: true };
    const home = await setUp([{ id: 'x', keys: ['a', 'b'] }], new FakeHealth(), affinity);
    expect(await home(named(1))).toBe(affinity);
  });
});
