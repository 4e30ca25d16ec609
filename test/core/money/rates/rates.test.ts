import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { MemoryRates } from '../../../../core/money/rates/memory.ts';
import { openRates } from '../../../../core/money/rates/open.ts';
import { type Rates, type SharedSettings } from '../../../../core/money/rates/index.ts';
import { eventually } from '../../../support/eventually.ts';
import { patience } from '../../../support/patience.ts';
import { newSubject, one, ratesSuite } from '../../../suites/rates-suite.ts';
import { startRedis, withoutRedis, type TestRedis } from '../../../support/redis.ts';

const times = { minute: 1_200, lease: 600 };

const pass = (time: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, time));

async function until(condition: () => boolean, most = patience.wait): Promise<void> {
  const end = performance.now() + most;
  while (!condition()) {
    if (performance.now() > end) throw new Error('It did not come true.');
    await pass(10);
  }
}

describe('in memory', () => {
  ratesSuite(() => openRates({ url: 'memory:', whenDown: 'local' }, () => {}, times));

  test('no sixty seconds hold more than the limit, and no call is refused that has 61 of them free', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    onTestFinished(() => void vi.useRealTimers());
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 20 }),
        fc.array(
          fc.record({ pause: fc.integer({ min: 0, max: 30_000 }), cost: fc.integer({ min: 1, max: 25 }) }),
          {
            minLength: 1,
            maxLength: 60,
          },
        ),
        async (limit, asked) => {
          const rates = new MemoryRates();
          const taken: { at: number; cost: number }[] = [];
          const within = (now: number, length: number): number =>
            taken.filter(({ at }) => now - at < length).reduce((sum, { cost }) => sum + cost, 0);
          for (const { pause, cost } of asked) {
            vi.advanceTimersByTime(pause);
            const now = performance.now();
            const counts = Math.min(cost, limit);
            const { allowed, retryMs } = await rates.take([{ subject: 's', limit, cost }]);
            if (allowed) {
              taken.push({ at: now, cost: counts });
              expect(within(now, 60_000)).toBeLessThanOrEqual(limit);
            } else {
              expect(within(now, 61_000) + counts).toBeGreaterThan(limit);
              expect(retryMs).toBeGreaterThan(0);
              expect(retryMs).toBeLessThanOrEqual(61_000);
            }
          }
        },
      ),
    );
  });

  test('subjects without number are forgotten, the idlest first', () => {
    const rates = new MemoryRates();
    for (let number = 0; number < 60_000; number += 1) rates.takeNow([one(`s:${number}`, 1)], []);
    expect(rates.takeNow([one('s:59999', 1)], []).allowed).toBe(false);
    expect(rates.takeNow([one('s:0', 1)], []).allowed).toBe(true);
  });
});

const missing = withoutRedis();

describe.skipIf(missing !== undefined)(`in Redis${missing === undefined ? '' : ` (${missing})`}`, () => {
  let redis: TestRedis;
  const opened: Rates[] = [];
  const open = (
    whenDown: SharedSettings['whenDown'] = 'local',
    report: (error?: Error) => void = () => {},
  ): Rates => {
    const rates = openRates({ url: redis.url, whenDown }, report, times);
    opened.push(rates);
    return rates;
  };

  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(async () => {
    await Promise.all(opened.map((rates) => rates.close()));
    await redis.close();
  });

  ratesSuite(open);

  test('several gateways count together', async () => {
    const gateways = [open(), open(), open(), open()];
    const subject = newSubject();
    const verdicts = await Promise.all(
      Array.from({ length: 80 }, (_, index) => gateways[index % 4]?.take([one(subject, 30)])),
    );
    expect(verdicts.filter((verdict) => verdict?.allowed === true)).toHaveLength(30);
  });

  test('slots of a gateway that died are free when their leases have passed', async () => {
    const subject = newSubject();
    const rates = open();
    const take = () => rates.take([], [{ subject: `${subject}:calls`, limit: 1 }]);
    const now = async () => Number(((await redis.command('TIME')) as [string, string])[0]) * 1_000;
    // What a killed process leaves behind: a lease that nobody renews.
    const leave = (end: number) =>
      redis.command('ZADD', `sluice:{rates}:${subject}:calls`, String(end), 'dead:1');
    await leave((await now()) + 600_000);
    expect((await take()).allowed).toBe(false);
    await leave(await now());
    const second = await take();
    expect(second.allowed).toBe(true);
    second.grant?.release();
  });

  test('slots are given back when a gateway closes', async () => {
    const subject = newSubject();
    const [first, second] = [open(), open()];
    await first.take([], [{ subject, limit: 1 }]);
    expect((await second.take([], [{ subject, limit: 1 }])).allowed).toBe(false);
    await first.close();
    const verdict = await second.take([], [{ subject, limit: 1 }]);
    expect(verdict.allowed).toBe(true);
    verdict.grant?.release();
  });

  test('nothing is left in the store when nobody calls any more', async () => {
    const rates = open();
    const subject = newSubject();
    await rates.take([one(subject, 10)], [{ subject: `${subject}:calls`, limit: 3 }]).then(({ grant }) => {
      grant?.release();
    });
    expect(await redis.command('EXISTS', `sluice:{rates}:${subject}`)).toBe(1);
    await eventually(async () =>
      expect(
        await redis.command('EXISTS', `sluice:{rates}:${subject}`, `sluice:{rates}:${subject}:calls`),
      ).toBe(0),
    );
  });

  test('a store that forgets its scripts is given them again', async () => {
    const rates = open();
    const subject = newSubject();
    await rates.take([one(subject, 10)]);
    await redis.command('SCRIPT', 'FLUSH');
    const { states, degraded } = await rates.take([one(subject, 10)]);
    expect(states[0]?.remaining).toBe(8);
    expect(degraded).toBeUndefined();
  });

  describe('that fails', () => {
    let own: TestRedis;
    beforeAll(async () => {
      own = await startRedis();
    });
    afterAll(() => own.close());

    const openOwn = (whenDown: SharedSettings['whenDown']) => {
      const reports: (Error | undefined)[] = [];
      const rates = openRates({ url: own.url, whenDown }, (error) => reports.push(error), times);
      onTestFinished(() => rates.close());
      return { rates, reports };
    };
    /** The verdict. That there is one says that nobody waits for a store that is gone or hangs. */
    const verdictOn = (rates: Rates, subject: string, limit = 2) => rates.take([one(subject, limit)]);

    test('gone and back: each process counts for itself meanwhile, says so, and counts together again', async () => {
      const { rates, reports } = openOwn('local');
      const subject = newSubject();
      expect(await verdictOn(rates, subject)).toMatchObject({ allowed: true });
      expect(rates.state).toBe('ok');
      const permit = await rates.take([], [{ subject: `${subject}:calls`, limit: 1 }]);
      await own.kill();
      const degraded = [];
      for (let call = 0; call < 4; call += 1) degraded.push(await verdictOn(rates, subject));
      expect(degraded.map(({ allowed }) => allowed)).toEqual([true, true, false, false]);
      expect(degraded.every((verdict) => verdict.degraded === true)).toBe(true);
      expect(rates.state).toBe('degraded');
      await own.start();
      await until(() => rates.state === 'ok');
      const after = await verdictOn(rates, subject);
      expect(after).toMatchObject({ allowed: true });
      expect(after.degraded).toBeUndefined();
      // A call that has been running all the time holds its slot in the empty store too.
      await eventually(async () => {
        const { allowed, grant } = await rates.take([], [{ subject: `${subject}:calls`, limit: 1 }]);
        grant?.release();
        expect(allowed).toBe(false);
      });
      permit.grant?.release();
      expect(reports.map((report) => report instanceof Error)).toEqual([true, false]);
      expect(String(reports[0])).not.toContain('secret');
    });

    test('hanging: no call waits for it to come back; refused when the operator wants that', async () => {
      const { rates, reports } = openOwn('refuse');
      const subject = newSubject();
      expect(await verdictOn(rates, subject, 1_000)).toMatchObject({ allowed: true });
      own.pause();
      onTestFinished(() => own.resume());
      const first = await Promise.all(Array.from({ length: 50 }, () => verdictOn(rates, subject, 1_000)));
      expect(first.every(({ allowed, degraded, retryMs }) => !allowed && degraded && retryMs > 0)).toBe(true);
      for (let call = 0; call < 100; call += 1) await verdictOn(rates, subject, 1_000);
      await pass(2_500);
      expect(reports).toHaveLength(1);
      own.resume();
      await until(() => rates.state === 'ok');
      expect(await verdictOn(rates, subject, 1_000)).toMatchObject({ allowed: true });
      expect(reports).toHaveLength(2);
    });

    test.each([
      ['shorter than the time for an answer', [250]],
      ['a little longer', [450]],
      ['much longer', [900]],
      ['again and again', [300, 300, 300, 300]],
    ])('an answer counts though this process stood still: %s', async (_title, stills) => {
      const { rates, reports } = openOwn('refuse');
      const subject = newSubject();
      await verdictOn(rates, subject, 10);
      const pending = rates.take([one(subject, 10)]);
      await Promise.resolve();
      for (const still of stills) {
        const end = performance.now() + still;
        while (performance.now() < end);
        await new Promise((resolve) => setImmediate(resolve));
      }
      expect(await pending).toMatchObject({ allowed: true });
      expect(reports).toEqual([]);
    });

    test('a gateway that stands still while it connects counts in the store all the same', async () => {
      const { rates, reports } = openOwn('refuse');
      const end = performance.now() + 1_200;
      while (performance.now() < end);
      const verdict = await verdictOn(rates, newSubject());
      expect(verdict).toMatchObject({ allowed: true });
      expect(verdict.degraded).toBeUndefined();
      expect(reports).toEqual([]);
    });

    test('an address that makes no sense is complained of, and ends nothing', async () => {
      const reports: (Error | undefined)[] = [];
      const shared = { url: 'redis://127.0.0.1/no-number', whenDown: 'refuse' } as const;
      const rates = openRates(shared, (error) => reports.push(error), times);
      onTestFinished(() => rates.close());
      expect(await verdictOn(rates, newSubject())).toMatchObject({ allowed: false, degraded: true });
      expect(reports).toHaveLength(1);
    });

    test('hanging at the start: the gateway starts all the same', async () => {
      own.pause();
      onTestFinished(() => own.resume());
      const { rates } = openOwn('local');
      expect(await verdictOn(rates, newSubject())).toMatchObject({ allowed: true, degraded: true });
      own.resume();
      await until(() => rates.state === 'ok');
    });

    test('a store that cannot be written is not used, and one complaint is enough', async () => {
      const { rates, reports } = openOwn('local');
      await verdictOn(rates, newSubject());
      await own.command('CONFIG', 'SET', 'maxmemory', '1');
      onTestFinished(async () => void (await own.command('CONFIG', 'SET', 'maxmemory', '0')));
      expect(await verdictOn(rates, newSubject())).toMatchObject({ allowed: true, degraded: true });
      await pass(1_300);
      expect(rates.state).toBe('degraded');
      expect(reports).toHaveLength(1);
      await own.command('CONFIG', 'SET', 'maxmemory', '0');
      await until(() => rates.state === 'ok');
    });

    test('releases and corrections while it is gone are forgotten quietly', async () => {
      const { rates } = openOwn('local');
      const subject = newSubject();
      const { grant } = await rates.take([one(subject, 5)], [{ subject: `${subject}:calls`, limit: 1 }]);
      await own.kill();
      grant?.correct(subject, 3);
      grant?.release();
      await until(() => rates.state === 'degraded');
      await own.start();
      await until(() => rates.state === 'ok');
      expect((await rates.take([], [{ subject: `${subject}:calls`, limit: 1 }])).allowed).toBe(true);
    });
  });
});
