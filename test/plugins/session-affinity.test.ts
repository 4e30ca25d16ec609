import { of } from 'rxjs';
import { describe, expect, test } from 'vitest';
import type { Affinity } from '../../core/sdk/call.ts';
import type { GatewayEvent } from '../../core/model/event.ts';
import sessionAffinity from '../../plugins/session-affinity.ts';
import { catalogOf, FakeHealth, type Wanted } from '../core/routing/_targets.ts';
import { handlerOf, testCall, testTools, type CallOptions } from './_call.ts';

async function setUp(wanted: readonly Wanted[], health = new FakeHealth()) {
  const { tools } = testTools({ catalog: catalogOf(...wanted), health });
  const handler = await handlerOf(sessionAffinity, tools);
  /** Where the call is sent by preference. */
  return async (options: CallOptions, affinity?: Affinity): Promise<Affinity | undefined> => {
    const { call } = testCall({ model: 'm', ...options });
    let found: Affinity | undefined;
    await handler(affinity === undefined ? call : call.with({ affinity }), (sent) => {
      found = sent.edits.affinity;
      return Promise.resolve(of<GatewayEvent>());
    });
    return found;
  };
}

const named = (session: number): CallOptions => ({ headers: { 'x-session-id': `session-${session}` } });
const sessions = Array.from({ length: 2_000 }, (_, index) => index);

describe('sessions', () => {
  test('are shared out by weight, over channels and their keys', async () => {
    const home = await setUp([
      { id: 'one', weight: 1 },
      { id: 'three', weight: 3, keys: ['a', 'b'] },
    ]);
    const counts: Record<string, number> = {};
    for (const session of sessions) {
      const { channel, key } = (await home(named(session))) ?? { channel: 'none' };
      counts[`${channel}/${key}`] = (counts[`${channel}/${key}`] ?? 0) + 1;
    }
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
    for (const session of sessions) {
      const before = (await whole(named(session)))?.key;
      const after = (await without(named(session)))?.key ?? '';
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
    expect(await home({})).toBeUndefined();
    expect(await home({ headers: { 'session-id': 'x' }, operation: 'embed' })).toBeUndefined();
    expect(await home({ headers: { session_id: 'x' } })).toMatchObject({ channel: 'x', warm: true });
    const alone = await setUp([{ id: 'x' }, { id: 'y', priority: -1, keys: ['a', 'b'] }]);
    expect(await alone(named(1))).toBeUndefined();
  });

  test('that must go back somewhere are left alone', async () => {
    const home = await setUp([{ id: 'x', keys: ['a', 'b'] }]);
    const affinity = { channel: 'elsewhere', only: true };
    expect(await home(named(1), affinity)).toBe(affinity);
  });
});
