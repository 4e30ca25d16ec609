import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openRates } from '../../../../core/money/rates/open.ts';
import type { RateRule, Rates, RateVerdict, SlotRule } from '../../../../core/money/rates/index.ts';
import {
  giveBackScript,
  holdersScript,
  renewScript,
  takeScript,
} from '../../../../core/money/rates/scripts.ts';
import { holdersOf, keyOf } from '../../../../core/money/rates/store.ts';
import { script, SharedLink, type Script } from '../../../../core/state/links/shared-link.ts';
import { MemoryRedis } from '../../../simulate/redis.ts';
import { newSubject, one } from '../../../suites/rates-suite.ts';
import { eventually } from '../../../support/eventually.ts';
import { startRedis, withoutRedis, type TestRedis } from '../../../support/redis.ts';

const missing = withoutRedis();

describe.skipIf(missing !== undefined)(
  `allotments of limits in Redis${missing === undefined ? '' : ` (${missing})`}`,
  () => {
    let redis: TestRedis;
    const opened: Rates[] = [];
    const open = (): Rates => {
      const rates = openRates({ url: redis.url, whenDown: 'refuse' }, () => {}, { lease: 1_500 });
      opened.push(rates);
      return rates;
    };
    const scriptsRun = async (): Promise<number> => {
      const commandStats = String(await redis.command('INFO', 'commandstats'));
      return Number(/cmdstat_evalsha:calls=(\d+)/.exec(commandStats)?.[1] ?? 0);
    };
    const many = async (
      rates: Rates,
      calls: number,
      rules: readonly RateRule[],
      slots: readonly SlotRule[],
    ): Promise<readonly RateVerdict[]> => {
      const verdicts: RateVerdict[] = [];
      // oxlint-disable-next-line no-await-in-loop -- one call after the other
      for (let call = 0; call < calls; call += 1) verdicts.push(await rates.take(rules, slots));
      return verdicts;
    };
    /** Calls until calls are served from memory. */
    const warmUp = (rates: Rates, rules: readonly RateRule[], slots: readonly SlotRule[] = []) =>
      eventually(async () => {
        const before = await scriptsRun();
        for (const { grant } of await many(rates, 10, rules, slots)) grant?.release();
        expect((await scriptsRun()) - before).toBeLessThan(8);
      });

    beforeAll(async () => {
      redis = await startRedis();
    });
    afterAll(async () => {
      await Promise.all(opened.map((rates) => rates.close()));
      await redis.close();
    });

    test('serve a busy key with a limit on each of several levels, and tell what is left', async () => {
      const rates = open();
      const rules = [
        one(newSubject(), 100_000),
        { subject: newSubject(), limit: 10_000_000, cost: 100 },
        one(newSubject(), 1_000_000),
      ];
      const slots = [{ subject: newSubject(), limit: 10_000 }];
      await warmUp(rates, rules, slots);
      const before = await scriptsRun();
      const verdicts = await many(rates, 500, rules, slots);
      expect((await scriptsRun()) - before).toBeLessThan(150);
      expect(verdicts.every(({ allowed }) => allowed)).toBe(true);
      const left = verdicts.at(-1)?.states.map(({ remaining }) => remaining) ?? [];
      expect(left[0]).toBeLessThanOrEqual(100_000 - 500);
      expect(left[0]).toBeGreaterThan(80_000);
      expect(left[2]).toBeLessThanOrEqual(1_000_000 - 500);
      for (const { grant } of verdicts) grant?.release();
    });

    test('of one gateway leave all that it does not use to the others, and are counted once', async () => {
      const [here, there] = [open(), open()];
      const [requests, running] = [one(newSubject(), 400), { subject: newSubject(), limit: 300 }];
      await warmUp(here, [], [running]);
      const first = await many(here, 20, [requests], [running]);
      expect(first.every(({ allowed }) => allowed)).toBe(true);
      const others = await many(there, 280, [requests], [running]);
      expect(others.filter(({ allowed }) => allowed)).toHaveLength(280);
      expect(await there.take([requests], [running])).toMatchObject({
        allowed: false,
        exceeded: running.subject,
      });
      first[0]?.grant?.release();
      await eventually(async () =>
        expect(await there.take([requests], [running])).toMatchObject({ allowed: true }),
      );
      expect(await here.take([requests], [running])).toMatchObject({ allowed: false });
      const again = await many(there, 99, [requests], []);
      expect(again.filter(({ allowed }) => allowed)).toHaveLength(99);
      expect(await here.take([requests])).toMatchObject({ allowed: false, exceeded: requests.subject });
    });

    test('of a process that was killed are free when their lease is over, and keep no further call waiting', async () => {
      const rates = open();
      const slots = { subject: newSubject(), limit: 2 };
      const now = async (): Promise<number> => {
        const [seconds, rest] = (await redis.command('TIME')) as [string, string];
        return Number(seconds) * 1_000 + Number(rest) / 1_000;
      };
      const end = Math.ceil((await now()) + 1_000);
      await redis.command('ZADD', keyOf(slots.subject), String(end), 'dead:1:0', String(end), 'dead:1:1');
      await redis.command('ZADD', holdersOf(slots.subject), String(end + 60_000), 'dead');
      expect(await rates.take([], [slots])).toMatchObject({ allowed: false, exceeded: slots.subject });
      expect(await redis.command('ZSCORE', holdersOf(slots.subject), 'dead')).toBeNull();
      await eventually(async () => {
        const verdict = await rates.take([], [slots]);
        expect(verdict.allowed).toBe(true);
        verdict.grant?.release();
      });
      expect(await now()).toBeGreaterThan(end);
    });

    test('are given back when a gateway closes', async () => {
      const [here, there] = [open(), open()];
      const requests = one(newSubject(), 1_000);
      const running = { subject: newSubject(), limit: 100 };
      await warmUp(here, [], [running]);
      await many(here, 10, [requests], [running]);
      await here.close();
      expect(await redis.command('EXISTS', keyOf(running.subject))).toBe(0);
      const { states } = await there.take([requests]);
      expect(states[0]?.remaining).toBe(989);
    });

    test('are not used any more when the connection is lost', async () => {
      const own = await startRedis();
      const rates = openRates({ url: own.url, whenDown: 'refuse' }, () => {}, { lease: 1_500 });
      try {
        const slots = { subject: newSubject(), limit: 1_000 };
        await eventually(async () => {
          const verdicts = await many(rates, 10, [], [slots]);
          for (const { grant } of verdicts) grant?.release();
          expect(await own.command('EXISTS', holdersOf(slots.subject))).toBe(1);
        });
        await own.kill();
        await eventually(() => rates.state === 'degraded');
        expect(await rates.take([], [slots])).toMatchObject({ allowed: false, degraded: true });
        await own.start();
        await eventually(async () => expect(await rates.take([], [slots])).toMatchObject({ allowed: true }));
        expect(await own.command('ZCARD', keyOf(slots.subject))).toBe(1);
      } finally {
        await rates.close();
        await own.close();
      }
    });

    test('are counted by simulations exactly as by Redis', async () => {
      const link = new SharedLink({
        store: { url: redis.url },
        prefix: 'sluice:{rates}:',
        scripts: [],
        report: () => {},
        onUp: () => {},
      });
      const start = 1_800_000_000_000;
      /** The script at this time of the store's clock. */
      const at = ({ text }: Script, now: number): Script =>
        script(
          text.replace("redis.call('TIME')", `{ '${Math.floor(now / 1_000)}', '${(now % 1_000) * 1_000}' }`),
        );
      const step = fc.record({
        pause: fc.integer({ min: 0, max: 3_000 }),
        kind: fc.constantFrom('take', 'take', 'take', 'give', 'renew', 'left' as const),
        process: fc.constantFrom('a', 'b'),
        numbers: fc.array(fc.integer({ min: 0, max: 12 }), { minLength: 9, maxLength: 9 }),
      });
      try {
        await fc.assert(
          fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 30 }), async (steps) => {
            const memory = new MemoryRedis(() => start * 1_000);
            const [minutes, running] = [newSubject(), newSubject()];
            const both = [keyOf(minutes), keyOf(running), holdersOf(minutes), holdersOf(running)];
            let now = start;
            for (const [index, { pause, kind, process, numbers }] of steps.entries()) {
              now += pause;
              const [limit, cost, ahead, slots, more, amount] = numbers.map((number) => String(number));
              const slice = String(Math.floor(now / 1_000) - (numbers[6] ?? 0));
              const [used, keys, values]: readonly [Script, readonly string[], readonly string[]] = {
                take: [
                  takeScript,
                  both,
                  [
                    '1000',
                    '600000',
                    '1',
                    process,
                    String(index),
                    `${limit}0`,
                    cost,
                    ahead,
                    `${slots}0`,
                    '1',
                    more,
                  ],
                ] as const,
                give: [
                  giveBackScript,
                  [keyOf(minutes), keyOf(minutes), keyOf(running), holdersOf(running)],
                  ['1000', process, '1', '1', '1', '1', slice, amount, cost, '2', `${limit}:0`, `${slots}:1`],
                ] as const,
                renew: [
                  renewScript,
                  [keyOf(running), holdersOf(running)],
                  ['600000', process, '1', cost === '1' ? '1' : '0', '2', `${limit}:0`, `${slots}:1`],
                ] as const,
                left: [holdersScript, [holdersOf(minutes), holdersOf(running)], ['0', 'a', 'b']] as const,
              }[kind].map((part) => (Array.isArray(part) ? part.map(String) : part)) as never;
              // oxlint-disable-next-line no-await-in-loop -- in order
              const real = await link.run<unknown>(at(used, now), keys, values);
              expect(memory.run(at(used, now).text, keys, values)).toEqual(
                Array.isArray(real) ? real : [real],
              );
            }
          }),
          { numRuns: 40 },
        );
      } finally {
        link.close();
      }
    });
  },
);
