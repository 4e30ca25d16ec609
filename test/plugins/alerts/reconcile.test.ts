import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { limits, type Alert, type Condition, type Item } from '../../../plugins/alerts/alert.ts';
import { addToOutbox } from '../../../plugins/alerts/outbox.ts';
import { BudgetWatch } from '../../../plugins/alerts/budgets.ts';
import { reconcile } from '../../../plugins/alerts/reconcile.ts';
import { pauseAfter } from '../../../plugins/alerts/sender.ts';
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
    const context = { now: index * 1_000, throttle, wasTold: () => false };
    const next = reconcile({ alerts: [...alerts], mutes: [] }, conditions, context);
    alerts = next.alerts;
    return next.items;
  });
}

describe('an alert', () => {
  test('is told once, and its end once, when two looks in a row have not found it', () => {
    const told = look([[down('a')], [down('a')], [], [down('a')], [], [], []], 0);
    expect(told.map(({ state, at }) => [state, at])).toEqual([
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
          const told = look(
            states.map((isDown) => (isDown ? [down('a')] : [])),
            seconds * 1_000,
          );
          const firing = told.filter(({ state }) => state === 'firing');
          for (const [index, { at }] of firing.entries())
            if (index > 0) expect(at - (firing[index - 1]?.at ?? 0)).toBeGreaterThanOrEqual(seconds * 1_000);
          for (const [index, { state }] of told.entries())
            expect(state).toBe(index % 2 === 0 ? 'firing' : 'resolved');
        },
      ),
    );
  });

  test('that is open stays on the list when there are too many', () => {
    const many = Array.from({ length: limits.alerts + 50 }, (_, index) => down(`${index}`));
    const { alerts } = reconcile({ alerts: [], mutes: [] }, many, {
      now: 0,
      throttle: 0,
      wasTold: () => false,
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

  test('is found also where the last call is charged long after it has ended', async () => {
    const watch = new BudgetWatch([50]);
    watch.note(key, false);
    for (const now of [0, 1, 1_100]) expect(await watch.look(spent(40), now)).toEqual([]);
    expect(await watch.look(spent(50), 7_000)).toHaveLength(1);
  });
});
