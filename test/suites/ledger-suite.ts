import * as fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { UsageRecord } from '../../core/model/usage-record.ts';
import type { Budget, HeldBudget } from '../../core/sdk/budget.ts';
import { BudgetExhausted } from '../../core/money/ledger/periods.ts';
import { openLedger } from '../../core/money/ledger/open.ts';
import { type Ledger, type Reservation, type Settlement } from '../../core/money/ledger/index.ts';
import { seriesIn } from '../../core/money/ledger/windows.ts';
import { rows, sqlOf } from '../../core/state/database/sql.ts';
import { openStores, type Stores } from '../../core/state/stores.ts';
import { openUsageLog } from '../../core/money/usage-log/open.ts';
import { tries } from '../support/tries.ts';

let numbers = 0;

/** A record that no other has the id of. */
export function recordOf(keyId: string, microDollars = 0): UsageRecord {
  numbers += 1;
  return {
    id: `req_${process.pid}_${numbers}`,
    at: Date.now(),
    keyId,
    ip: '192.0.2.7',
    operation: 'chat',
    format: 'plain',
    model: 'm',
    stream: false,
    status: 200,
    ended: 'complete',
    input: 1,
    output: 1,
    cacheRead: 0,
    cacheWrite: 0,
    reasoning: 0,
    microDollars,
    ms: 1,
  };
}

/** Returns the settlement of a call with this reservation. */
export function settlementOf(
  keyId: string,
  reservation: Reservation | undefined,
  microDollars: number,
  tokens = 0,
): Settlement {
  return {
    keyId,
    ...(reservation === undefined ? {} : { reservation: reservation.id }),
    charged: { microDollars, tokens },
    record: recordOf(keyId, microDollars),
  };
}

const daily = (amount: number): Budget => ({ unit: 'micro-dollar', period: 'day', amount });
const noon = Date.UTC(2026, 10, 21, 12);
/** A lease that no slow machine outlasts: time is made to pass. */
const hour = 3_600_000;

/** Contract of every ledger driver. `createUrl` returns a new database; `connections` is the maximum number of connections to it. */
export function ledgerSuite(createUrl: () => Promise<string> | string, connections: number): void {
  let opened: Stores[];
  let ledgers: Ledger[];
  let ledger: Ledger;
  let keys = 0;
  /** Keys are new for each test and each run of a property: the database need not be. */
  const newKey = (): string => `key_${(keys += 1)}`;

  beforeEach(async () => {
    const url = await createUrl();
    opened = Array.from({ length: connections }, () => openStores(url));
    ledgers = opened.map((stores) => openLedger(stores));
    ledger = at(ledgers, 0);
  });
  afterEach(async () => {
    vi.useRealTimers();
    await Promise.all(opened.map((stores) => stores.close()));
  });
  const setTime = (now: number): void => {
    vi.useFakeTimers({ toFake: ['Date'], now });
  };
  /** Lets time pass from `now` on: on the clock of the gateways, and for leases where a server has a clock of its own. */
  const pass = async (now: number, time: number): Promise<number> => {
    const milliseconds = Math.round(time);
    setTime(now + milliseconds);
    const { database } = at(opened, 0);
    if (database.kind === 'postgres')
      for (const table of ['ledger_reservations', 'ledger_owner_reservations'])
        // oxlint-disable-next-line no-await-in-loop -- two tables
        await database.query(`UPDATE ${table} SET expires = expires - $1::bigint`, [milliseconds]);
    return now + milliseconds;
  };
  const standing = async (
    key: string,
    budget: Budget,
  ): Promise<readonly [spent: number, reserved: number]> => {
    const [state] = await at(ledgers, -1).states(key, [budget]);
    return [state?.spent ?? Number.NaN, state?.reserved ?? Number.NaN];
  };

  describe('a claim', () => {
    test('takes room until the call is settled, and then what the call cost', async () => {
      const key = newKey();
      const reservation = await ledger.reserve(key, [daily(100)], { microDollars: 60, tokens: 5 });
      expect(await standing(key, daily(100))).toEqual([0, 60]);
      await ledger.settle([settlementOf(key, reservation, 45, 4)]);
      expect(await standing(key, daily(100))).toEqual([45, 0]);
      expect(await standing(key, { unit: 'token', period: 'total', amount: 9 })).toEqual([4, 0]);
    });

    test('is refused with 429 when a budget has no room for it, naming budget, standing and new beginning', async () => {
      setTime(noon);
      const key = newKey();
      const budgets: Budget[] = [
        { unit: 'token', period: 'total', amount: 1_000_000 },
        daily(5_000_000),
        { unit: 'micro-dollar', period: 'month', amount: 50_000_000 },
      ];
      await ledger.settle([settlementOf(key, undefined, 4_000_000)]);
      await ledger.reserve(key, budgets, { microDollars: 900_000, tokens: 10 });
      await expect(ledger.reserve(key, budgets, { microDollars: 100_001, tokens: 10 })).rejects.toMatchObject(
        {
          code: 'insufficient_quota',
          status: 429,
          retryable: false,
          message:
            'The daily budget of this API key ($5.00) does not allow this call: $4.00 spent, $0.90 reserved for running calls, and it may cost up to $0.100001. Lower the output limit to need less. It resets at 2026-11-22 00:00 UTC.',
        },
      );
      await expect(
        ledger.reserve(key, budgets, { microDollars: 100_000, tokens: 10 }),
      ).resolves.toBeDefined();
      await expect(ledger.reserve(key, budgets, { microDollars: 1, tokens: 1 })).rejects.toThrow(
        'The daily budget of this API key ($5.00) is used up: $4.00 spent, $1.00 reserved for running calls. It resets',
      );
      await expect(
        ledger.reserve(key, budgets.slice(0, 1), { microDollars: 0, tokens: 1_000_000 }),
      ).rejects.toThrow(/^The total budget of this API key \(1,000,000 tokens\) .* It does not reset\.$/);
    });

    test('is refused by a budget of nothing', async () => {
      await expect(
        ledger.reserve(newKey(), [daily(0)], { microDollars: 1, tokens: 1 }),
      ).rejects.toMatchObject({ code: 'insufficient_quota' });
    });

    test('of one key does not concern another', async () => {
      const [one, other] = [newKey(), newKey()];
      await ledger.reserve(one, [daily(100)], { microDollars: 100, tokens: 0 });
      await expect(
        ledger.reserve(other, [daily(100)], { microDollars: 100, tokens: 0 }),
      ).resolves.toBeDefined();
    });

    test('is given back when the call came to nothing', async () => {
      const key = newKey();
      const reservation = await ledger.reserve(key, [daily(100)], { microDollars: 100, tokens: 0 });
      await ledger.release([reservation.id, 'rsv_unknown']);
      expect(await standing(key, daily(100))).toEqual([0, 0]);
    });

    test('that has no room is made for what the call can be held to, where that fits', async () => {
      const key = newKey();
      const [most, less] = [
        { microDollars: 90, tokens: 0 },
        { microDollars: 40, tokens: 0 },
      ];
      expect(await ledger.reserve(key, [daily(100)], most, hour, less)).toMatchObject({ most });
      expect(await ledger.reserve(key, [daily(140)], most, hour, less)).toMatchObject({ most: less });
      await expect(ledger.reserve(key, [daily(140)], most, hour, less)).rejects.toThrow(
        '$0.00 spent, $0.00013 reserved for running calls, and it may cost up to $0.00004.',
      );
      expect(await standing(key, daily(140))).toEqual([0, 130]);
    });

    test('that is refused because of claims says so; one that spending leaves no room for does not', async () => {
      const key = newKey();
      await ledger.settle([settlementOf(key, undefined, 50)]);
      await ledger.reserve(key, [daily(100)], { microDollars: 50, tokens: 0 });
      await expect(ledger.reserve(key, [daily(100)], { microDollars: 50, tokens: 0 })).rejects.toMatchObject({
        claimed: true,
      });
      await expect(ledger.reserve(key, [daily(100)], { microDollars: 51, tokens: 0 })).rejects.toMatchObject({
        claimed: false,
      });
    });

    test('of a call whose gateway is gone holds nothing once its lease is over, and is swept', async () => {
      setTime(noon);
      // Removes the rows of other tests.
      await pass(noon, 1_000 * hour);
      await ledger.sweep();
      setTime(noon);
      const key = newKey();
      const budgets = [daily(100)];
      await ledger.reserve(key, budgets, { microDollars: 60, tokens: 0 }, hour);
      const kept = await ledger.reserve(key, budgets, { microDollars: 40, tokens: 0 }, hour);
      let now = await pass(noon, 0.9 * hour);
      expect(await at(ledgers, -1).renew([kept])).toEqual([]);
      now = await pass(now, 0.2 * hour);
      expect(await standing(key, daily(100))).toEqual([0, 40]);
      expect(await at(ledgers, -1).sweep()).toBe(1);
      expect(await ledger.sweep()).toBe(0);
      await pass(now, hour);
      expect(await ledger.sweep()).toBe(1);
      expect(await standing(key, daily(100))).toEqual([0, 0]);
    });

    test.each(['that ran out', 'that was swept'])(
      'of a call that goes on %s is made anew, though others have taken its room, and told',
      async (what) => {
        setTime(noon);
        const key = newKey();
        const budgets = [daily(100)];
        const lost = await ledger.reserve(key, budgets, { microDollars: 60, tokens: 7 }, hour);
        const now = await pass(noon, 1.1 * hour);
        if (what === 'that was swept') await ledger.sweep();
        const other = await at(ledgers, -1).reserve(key, budgets, { microDollars: 90, tokens: 0 }, hour);
        expect(await ledger.renew([lost, other])).toEqual([lost.id]);
        expect(await standing(key, daily(100))).toEqual([0, 150]);
        expect(await standing(key, { unit: 'token', period: 'total', amount: 9 })).toEqual([0, 7]);
        expect(await ledger.renew([lost, other])).toEqual([]);
        await expect(ledger.reserve(key, budgets, { microDollars: 1, tokens: 0 })).rejects.toThrow('used up');
        await pass(now, 0.5 * hour);
        await ledger.settle([settlementOf(key, lost, 55), settlementOf(key, other, 40)]);
        expect(await standing(key, daily(100))).toEqual([95, 0]);
      },
    );

    test('is renewed in the day in which it was made', async () => {
      const newYear = Date.UTC(2027, 0, 1);
      setTime(newYear - 0.5 * hour);
      const key = newKey();
      const reservation = await ledger.reserve(key, [daily(100)], { microDollars: 60, tokens: 0 }, hour);
      await pass(newYear, hour);
      await ledger.renew([reservation]);
      expect(await standing(key, daily(100))).toEqual([0, 0]);
      setTime(newYear - 1);
      expect(await standing(key, daily(100))).toEqual([0, 60]);
    });
  });

  describe('a settlement', () => {
    test('that is made twice charges once', async () => {
      const key = newKey();
      const once = settlementOf(key, undefined, 10, 7);
      await ledger.settle([once, once]);
      await at(ledgers, -1).settle([once]);
      expect(await standing(key, daily(100))).toEqual([10, 0]);
    });

    test('of a claim that was swept is charged all the same, once', async () => {
      setTime(noon);
      const key = newKey();
      const reservation = await ledger.reserve(key, [daily(100)], { microDollars: 60, tokens: 0 }, hour);
      await pass(noon, 5 * hour);
      await ledger.sweep();
      const late = settlementOf(key, reservation, 60);
      await ledger.settle([late]);
      await ledger.settle([late]);
      expect(await standing(key, daily(100))).toEqual([60, 0]);
    });

    test.each(['day', 'month', 'total'] as const)(
      'that runs takes room of a budget for the period "%s", in dollars and in tokens',
      async (period) => {
        const key = newKey();
        const most = { microDollars: 60, tokens: 60 };
        for (const unit of ['micro-dollar', 'token'] as const) {
          const budget: Budget = { unit, period, amount: 100 };
          const reservation = await ledger.reserve(key, [budget], most);
          expect(await standing(key, budget)).toEqual([0, 60]);
          await expect(at(ledgers, -1).reserve(key, [budget], most)).rejects.toMatchObject({ status: 429 });
          await ledger.release([reservation.id]);
          expect(await standing(key, budget)).toEqual([0, 0]);
        }
      },
    );

    test('counts for the day and month in which the call was admitted', async () => {
      const newYear = Date.UTC(2027, 0, 1);
      setTime(newYear - 100);
      const key = newKey();
      const budgets: Budget[] = (['day', 'month', 'total'] as const).map((period) => ({
        unit: 'micro-dollar',
        period,
        amount: 1_000,
      }));
      const reservation = await ledger.reserve(key, budgets, { microDollars: 60, tokens: 0 });
      setTime(newYear + 100);
      expect((await ledger.states(key, budgets)).map(({ reserved }) => reserved)).toEqual([0, 0, 60]);
      await ledger.settle([settlementOf(key, reservation, 50), settlementOf(key, undefined, 7)]);
      expect(await ledger.states(key, budgets)).toEqual([
        { ...budgets[0], since: newYear, until: Date.UTC(2027, 0, 2), spent: 7, reserved: 0, ahead: 0 },
        { ...budgets[1], since: newYear, until: Date.UTC(2027, 1, 1), spent: 7, reserved: 0, ahead: 0 },
        { ...budgets[2], since: 0, spent: 57, reserved: 0, ahead: 0 },
      ]);
      setTime(newYear - 1);
      expect((await ledger.states(key, budgets)).map(({ spent }) => spent)).toEqual([50, 50, 57]);
    });

    describe('of a rolling window', () => {
      const rolling: Budget = { unit: 'micro-dollar', period: 'hours', hours: 5, amount: 100 };
      const minute = hour / 60;
      const charge = async (key: string, amount: number): Promise<void> => {
        const reservation = await ledger.reserve(key, [rolling], { microDollars: amount, tokens: 0 });
        await ledger.settle([
          { ...settlementOf(key, reservation, amount), owners: [], series: seriesIn(key, [rolling]) },
        ]);
      };

      test('is refused until enough of what was spent is older than the window, and says when', async () => {
        setTime(noon);
        const key = newKey();
        await charge(key, 60);
        setTime(noon + 2 * hour);
        await charge(key, 40);
        const refusal = await charge(key, 61).catch((error: unknown) => error);
        expect(refusal).toMatchObject({ status: 429, retryAfter: 5 * 3_600 + 5 * 60 });
        const other = await charge(key, 30).catch((error: unknown) => error);
        expect(other).toMatchObject({ status: 429, retryAfter: 3 * 3_600 + 5 * 60 });
        expect((other as Error).message).toBe(
          'The 5-hour budget of this API key ($0.0001) is used up: $0.0001 spent. Enough of it is available at 2026-11-21 17:05 UTC.',
        );
        setTime(noon + 5 * hour + 5 * minute - 1);
        await expect(charge(key, 30)).rejects.toMatchObject({ status: 429 });
        setTime(noon + 5 * hour + 5 * minute);
        await charge(key, 60);
        await expect(charge(key, 1)).rejects.toMatchObject({ status: 429 });
      });

      test('never holds more than the amount, whenever it is looked at', { timeout: 60_000 }, async () => {
        await fc.assert(
          fc.asyncProperty(
            fc.array(fc.tuple(fc.integer({ min: 0, max: 90 }), fc.integer({ min: 1, max: 60 })), {
              minLength: 5,
              maxLength: 25,
            }),
            async (calls) => {
              const key = newKey();
              const made: { readonly at: number; readonly amount: number }[] = [];
              let now = noon;
              for (const [minutes, amount] of calls) {
                now += minutes * minute + 777;
                setTime(now);
                // oxlint-disable-next-line no-await-in-loop -- one call after the other
                const isServed = await charge(key, amount).then(
                  () => true,
                  () => false,
                );
                if (isServed) made.push({ at: now, amount });
                const inWindow = (length: number): number =>
                  made.reduce((sum, one) => sum + (one.at > now - length ? one.amount : 0), 0);
                expect(inWindow(5 * hour)).toBeLessThanOrEqual(100);
                // Nothing that is older than the window and one bucket counts.
                if (!isServed) expect(inWindow(5 * hour + 5 * minute) + amount).toBeGreaterThan(100);
              }
            },
          ),
          { numRuns: tries(10) },
        );
      });

      test('counts claims of running calls for as long as the window', async () => {
        setTime(noon);
        const key = newKey();
        const reservation = await ledger.reserve(key, [rolling], { microDollars: 90, tokens: 0 }, 100 * hour);
        expect(await standing(key, rolling)).toEqual([0, 90]);
        await expect(charge(key, 20)).rejects.toMatchObject({ status: 429 });
        setTime(noon + 6 * hour);
        expect(await standing(key, rolling)).toEqual([0, 0]);
        await ledger.release([reservation.id]);
      });
    });

    test('counts in the week, from Monday, whether or not there was a budget', async () => {
      const sunday = Date.UTC(2026, 10, 22, 23);
      const weekly: Budget = { unit: 'micro-dollar', period: 'week', amount: 100 };
      const key = newKey();
      setTime(Date.UTC(2026, 10, 16, 1));
      await ledger.settle([settlementOf(key, undefined, 30)]);
      setTime(sunday);
      await ledger.settle([settlementOf(key, undefined, 40)]);
      expect(await standing(key, weekly)).toEqual([70, 0]);
      await expect(ledger.reserve(key, [weekly], { microDollars: 31, tokens: 0 })).rejects.toThrow(
        'The weekly budget of this API key ($0.0001) does not allow this call: $0.00007 spent, and it may cost up to $0.000031. Lower the output limit to need less. It resets at 2026-11-23 00:00 UTC.',
      );
      setTime(sunday + hour);
      expect(await standing(key, weekly)).toEqual([0, 0]);
    });

    test.each(['day', 'week', 'month'] as const)(
      'counts in the %s of a time zone, also where the clocks change',
      async (period) => {
        const budget: Budget = {
          unit: 'micro-dollar',
          period,
          timeZone: 'Europe/Berlin',
          amount: 100,
        };
        // Sunday, 25 October 2026 has 25 hours in Berlin, and ends at 23:00 of UTC; so does Saturday, 31 October.
        const first = Date.UTC(2026, 9, period === 'month' ? 31 : 25, 22, 59);
        const key = newKey();
        const settle = (amount: number) =>
          ledger.settle([
            { ...settlementOf(key, undefined, amount), owners: [], series: seriesIn(key, [budget]) },
          ]);
        setTime(first);
        await settle(60);
        expect(await standing(key, budget)).toEqual([60, 0]);
        await expect(ledger.reserve(key, [budget], { microDollars: 41, tokens: 0 })).rejects.toMatchObject({
          status: 429,
        });
        setTime(first + 60_000);
        await settle(7);
        expect(await standing(key, budget)).toEqual([7, 0]);
      },
    );

    test('counts for a key without budgets too, so that one given later knows it', async () => {
      const key = newKey();
      await ledger.settle([settlementOf(key, undefined, 90)]);
      await expect(ledger.reserve(key, [daily(100)], { microDollars: 11, tokens: 0 })).rejects.toThrow(
        '$0.00009 spent',
      );
    });

    test('of a call without a key is only recorded', async () => {
      const { keyId: _nobody, ...stranger } = recordOf('nobody');
      await ledger.settle([{ charged: { microDollars: 0, tokens: 0 }, record: stranger }]);
      expect(await openUsageLog(at(opened, 0)).find(stranger.id)).toMatchObject({ id: stranger.id });
    });

    test('that gives back lowers what is spent, in the periods in which it was charged, once', async () => {
      const newYear = Date.UTC(2027, 0, 1);
      setTime(newYear - 100);
      const key = newKey();
      await ledger.settle([settlementOf(key, undefined, 50), settlementOf(key, undefined, 20)]);
      setTime(newYear + 100);
      await ledger.settle([settlementOf(key, undefined, 7)]);
      const back = { ...settlementOf(key, undefined, 50), refundOf: newYear - 100 };
      await Promise.all([ledger.settle([back]), at(ledgers, -1).settle([back, back])]);
      const spent = async (): Promise<number[]> =>
        (
          await ledger.states(
            key,
            (['day', 'month', 'total'] as const).map((period) => ({
              unit: 'micro-dollar',
              period,
              amount: 1_000,
            })),
          )
        ).map((state) => state.spent);
      expect(await spent()).toEqual([7, 7, 27]);
      setTime(newYear - 1);
      expect(await spent()).toEqual([20, 20, 27]);
    });

    test('made together with something else is made with it, or not at all', async () => {
      const key = newKey();
      const refused = settlementOf(key, undefined, 10);
      expect(
        await ledger.settleAfter([refused], function* () {
          yield* rows('SELECT 1 AS one');
          return false;
        }),
      ).toBe(false);
      await expect(
        ledger.settleAfter([refused], function* () {
          yield* rows("INSERT INTO secrets (name, value) VALUES (?, 'x')", key);
          throw new Error('no');
        }),
      ).rejects.toThrow('no');
      const bad = { ...settlementOf(key, undefined, 1), charged: { microDollars: 0.5, tokens: 0 } };
      const insert = function* () {
        yield* rows("INSERT INTO secrets (name, value) VALUES (?, 'x')", key);
        return true;
      };
      await expect(ledger.settleAfter([bad], insert)).rejects.toThrow('whole number');
      expect(await standing(key, daily(100))).toEqual([0, 0]);
      // Nothing of it is left: the same can be written now.
      expect(await ledger.settleAfter([refused], insert)).toBe(true);
      expect(await standing(key, daily(100))).toEqual([10, 0]);
    });

    test('that fails in the middle leaves nothing behind, and can be made again', async () => {
      const key = newKey();
      const reservation = await ledger.reserve(key, [daily(100)], { microDollars: 60, tokens: 0 });
      const good = settlementOf(key, reservation, 50);
      const bad = { ...settlementOf(key, undefined, 1), charged: { microDollars: 0.5, tokens: 0 } };
      await expect(ledger.settle([good, bad])).rejects.toThrow('whole number');
      expect(await standing(key, daily(100))).toEqual([0, 60]);
      expect(await openUsageLog(at(opened, 0)).find(good.record.id)).toBeUndefined();
      await ledger.settle([good]);
      expect(await standing(key, daily(100))).toEqual([50, 0]);
    });
  });

  describe('budgets of owners', () => {
    /** Budgets of a key, its team and its organisation, and the ids of these two. */
    const shared = (own: number, team: number, organisation: number) => {
      const [teamId, organisationId] = [newKey(), newKey()];
      const held = (id: string, name: string, amount: number): HeldBudget => ({
        ...daily(amount),
        owner: { id, name: `the ${name}` },
      });
      return {
        budgets: [
          daily(own),
          held(teamId, 'team "t"', team),
          held(organisationId, 'organisation "o"', organisation),
        ],
        owners: [teamId, organisationId],
      };
    };
    const standings = async (key: string, budgets: readonly HeldBudget[]) =>
      (await at(ledgers, -1).states(key, budgets)).map(({ spent, reserved, ahead }) => [
        spent,
        reserved,
        ahead,
      ]);
    const charge = (
      key: string,
      reservation: Reservation | undefined,
      owners: readonly string[],
      microDollars: number,
    ): Settlement => ({ ...settlementOf(key, reservation, microDollars), owners });

    test('are claimed, charged and given back with that of the key, all or none', async () => {
      const { budgets, owners } = shared(100, 80, 1_000);
      const [one, other] = [newKey(), newKey()];
      const reservation = await ledger.reserve(one, budgets, { microDollars: 60, tokens: 0 });
      await expect(at(ledgers, -1).reserve(other, budgets, { microDollars: 21, tokens: 0 })).rejects.toThrow(
        'The daily budget of the team "t" ($0.00008) does not allow this call',
      );
      expect(await standings(other, budgets)).toEqual([
        [0, 0, 0],
        [0, 60, 0],
        [0, 60, 0],
      ]);
      const second = await ledger.reserve(other, budgets, { microDollars: 20, tokens: 0 });
      await ledger.settle([charge(one, reservation, owners, 45)]);
      await ledger.release([second.id]);
      expect(await standings(one, budgets)).toEqual([
        [45, 0, 0],
        [45, 0, 0],
        [45, 0, 0],
      ]);
      expect(await standings(other, budgets)).toEqual([
        [0, 0, 0],
        [45, 0, 0],
        [45, 0, 0],
      ]);
    });

    test('count what calls without such a budget have cost', async () => {
      const { budgets, owners } = shared(100, 80, 1_000);
      const key = newKey();
      await ledger.settle([charge(key, undefined, owners, 79)]);
      await expect(ledger.reserve(newKey(), budgets, { microDollars: 2, tokens: 0 })).rejects.toThrow(
        'of the team "t"',
      );
    });

    test('hold claims of calls that go on, and lose those of a gateway that is gone', async () => {
      setTime(noon);
      const { budgets } = shared(100, 100, 100);
      const key = newKey();
      const kept = await ledger.reserve(key, budgets, { microDollars: 30, tokens: 0 }, hour);
      await ledger.reserve(key, budgets, { microDollars: 40, tokens: 0 }, hour);
      let now = await pass(noon, 0.9 * hour);
      expect(await ledger.renew([kept])).toEqual([]);
      now = await pass(now, 0.2 * hour);
      expect(await standings(key, budgets)).toEqual([
        [0, 30, 0],
        [0, 30, 0],
        [0, 30, 0],
      ]);
      await ledger.sweep();
      await pass(now, hour);
      await ledger.sweep();
      expect(await at(ledgers, -1).renew([kept])).toEqual([kept.id]);
      expect(await standings(key, budgets)).toEqual([
        [0, 30, 0],
        [0, 30, 0],
        [0, 30, 0],
      ]);
    });

    test('get back what is reserved ahead for another key of the same owner', async () => {
      const { budgets, owners } = shared(1_000_000, 10_000, 1_000_000);
      const [one, other] = [newKey(), newKey()];
      const call = { microDollars: 10, tokens: 0 };
      const ahead = { microDollars: 90, tokens: 0 };
      const allotment = await ledger.reserve(one, budgets, call, hour, undefined, ahead);
      expect(allotment).toMatchObject({ owners, ahead });
      const rest = { microDollars: 9_950, tokens: 0 };
      await expect(at(ledgers, -1).reserve(other, budgets, rest)).rejects.toMatchObject({
        claimed: true,
        recalls: true,
      });
      expect(await ledger.recalled()).toContain(allotment.id);
      // One of its calls was charged, and another needs the rest of what is kept.
      const draw = {
        id: allotment.id,
        amounts: { microDollars: 4, tokens: 0 },
        free: { microDollars: 80, tokens: 0 },
      };
      await ledger.settle([{ ...charge(one, undefined, owners, 4), allotment: draw }]);
      expect(await standings(one, budgets)).toEqual([
        [4, 16, 80],
        [4, 16, 80],
        [4, 16, 80],
      ]);
      const kept = {
        id: allotment.id,
        amounts: { microDollars: 6, tokens: 0 },
        free: { microDollars: 0, tokens: 0 },
      };
      await ledger.giveBack({ resized: [kept], ended: [] });
      expect(await standings(one, budgets)).toEqual([
        [4, 6, 0],
        [4, 6, 0],
        [4, 6, 0],
      ]);
      await ledger.giveBack({ resized: [], ended: [allotment.id] });
      expect(await standings(one, budgets)).toEqual([
        [4, 0, 0],
        [4, 0, 0],
        [4, 0, 0],
      ]);
      expect(await ledger.recalled()).not.toContain(allotment.id);
      await expect(at(ledgers, -1).reserve(other, budgets, rest)).resolves.toBeDefined();
    });

    test('are never exceeded, and never refuse what fits, whoever calls with whichever key', async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.tuple(fc.integer({ min: 50, max: 300 }), fc.integer({ min: 50, max: 300 })),
          fc.array(fc.tuple(fc.nat(2), fc.integer({ min: 1, max: 60 }), fc.integer({ min: 0, max: 60 })), {
            minLength: 5,
            maxLength: 40,
          }),
          async ([team, organisation], calls) => {
            const { budgets, owners } = shared(120, team, organisation);
            const callers = [newKey(), newKey(), newKey()];
            const done = await Promise.allSettled(
              calls.map(async ([who, most, cost], index) => {
                const key = at(callers, who);
                const own = at(ledgers, index % ledgers.length);
                const reservation = await own.reserve(key, budgets, { microDollars: most, tokens: 0 }, hour);
                await own.settle([charge(key, reservation, owners, Math.min(most, cost))]);
                return Math.min(most, cost);
              }),
            );
            for (const one of done)
              if (one.status === 'rejected') expect(one.reason).toBeInstanceOf(BudgetExhausted);
            const spent = done.reduce((sum, one) => sum + (one.status === 'fulfilled' ? one.value : 0), 0);
            const [, ofTeam, ofOrganisation] = await ledger.states(at(callers, 0), budgets);
            expect([ofTeam?.spent, ofTeam?.reserved]).toEqual([spent, 0]);
            expect([ofOrganisation?.spent, ofOrganisation?.reserved]).toEqual([spent, 0]);
            expect(spent).toBeLessThanOrEqual(Math.min(team, organisation));
            const left = Math.min(team, organisation) - spent;
            const fresh = newKey();
            if (left > 0 && left <= 120)
              await expect(
                ledger.reserve(fresh, budgets, { microDollars: left, tokens: 0 }),
              ).resolves.toBeDefined();
            await expect(
              ledger.reserve(fresh, budgets, { microDollars: left + 1, tokens: 0 }),
            ).rejects.toBeInstanceOf(BudgetExhausted);
          },
        ),
        { numRuns: tries(20) },
      );
    });
  });

  test('an end user whose call is refused takes no place of the maximum number', async () => {
    const [key, team] = [newKey(), `team_${newKey()}`];
    const limited = openLedger(at(opened, -1), 2);
    /** Budgets of an end user of a key and of its team, of which the latter may have had its end users before. */
    const of = (user: string, scopes: readonly string[] = [key, team]): readonly HeldBudget[] =>
      scopes.map((scope) => ({
        ...daily(100),
        owner: { id: `usr_${scope}_${user}`, name: `${user} of ${scope}`, scope },
      }));
    const reserve = (user: string, microDollars: number, scopes?: readonly string[]) =>
      limited.reserve(key, of(user, scopes), { microDollars, tokens: 0 }).then(
        () => 'served',
        (error: Error) => error.message,
      );
    const tooMany = expect.stringMatching(/^Calls of 2 end users were made in this period/) as string;
    expect(await Promise.all(['ann', 'ben', 'cid'].map((user) => reserve(user, 101)))).not.toContain(
      'served',
    );
    expect(await reserve('ann', 10)).toBe('served');
    // The key has no place for the third, so that the team keeps its own.
    expect(await reserve('bob', 10, [key])).toBe('served');
    expect(await reserve('eve', 10)).toEqual(tooMany);
    expect(await reserve('dan', 10, [team])).toBe('served');
    expect(await Promise.all(['ann', 'bob', 'eve'].map((user) => reserve(user, 10, [key])))).toEqual([
      'served',
      'served',
      tooMany,
    ]);
    expect(await reserve('eve', 10, [team])).toEqual(tooMany);
    expect(await reserve('ann', 90)).toContain('does not allow this call');
  });

  test('a team has 10,000 end users in a period, and those of others are not among them', async () => {
    const key = newKey();
    const reserve = (user: string, scope = `team_${key}`) => {
      const owner = { id: `usr_${scope}_${user}`, name: user, scope };
      return ledger.reserve(key, [{ ...daily(100), owner }], { microDollars: 1, tokens: 0 }).then(
        () => 'served',
        (error: Error) => error.message,
      );
    };
    expect(await reserve('first')).toBe('served');
    const { database } = at(opened, 0);
    const fill = `WITH RECURSIVE numbers (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < 9998)
      INSERT INTO ledger_end_users (scope, until, holder)
        SELECT scope, until, 'usr_' || number FROM ledger_end_users, numbers WHERE scope = 'team_${key}'`;
    if (database.kind === 'postgres') await database.query(fill);
    else database.connection.exec(fill);
    expect(await reserve('last')).toBe('served');
    expect(await reserve('beyond')).toMatch(/^Calls of 10,000 end users were made in this period/);
    expect(await Promise.all([reserve('first'), reserve('last'), reserve('beyond', `other_${key}`)])).toEqual(
      ['served', 'served', 'served'],
    );
  });

  describe('an allotment', () => {
    const call = { microDollars: 10, tokens: 1 };
    const ahead = { microDollars: 90, tokens: 9 };
    const reserve = (key: string, amount: number, connection = 0): Promise<Reservation> =>
      at(ledgers, connection).reserve(key, [daily(amount)], call, hour, undefined, ahead);
    const none = { microDollars: 0, tokens: 0 };
    /** The charge of a call that was served from it, after which so much is free. */
    const draw = (key: string, { id }: Reservation, microDollars: number, free = 0): Settlement => ({
      ...settlementOf(key, undefined, microDollars, 1),
      allotment: { id, amounts: { microDollars, tokens: 1 }, free: { microDollars: free, tokens: 0 } },
    });
    const state = async (key: string, budget: Budget): Promise<readonly (number | undefined)[]> => {
      const [found] = await at(ledgers, -1).states(key, [budget]);
      return [found?.spent, found?.reserved, found?.ahead];
    };
    const recalledOf = async (connection: number, ...ids: readonly string[]): Promise<readonly string[]> =>
      (await at(ledgers, connection).recalled()).filter((id) => ids.includes(id));

    test('is reserved with a call where the budget has ample room, and counts as reserved', async () => {
      const key = newKey();
      const allotment = await reserve(key, 10_000);
      expect(allotment).toMatchObject({ most: call, ahead });
      expect(await state(key, daily(10_000))).toEqual([0, 10, 90]);
      await expect(
        at(ledgers, -1).reserve(key, [daily(10_000)], { microDollars: 9_901, tokens: 0 }),
      ).rejects.toMatchObject({ claimed: true, recalls: true });
    });

    test('takes an eighth of what is left at the most, and nothing where that is no other call', async () => {
      const key = newKey();
      expect(await reserve(key, 410)).toMatchObject({ ahead: { microDollars: 50, tokens: 9 } });
      const other = newKey();
      expect(await reserve(other, 89)).not.toHaveProperty('ahead');
      expect(await state(other, daily(89))).toEqual([0, 10, 0]);
      expect(
        await ledger.reserve(
          newKey(),
          [{ unit: 'token', period: 'total', amount: 41 }],
          call,
          hour,
          undefined,
          ahead,
        ),
      ).toMatchObject({ ahead: { microDollars: 90, tokens: 5 } });
    });

    test('is not reserved with a call that is held to less than it may come to', async () => {
      const key = newKey();
      const most = { microDollars: 2_000, tokens: 1 };
      expect(await ledger.reserve(key, [daily(1_000)], most, hour, call, ahead)).not.toHaveProperty('ahead');
    });

    test('gives up what its calls are charged, once, so that the sum stays the same', async () => {
      const key = newKey();
      const allotment = await reserve(key, 10_000);
      const first = draw(key, allotment, 7, 30);
      await ledger.settle([first, draw(key, allotment, 3, 70)]);
      expect(await state(key, daily(10_000))).toEqual([10, 20, 70]);
      await ledger.settle([first, first]);
      await at(ledgers, -1).settle([first]);
      expect(await state(key, daily(10_000))).toEqual([10, 20, 70]);
      await ledger.settle([draw(key, allotment, 60, 70)]);
      expect(await state(key, daily(10_000))).toEqual([70, 0, 30]);
      await ledger.settle([draw(key, allotment, 500, 30)]);
      expect(await state(key, daily(10_000))).toEqual([570, 0, 0]);
    });

    test('is recalled by a call that it leaves no room for, until its process has given back what is free', async () => {
      const key = newKey();
      const [one, other] = [await reserve(key, 1_000), await reserve(key, 1_000, -1)];
      expect(await recalledOf(0, one.id, other.id)).toEqual([]);
      const large = { microDollars: 900, tokens: 0 };
      const reserveLarge = (): Promise<Reservation> => at(ledgers, -1).reserve(key, [daily(1_000)], large);
      await expect(reserveLarge()).rejects.toMatchObject({ recalls: true });
      expect((await recalledOf(0, one.id, other.id)).toSorted()).toEqual([one.id, other.id].toSorted());
      await ledger.giveBack({ resized: [{ id: one.id, amounts: call, free: none }], ended: [other.id] });
      expect(await recalledOf(-1, one.id, other.id)).toEqual([]);
      expect(await state(key, daily(1_000))).toEqual([0, 10, 0]);
      // A repeated or older request does not raise what it holds.
      await ledger.giveBack({ resized: [{ id: one.id, amounts: ahead, free: none }], ended: [other.id] });
      expect(await state(key, daily(1_000))).toEqual([0, 10, 0]);
      await expect(reserveLarge()).resolves.toMatchObject({ most: large });
      await expect(reserveLarge()).rejects.toMatchObject({ recalls: false });
    });

    test('of another key, and one whose lease is over, are not recalled', async () => {
      setTime(noon);
      const key = newKey();
      const [expired, foreign] = [await reserve(key, 1_000), await reserve(newKey(), 1_000)];
      await pass(noon, 1.1 * hour);
      await expect(
        ledger.reserve(key, [daily(1_000)], { microDollars: 1_001, tokens: 0 }),
      ).rejects.toMatchObject({ recalls: false });
      expect(await recalledOf(0, expired.id, foreign.id)).toEqual([]);
    });

    test('is recalled when a call is held to less because of it', async () => {
      const key = newKey();
      const { id } = await reserve(key, 1_000);
      const most = { microDollars: 950, tokens: 0 };
      expect(await at(ledgers, -1).reserve(key, [daily(1_000)], most, hour, call)).toMatchObject({
        most: call,
      });
      expect(await recalledOf(0, id)).toEqual([id]);
    });

    test('counts for gateways of the version before, and their claims count here', async () => {
      const key = newKey();
      const allotment = await reserve(key, 1_000);
      const { database } = at(opened, -1);
      const expires = Date.now() + hour;
      await sqlOf(database).atomically(() =>
        rows(
          `INSERT INTO ledger_reservations (id, key_id, micro_dollars, tokens, day, month, lease, expires)
           VALUES (?, ?, 300, 0, 0, 0, ?, ?)`,
          `rsv_${key}`,
          key,
          hour,
          expires,
        ),
      );
      const total = { ...daily(1_000), period: 'total' } as const;
      expect(await state(key, total)).toEqual([0, 310, 90]);
      await expect(ledger.reserve(key, [total], { microDollars: 601, tokens: 0 })).rejects.toBeInstanceOf(
        BudgetExhausted,
      );
      expect(await recalledOf(0, `rsv_${key}`, allotment.id)).toEqual([allotment.id]);
    });

    test('whose lease ran out is made anew with what its calls need, and no more', async () => {
      setTime(noon);
      const key = newKey();
      const { ahead: _free, ...needed } = await reserve(key, 1_000);
      await pass(noon, 1.1 * hour);
      expect(await ledger.renew([needed])).toEqual([needed.id]);
      expect(await state(key, daily(1_000))).toEqual([0, 10, 0]);
      await expect(
        ledger.reserve(key, [daily(1_000)], { microDollars: 991, tokens: 0 }),
      ).rejects.toMatchObject({ recalls: false });
    });
  });

  test('calls at the same time never exceed a budget together', async () => {
    const key = newKey();
    const budget = daily(3_400);
    const claims = await Promise.allSettled(
      Array.from({ length: 100 }, (_, number) =>
        at(ledgers, number % connections).reserve(key, [budget], { microDollars: 100, tokens: 1 }),
      ),
    );
    const granted = claims.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
    expect(granted).toHaveLength(34);
    expect(await standing(key, budget)).toEqual([0, 3_400]);
    await Promise.all(
      granted.map((reservation, number) =>
        at(ledgers, number % connections).settle([settlementOf(key, reservation, 90)]),
      ),
    );
    expect(await standing(key, budget)).toEqual([34 * 90, 0]);
  });

  test('whatever happens in whatever order, sums are those of the calls, and no budget is exceeded', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), fc.integer({ min: 0, max: 500 }), run),
      {
        numRuns: tries(connections === 1 ? 300 : 50),
      },
    );
  });

  /** Runs steps on the ledger and on a model of it. */
  async function run(steps: readonly Step[], amount: number): Promise<void> {
    const key = newKey();
    const budget = daily(amount);
    let now = noon;
    setTime(now);
    let spent = 0;
    /** Beyond the budget through no fault of the ledger: a claim was swept while its call went on. */
    let late = 0;
    const claims: { readonly outcome: Reservation; readonly most: number; expires: number; open: boolean }[] =
      [];
    const reserved = (): number =>
      claims.reduce((sum, { open, expires, most }) => sum + (open && expires > now ? most : 0), 0);
    for (const { kind, connection, pick, value } of steps) {
      const on = at(ledgers, connection % connections);
      const chosen = claims[pick % Math.max(1, claims.length)];
      switch (kind) {
        case 'reserve': {
          const fits = spent + reserved() + value <= amount;
          const outcome = await on
            .reserve(key, [budget], { microDollars: value, tokens: 1 }, hour)
            .catch(() => undefined);
          expect(outcome !== undefined).toBe(fits);
          if (outcome !== undefined) claims.push({ outcome, most: value, expires: now + hour, open: true });
          break;
        }
        case 'settle': {
          if (chosen === undefined || !chosen.open) break;
          const cost = Math.min(value, chosen.most);
          const settlement = settlementOf(key, chosen.outcome, cost);
          await on.settle([settlement]);
          if (pick % 3 === 0) await on.settle([settlement]);
          if (chosen.expires <= now) late += cost;
          chosen.open = false;
          spent += cost;
          break;
        }
        case 'release':
          if (chosen === undefined || !chosen.open) break;
          await on.release([chosen.outcome.id]);
          chosen.open = false;
          break;
        case 'renew':
          if (chosen === undefined || !chosen.open) break;
          expect(await on.renew([chosen.outcome])).toEqual(chosen.expires <= now ? [chosen.outcome.id] : []);
          if (chosen.expires <= now) late += chosen.most;
          chosen.expires = now + hour;
          break;
        case 'wait':
          now = await pass(now, value * (hour / 100));
          break;
        case 'sweep':
          await on.sweep();
          break;
      }
      const [seenSpent, seenReserved] = await standing(key, budget);
      expect([seenSpent, seenReserved]).toEqual([spent, reserved()]);
      expect(seenSpent + seenReserved).toBeLessThanOrEqual(amount + late);
    }
  }
}

/** Step of a property. A step may ignore some of the numbers. */
interface Step {
  readonly kind: 'reserve' | 'settle' | 'release' | 'renew' | 'wait' | 'sweep';
  readonly connection: number;
  readonly pick: number;
  readonly value: number;
}

const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom(
    'reserve',
    'reserve',
    'reserve',
    'settle',
    'settle',
    'release',
    'renew',
    'wait',
    'sweep',
  ),
  connection: fc.nat(5),
  pick: fc.nat(50),
  value: fc.nat(100),
});

function at<T>(list: readonly T[], index: number): T {
  const found = list.at(index);
  if (found === undefined) throw new Error('There is none.');
  return found;
}
