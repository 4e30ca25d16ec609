import * as fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openStores } from '../../../core/state/stores.ts';
import {
  limits,
  type Alert,
  type Condition,
  type Item,
  type Message,
} from '../../../plugins/alerts/alert.ts';
import { addToOutbox } from '../../../plugins/alerts/outbox.ts';
import { BudgetWatch } from '../../../plugins/alerts/budgets.ts';
import type { Deliveries } from '../../../plugins/alerts/deliveries.ts';
import { ExpiryWatch } from '../../../plugins/alerts/expiries.ts';
import { databaseLost } from '../../../plugins/alerts/gateway-conditions.ts';
import { Outage } from '../../../plugins/alerts/outage.ts';
import { reconcile } from '../../../plugins/alerts/reconcile.ts';
import { pauseAfter } from '../../../plugins/alerts/sender.ts';
import { SharedAlertState } from '../../../plugins/alerts/shared-state.ts';
import type { ApiKey, BudgetStanding } from 'sluice';

const down = (id: string, more: Partial<Condition> = {}): Condition => ({
  id,
  kind: 'channel-down',
  subject: id,
  severity: 'critical',
  text: 'It is down.',
  view: 'channels',
  ...more,
});

/** Looks one after the other, a second apart. Returns what was told, with the time of each. */
function look(found: readonly (readonly Condition[])[], throttle: number): readonly Item[] {
  let alerts: readonly Alert[] = [];
  return found.flatMap((conditions, index) => {
    const context = { now: index * 1_000, throttle, wasNotified: () => false };
    const next = reconcile({ alerts: [...alerts], mutes: [] }, conditions, context);
    alerts = next.alerts;
    return next.items;
  });
}

describe('an alert', () => {
  test('is told once, and its end once, when two looks in a row have not found it', () => {
    const messages = look([[down('a')], [down('a')], [], [down('a')], [], [], []], 0);
    expect(messages.map(({ state, at }) => [state, at])).toEqual([
      ['firing', 0],
      ['resolved', 5_000],
    ]);
  });

  test('with "once" is told once, and its end is not', () => {
    const once = down('a', { once: true });
    expect(look([[once], [], [], [once], [], [], [once]], 0)).toHaveLength(1);
  });

  test('is told at most once within the throttle, however it comes and goes, and each beginning has at most one end', () => {
    fc.assert(
      fc.property(
        fc.array(fc.boolean(), { maxLength: 60 }),
        fc.integer({ min: 0, max: 20 }),
        (states, seconds) => {
          const messages = look(
            states.map((isDown) => (isDown ? [down('a')] : [])),
            seconds * 1_000,
          );
          const firing = messages.filter(({ state }) => state === 'firing');
          for (const [index, { at }] of firing.entries())
            if (index > 0) expect(at - (firing[index - 1]?.at ?? 0)).toBeGreaterThanOrEqual(seconds * 1_000);
          for (const [index, { state }] of messages.entries())
            expect(state).toBe(index % 2 === 0 ? 'firing' : 'resolved');
        },
      ),
    );
  });

  test('that becomes more severe is told again at once, and its end goes where its beginning went', () => {
    const warning = down('a', { severity: 'warning' });
    const messages = look([[warning], [down('a')], [warning], [warning], [], []], 3_600_000);
    expect(messages.map(({ state, severity, at }) => [state, severity, at])).toEqual([
      ['firing', 'warning', 0],
      ['firing', 'critical', 1_000],
      ['resolved', 'critical', 5_000],
    ]);
  });

  test('that has come back more severe within the throttle is told, and less severe is not', () => {
    const warning = down('a', { severity: 'warning' });
    const messages = look([[warning], [], [], [down('a')], [], [], [warning], [down('a')]], 3_600_000);
    expect(messages.map(({ state, severity }) => `${severity} ${state}`)).toEqual([
      'warning firing',
      'warning resolved',
      'critical firing',
      'critical resolved',
    ]);
  });

  test('that is open stays on the list when there are too many', () => {
    const many = Array.from({ length: limits.alerts + 50 }, (_, index) => down(`${index}`));
    const { alerts } = reconcile({ alerts: [], mutes: [] }, many, {
      now: 0,
      throttle: 0,
      wasNotified: () => false,
    });
    expect(alerts).toHaveLength(limits.alerts);
  });
});

test('alerts at once are one message, and the oldest messages make room', () => {
  const item: Item = { ...down('a'), state: 'firing', at: 0 };
  const context = { now: 0, destinationsOf: () => ['one'], takesOne: () => false };
  const { outbox } = addToOutbox(
    [],
    Array.from({ length: 25 }, () => item),
    context,
  );
  expect(outbox.map(({ items, more }) => [items.length, more])).toEqual([[20, 5]]);
  const single = { ...context, takesOne: () => true };
  const full = addToOutbox(
    outbox,
    Array.from({ length: 60 }, () => item),
    single,
  );
  expect(full.outbox).toHaveLength(limits.perDestination);
  expect(full.dropped[0]?.items).toHaveLength(1);
  expect(full.dropped.at(-1)?.items).toHaveLength(20);
});

test('pauses between tries double up to half an hour', () => {
  expect([1, 2, 3, 30].map((tries) => pauseAfter(tries, 5_000, 0.5))).toEqual([
    5_000, 10_000, 20_000, 1_800_000,
  ]);
});

describe('a budget', () => {
  const key = { id: 'key_1', name: 'ci', budgets: [{}], owners: [] } as unknown as ApiKey;
  const spent = (share: number, more: Partial<BudgetStanding> = {}) => ({
    budgets: async (): Promise<readonly BudgetStanding[]> => [
      { unit: 'token', period: 'day', amount: 1_000, since: 0, reserved: 0, spent: share * 10, ...more },
    ],
  });

  test('is found at its highest level, which it keeps until its period ends', async () => {
    const watch = new BudgetWatch([50, 80, 100]);
    const levels = async (
      share: number,
      now: number,
      more: Partial<BudgetStanding> = {},
    ): Promise<unknown> => {
      watch.note(key, false);
      return (await watch.look(spent(share, more), now)).map(({ id }) => id);
    };
    expect(await levels(49.9, 0)).toEqual([]);
    expect(await levels(50, 1)).toEqual(['budget key_1 token day 0 1000 50']);
    expect(await levels(85, 2)).toEqual(['budget key_1 token day 0 1000 80']);
    // Money that was given back does not raise the lower level again.
    expect(await levels(60, 3)).toEqual(['budget key_1 token day 0 1000 80']);
    expect(await levels(0, 4, { since: 86_400_000 })).toEqual([]);
    expect(await levels(100, 5, { since: 86_400_000 })).toEqual(['budget key_1 token day 86400000 1000 100']);
  });

  test('of rolling hours is found as long as the level holds, whatever the window has moved', async () => {
    const watch = new BudgetWatch([50, 80]);
    const levels = async (share: number, since: number): Promise<unknown> => {
      watch.note(key, false);
      return (await watch.look(spent(share, { period: 'hours', hours: 5, since }), since)).map(
        ({ id }) => id,
      );
    };
    expect(await levels(81, 1)).toEqual(['budget key_1 token 5 hours 0 1000 80']);
    expect(await levels(82, 2)).toEqual(['budget key_1 token 5 hours 0 1000 80']);
    expect(await levels(55, 3)).toEqual(['budget key_1 token 5 hours 0 1000 50']);
    expect(await levels(10, 4)).toEqual([]);
  });

  test('that refuses a call counts as spent from nine tenths on', async () => {
    const watch = new BudgetWatch([100]);
    watch.note(key, true);
    expect(await watch.look(spent(89), 0)).toEqual([]);
    watch.note(key, true);
    expect(await watch.look(spent(95), 1)).toMatchObject([{ severity: 'critical' }]);
  });

  test('that refused a call counts as spent in that period alone', async () => {
    const watch = new BudgetWatch([100]);
    watch.note(key, true, 1_000);
    expect(await watch.look(spent(95), 1_000)).toHaveLength(1);
    watch.note(key, false, 90_000_000);
    expect(await watch.look(spent(95, { since: 86_400_000 }), 90_000_000)).toEqual([]);
  });

  test('is weighed by the key of the last call, also when its key was looked at before', async () => {
    const watch = new BudgetWatch([50]);
    const raised = { ...key, name: 'raised' };
    const seen: string[] = [];
    const standing = (share: number) => ({
      budgets: async (apiKey: ApiKey): Promise<readonly BudgetStanding[]> => {
        seen.push(apiKey.name);
        return spent(share, { amount: apiKey.name === 'raised' ? 10_000 : 1_000 }).budgets();
      },
    });
    watch.note(key, false);
    expect(await watch.look(standing(60), 0)).toHaveLength(1);
    watch.note(raised, false);
    expect(await watch.look(standing(60), 1)).toEqual([]);
    watch.note(raised, false);
    expect(await watch.look(standing(600), 2)).toHaveLength(1);
    // Long after, when its period may have ended, the newer key is still the one that is asked for.
    for (const now of [3, 1_100, 7_000, 40_000, 400_000]) await watch.look(standing(600), now);
    expect(seen[0]).toBe('ci');
    expect(new Set(seen.slice(1))).toEqual(new Set(['raised']));
  });

  test('that the key has no more is not found any more', async () => {
    const watch = new BudgetWatch([50]);
    const none = { budgets: async (): Promise<readonly BudgetStanding[]> => [] };
    watch.note(key, false);
    expect(await watch.look(spent(60), 0)).toHaveLength(1);
    const { budgets: _, ...bare } = key;
    watch.note(bare, false);
    expect(await watch.look(none, 1)).toEqual([]);
  });

  test('is found although the budgets of another key cannot be read', async () => {
    const errors: unknown[] = [];
    const watch = new BudgetWatch([50], (error) => errors.push(error));
    watch.note({ ...key, id: 'key_0' }, false);
    watch.note(key, false);
    const budgets = async ({ id }: ApiKey): Promise<readonly BudgetStanding[]> => {
      if (id === 'key_0') throw new Error('unreadable');
      return spent(60).budgets();
    };
    expect(await watch.look({ budgets }, 0)).toHaveLength(1);
    expect(errors).toEqual([new Error('unreadable')]);
  });

  test('is found also where the last call is charged long after it has ended', async () => {
    const watch = new BudgetWatch([50]);
    watch.note(key, false);
    for (const now of [0, 1, 1_100]) expect(await watch.look(spent(40), now)).toEqual([]);
    expect(await watch.look(spent(50), 7_000)).toHaveLength(1);
  });
});

test('keys that cannot be read hide no certificate and no credential, and are read at the next look', async () => {
  const failures: unknown[] = [];
  const watch = new ExpiryWatch(
    { certificates: [], expiring: { secret: '2027-01-01' }, expiryDays: [30] },
    { certificate: () => {}, keys: (error) => failures.push(error) },
  );
  const now = Date.parse('2026-12-20');
  const team = { id: 'team_1', name: 'research' };
  const expiring = { id: 'key_1', name: 'ci', enabled: true, expiresAt: now + 1_000, team: team.id };
  const keys = async () => ({ keys: [{ ...expiring, owners: [team] }] as unknown as readonly ApiKey[] });
  const unreadable = () => Promise.reject(new Error('unreadable'));
  expect((await watch.look({ keys: unreadable }, now)).map(({ subject }) => subject)).toEqual([
    'credential secret',
  ]);
  expect(failures).toHaveLength(1);
  expect(await watch.look({ keys }, now + 1)).toMatchObject([
    { subject: 'key key_1', teams: ['team_1', 'research'] },
    { subject: 'credential secret' },
  ]);
});

test('a book with an entry that cannot be read keeps the others', async () => {
  const stores = openStores('sqlite::memory:');
  onTestFinished(() => stores.close());
  const known = { ...down('a'), state: 'firing', since: 0, count: 1, missed: 0 };
  const record = {
    writer: 'me',
    alerts: [{ ...known, kind: 'of a later version' }, known],
    outbox: 'none',
    mutes: [{ kind: 'budget', until: 5 }, {}],
    deliveries: { hook: { at: 1 }, other: 2 },
  };
  await stores.namespace<unknown>('alerts').set('book', record);
  const shared = new SharedAlertState(stores, 'me', 1_000);
  await shared.change((current) => ({ ...current }));
  expect(await stores.namespace<unknown>('alerts').get('book')).toEqual({
    writer: 'me',
    alerts: [known],
    outbox: [],
    mutes: [{ kind: 'budget', until: 5 }],
    deliveries: { hook: { at: 1 } },
  });
});

describe('a lost database', () => {
  test('is told once within the throttle, and not while it is muted', async () => {
    const sent: string[] = [];
    const deliveries = {
      send: async ({ items }: Message) => void sent.push(...items.map(({ state }) => state)),
    };
    const outage = new Outage(
      deliveries as unknown as Deliveries,
      { attempts: 1, backoff: 1, throttle: 60_000 },
      () => ['hook'],
    );
    const drop = async (at: number): Promise<readonly string[]> => {
      for (const now of [at, at + 1, at + 2]) outage.down(databaseLost('gw'), true, now);
      outage.up(at + 3);
      await outage.close();
      return sent.splice(0);
    };
    expect(await drop(0)).toEqual(['firing', 'resolved']);
    expect(await drop(10_000)).toEqual([]);
    outage.follow({ mutes: [{ kind: 'database-lost', until: 200_000 }] });
    expect(await drop(100_000)).toEqual([]);
    expect(await drop(300_000)).toEqual(['firing', 'resolved']);
  });
});
