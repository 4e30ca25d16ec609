import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { channelStanding, createHealth, openHealth } from '../../../../core/routing/health/index.ts';
import { type Health } from '../../../../core/sdk/health.ts';
import { redisSharing } from '../../../../core/routing/health/redis.ts';
import { OutcomeWindow } from '../../../../core/routing/health/outcome-window.ts';
import type { HealthSettings } from '../../../../core/settings/routing.ts';
import {
  enter,
  errors,
  fail,
  healthSuite,
  newTarget,
  settingsOf,
  sharedHealthSuite,
  targetOf,
  type Clock,
} from '../../../suites/health-suite.ts';
import { startRedis, withoutRedis, type TestRedis } from '../../../support/redis.ts';
import { tries } from '../../../support/tries.ts';

const pass = (time: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, time));

describe('in memory', () => {
  healthSuite((settings, clock) => createHealth(settings, { now: () => clock.now }));

  test('models without number, named by strangers, are forgotten, the oldest first', () => {
    const health = createHealth(settingsOf());
    const { id } = newTarget().channel;
    for (let number = 0; number < 5_000; number += 1)
      enter(health, targetOf(id, 'first', `m${number}`)).failed(errors.limited(60));
    expect(health.report().length).toBeLessThanOrEqual(501);
    expect(health.standing(targetOf(id, 'first', 'm4999'))).toBe('cooling');
    expect(health.standing(targetOf(id, 'first', 'm0'))).toBe('up');
    const endless = targetOf(id, 'first', 'x'.repeat(10_000));
    enter(health, endless).failed(errors.limited(60));
    expect(health.waitMs(endless)).toBe(0);
  });

  test('the best and the worst key of a channel are told apart', () => {
    const health = createHealth(settingsOf());
    const target = newTarget();
    const channel = { id: target.channel.id, keys: ['first', 'second'].map((id, index) => ({ id, index })) };
    expect(channelStanding(health.report(), channel)).toEqual({ best: 'up', worst: 'up' });
    enter(health, target).failed(errors.refused());
    expect(channelStanding(health.report(), channel)).toEqual({ best: 'up', worst: 'resting' });
    enter(health, targetOf(channel.id, 'second')).failed(errors.refused());
    expect(channelStanding(health.report(), channel)).toEqual({ best: 'resting', worst: 'resting' });
    const brother = { ...channel, id: newTarget().channel.id };
    expect(channelStanding(health.report(), brother)).toEqual({ best: 'up', worst: 'up' });
  });

  test('a model that is asked for too often is reported until it has cooled down', () => {
    const clock: Clock = { now: 0 };
    const health = createHealth(settingsOf(), { now: () => clock.now });
    const target = newTarget();
    const models = (): unknown[] => health.report().filter(({ model }) => model !== undefined);
    enter(health, target).failed(errors.limited(5));
    expect(models()).toMatchObject([{ channel: target.channel.id, model: 'model', standing: 'cooling' }]);
    clock.now += 5_001;
    expect(models()).toEqual([]);
    enter(health, target).succeeded();
    expect(models()).toEqual([]);
  });
});

describe('in memory, to the millisecond', () => {
  const exact = (settings: Partial<HealthSettings> = {}, random = 0.5) => {
    const clock: Clock = { now: 1_000_000 };
    const health = createHealth(settingsOf(settings), { now: () => clock.now, random: () => random });
    return { clock, health, target: newTarget() };
  };
  const other = ({ channel }: ReturnType<typeof newTarget>, model = 'other') =>
    targetOf(channel.id, 'first', model);

  test('a rest is a fifth shorter or longer by chance, so that gateways part', () => {
    for (const [random, rest] of [
      [0, 8_000],
      [0.5, 10_000],
      [1, 12_000],
    ] as const) {
      const { health, target } = exact({}, random);
      fail(health, target);
      expect([random, health.waitMs(target)]).toEqual([random, rest]);
    }
  });

  test('a probe before its time may come after a tenth of the rest, a second at most', () => {
    for (const [rest, gap] of [
      [1_000, 100],
      [60_000, 1_000],
    ] as const) {
      const { health, clock, target } = exact({ rest });
      fail(health, target);
      clock.now += gap - 1;
      expect([rest, health.enter(target)]).toEqual([rest, undefined]);
      clock.now += 1;
      enter(health, target);
    }
  });

  test('a rest that is over lets a probe in, however lately one came before its time', () => {
    const { health, clock, target } = exact();
    fail(health, target);
    clock.now += 9_500;
    enter(health, target).failed(errors.failed());
    expect(health.waitMs(target)).toBe(500);
    clock.now += 500;
    expect(health.waitMs(target)).toBe(0);
    enter(health, target).failed(errors.failed());
    expect(health.waitMs(target)).toBe(20_000);
  });

  test('a key whose probe is refused rests as long as refused keys do, and a refused one no shorter for another failure', () => {
    const early = exact();
    fail(early.health, early.target);
    early.clock.now += 2_000;
    enter(early.health, early.target).failed(errors.refused());
    expect(early.health.waitMs(early.target)).toBeGreaterThanOrEqual(60_000);
    const { health, clock, target } = exact();
    enter(health, target).failed(errors.refused());
    clock.now += 60_000;
    enter(health, target).failed(errors.failed());
    expect(health.waitMs(target)).toBe(120_000);
  });

  test('calls that are refused late, while their key rests for that, do not prolong its rest', () => {
    const { health, clock, target } = exact();
    const late = enter(health, target);
    enter(health, target).failed(errors.refused());
    clock.now += 1_000;
    late.failed(errors.refused());
    expect(health.waitMs(target)).toBe(59_000);
  });

  test('calls that hear late that their model is unknown do not prolong its rest; each probe in vain doubles it', () => {
    const { health, clock, target } = exact();
    const late = enter(health, target);
    enter(health, target).failed(errors.noModel());
    clock.now += 1_000;
    late.failed(errors.noModel());
    expect(health.waitMs(target)).toBe(59_000);
    clock.now += 59_000;
    enter(health, target).failed(errors.noModel());
    expect([health.standing(target), health.waitMs(target)]).toEqual(['resting', 120_000]);
  });

  test('a limit ends the rest of an unknown model where its probe meets it, and where a late call does not', () => {
    const probed = exact();
    enter(probed.health, probed.target).failed(errors.noModel());
    probed.clock.now += 60_000;
    enter(probed.health, probed.target).failed(errors.limited(5));
    expect([probed.health.standing(probed.target), probed.health.waitMs(probed.target)]).toEqual([
      'cooling',
      5_000,
    ]);
    probed.clock.now += 5_000;
    expect(probed.health.standing(probed.target)).toBe('up');
    const { health, clock, target } = exact();
    const late = enter(health, target);
    enter(health, target).failed(errors.noModel());
    late.failed(errors.limited(5));
    clock.now += 5_000;
    expect([health.standing(target), health.waitMs(target)]).toEqual(['resting', 55_000]);
  });

  test('a shorter limit does not shorten a longer one', () => {
    const { health, target } = exact();
    const late = enter(health, target);
    enter(health, target).failed(errors.limited(30));
    late.failed(errors.limited(1));
    expect(health.waitMs(target)).toBe(30_000);
  });

  test('a limit that is over leaves those of other models', () => {
    const { health, clock, target } = exact();
    enter(health, target).failed(errors.limited(5));
    enter(health, other(target)).failed(errors.limited(30));
    clock.now += 5_000;
    enter(health, target).succeeded();
    expect([health.standing(target), health.standing(other(target))]).toEqual(['up', 'cooling']);
    expect(health.report().filter(({ model }) => model !== undefined)).toHaveLength(1);
  });

  test('the longest name of a model that is remembered has 200 characters, and longer ones harm nobody', () => {
    const { health, target } = exact();
    const [longest, longer] = [other(target, 'x'.repeat(200)), other(target, 'x'.repeat(201))];
    for (const one of [longest, longer]) enter(health, one).failed(errors.noModel());
    expect([health.standing(longest), health.standing(longer)]).toEqual(['resting', 'up']);
  });

  test('keys without number are no burden: those beyond ten thousand are not watched', () => {
    const { health } = exact();
    for (let number = 0; number < 9_999; number += 1) enter(health, targetOf('many', `k${number}`)).left();
    const [last, beyond] = [targetOf('many', 'last'), targetOf('many', 'beyond')];
    for (const one of [last, beyond]) enter(health, one).failed(errors.refused());
    expect([health.standing(last), health.standing(beyond)]).toEqual(['resting', 'up']);
  });

  test('a report says when calls may go there again, while that is to come, and forgets failures with the window', () => {
    const { health, clock, target } = exact();
    const reported = () => health.report().find(({ channel }) => channel === target.channel.id);
    fail(health, target, 2);
    expect(reported()).toMatchObject({ standing: 'up', failures: 2 });
    expect(reported()).not.toHaveProperty('until');
    fail(health, target, 1);
    const now = vi.spyOn(Date, 'now').mockReturnValue(5_000_000);
    onTestFinished(() => now.mockRestore());
    expect(reported()?.until).toBe(5_010_000);
    clock.now += 10_000;
    expect(reported()).not.toHaveProperty('until');
    clock.now += 60_000;
    expect(reported()).toMatchObject({ standing: 'resting', failures: 0 });
  });

  test('a tally that was cleared counts from nothing, also when its slices come round again', () => {
    const tally = new OutcomeWindow(1_000);
    for (let count = 0; count < 5; count += 1) tally.add(0, true);
    tally.clear();
    tally.add(100, true);
    expect([tally.callsSince(100), tally.failures(100)]).toEqual([1, 1]);
    expect([tally.callsSince(1_050), tally.failures(1_050)]).toEqual([1, 1]);
    expect(tally.callsSince(1_100)).toBe(0);
    tally.add(1_100, true);
    expect(tally.failures(2_100)).toBe(0);
  });
});

/** One thing that may happen, as a law test draws it. */
type Step =
  | { readonly do: 'pass'; readonly time: number }
  | { readonly do: 'enter'; readonly model: number }
  | {
      readonly do: 'end';
      readonly attempt: number;
      readonly how: keyof typeof errors | 'ok' | 'left' | 'answered';
    };

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    fc.record({ do: fc.constant('pass' as const), time: fc.integer({ min: 0, max: 40_000 }) }),
    fc.record({ do: fc.constant('enter' as const), model: fc.integer({ min: 0, max: 2 }) }),
    fc.record({
      do: fc.constant('end' as const),
      attempt: fc.nat(),
      how: fc.constantFrom(
        'failed',
        'failed',
        'failed',
        'cut',
        'overloaded',
        'refused',
        'limited',
        'noModel',
        'badRequest',
        'ok',
        'left',
        'answered',
      ),
    }),
  ),
  { maxLength: 120 },
);

describe('whatever happens', () => {
  test('there are never two probes of one place, nothing goes there while it cools, and in the end it can be asked again', () => {
    fc.assert(
      fc.property(steps, (drawn) => {
        const clock: Clock = { now: 0 };
        const health = createHealth(settingsOf(), { now: () => clock.now });
        const open: { attempt: NonNullable<ReturnType<Health['enter']>>; probes: boolean }[] = [];
        let coolUntil = [0, 0, 0];
        for (const step of drawn) {
          if (step.do === 'pass') clock.now += step.time;
          else if (step.do === 'enter') {
            const target = targetOf('law', 'first', String(step.model));
            const before = health.standing(target);
            const attempt = health.enter(target);
            if (attempt === undefined) {
              expect(health.waitMs(target)).toBeGreaterThan(0);
            } else {
              expect(before).not.toBe('probing');
              expect(before).not.toBe('cooling');
              expect(clock.now).toBeGreaterThanOrEqual(coolUntil[step.model] ?? 0);
              const probes = before === 'resting';
              if (probes) {
                expect(health.standing(target)).toBe('probing');
                expect(health.enter(target)).toBeUndefined();
              }
              open.push({ attempt, probes });
              models.set(attempt, step.model);
            }
          } else if (open.length > 0) {
            const [taken] =
              step.how === 'answered'
                ? [open[step.attempt % open.length]]
                : open.splice(step.attempt % open.length, 1);
            if (taken === undefined) continue;
            const { attempt: ended } = taken;
            if (step.how === 'ok') ended.succeeded();
            else if (step.how === 'left') ended.left();
            else if (step.how === 'answered') ended.answered();
            else {
              ended.failed(errors[step.how]());
              const patience = { limited: 5_000, overloaded: 7_000 }[step.how as string];
              const model = models.get(ended) ?? 0;
              if (patience !== undefined)
                coolUntil = coolUntil.map((until, index) =>
                  index === model ? Math.max(until, clock.now + patience) : until,
                );
            }
          }
        }
        for (const { attempt } of open) attempt.left();
        clock.now += 400_000;
        for (const model of [0, 1, 2]) {
          const target = targetOf('law', 'first', String(model));
          expect(health.waitMs(target)).toBe(0);
          enter(health, target).succeeded();
          expect(health.standing(target)).toBe('up');
        }
      }),
      { numRuns: tries(300) },
    );
  });

  test('it rests when enough have failed and at least half did, and not before', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ pause: fc.integer({ min: 0, max: 20_000 }), fails: fc.boolean() }), {
          maxLength: 60,
        }),
        fc.integer({ min: 1, max: 8 }),
        (drawn, failures) => {
          const clock = { now: 0 };
          const health = createHealth(settingsOf({ failures }), { now: () => clock.now });
          const target = targetOf('law');
          const seen: { at: number; fails: boolean }[] = [];
          for (const { pause, fails } of drawn) {
            clock.now += pause;
            const attempt = enter(health, target);
            seen.push({ at: clock.now, fails });
            if (fails) attempt.failed(errors.failed());
            else attempt.succeeded();
            // The window moves in tenths.
            const [short, long] = [54_000, 60_000].map((window) => {
              const slice = 6_000;
              const first = (Math.floor(clock.now / slice) - window / slice + 1) * slice;
              const within = seen.filter(({ at }) => at >= first);
              return { all: within.length, failed: within.filter((one) => one.fails).length };
            });
            if (health.standing(target) === 'resting') {
              expect(long?.failed).toBeGreaterThanOrEqual(failures);
              expect((long?.failed ?? 0) * 2).toBeGreaterThanOrEqual(long?.all ?? 0);
              return;
            }
            if (fails)
              expect((long?.failed ?? 0) < failures || (long?.failed ?? 0) * 2 < (long?.all ?? 0)).toBe(true);
            expect(short?.all).toBeLessThanOrEqual(long?.all ?? 0);
          }
        },
      ),
      { numRuns: tries(300) },
    );
  });

  test('a tally is what was added within its window', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ pause: fc.integer({ min: 0, max: 900 }), fails: fc.boolean() }), {
          maxLength: 80,
        }),
        (drawn) => {
          const tally = new OutcomeWindow(1_000);
          let now = 0;
          const seen: { at: number; fails: boolean }[] = [];
          for (const { pause, fails } of drawn) {
            now += pause;
            tally.add(now, fails);
            seen.push({ at: now, fails });
            const within = seen.filter(({ at }) => Math.floor(at / 100) > Math.floor(now / 100) - 10);
            expect(tally.callsSince(now)).toBe(within.length);
            expect(tally.failures(now)).toBe(within.filter((one) => one.fails).length);
          }
        },
      ),
    );
  });
});

const models = new WeakMap<object, number>();

const missing = withoutRedis();

describe.skipIf(missing !== undefined)(`in Redis${missing === undefined ? '' : ` (${missing})`}`, () => {
  let redis: TestRedis;
  const opened: Health[] = [];
  const started = (health: Health): Health => {
    opened.push(health);
    return health;
  };
  const share = (settings: Partial<HealthSettings> = {}): Health =>
    started(openHealth(settingsOf(settings), { url: redis.url }));
  /** Gateways that hear each other. */
  const several = async (count: number, settings?: Partial<HealthSettings>): Promise<Health[]> => {
    const all = Array.from({ length: count }, () => share(settings));
    await expect.poll(() => all.every(({ sharing }) => sharing === 'ok')).toBe(true);
    return all;
  };

  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(async () => {
    await Promise.all(opened.map((health) => health.close()));
    await redis.close();
  });

  healthSuite((settings, clock) =>
    started(createHealth(settings, { now: () => clock.now, share: redisSharing({ url: redis.url }) })),
  );
  sharedHealthSuite(several);

  test('a gateway that starts later knows what the others know', async () => {
    const [one] = (await several(1)) as [Health];
    const target = newTarget();
    enter(one, target).failed(errors.refused());
    // What is told goes out by itself.
    await expect.poll(() => redis.command('HLEN', 'sluice:{health}:places')).toBeGreaterThan(0);
    const late = share();
    await expect.poll(() => late.standing(target)).toBe('resting');
  });

  test('one gateway at a time finds out', async () => {
    const all = await several(3, { rest: 300 });
    const target = newTarget();
    fail(all[0] as Health, target);
    for (const health of all) await expect.poll(() => health.standing(target)).toBe('resting');
    // Each is asked again and again; the first that is told to go probes and does not end.
    let probes = 0;
    const rounds = performance.now() + 2_000;
    while (performance.now() < rounds) {
      for (const health of all)
        if (health.waitMs(target) === 0 && health.enter(target) !== undefined) probes += 1;
      await pass(10);
    }
    expect(probes).toBe(1);
  });

  test('while the store is gone or hangs each goes on with what it knows, and nobody waits; then all is shared again', async () => {
    const [one, two] = (await several(2)) as [Health, Health];
    const [before, during] = [newTarget(), newTarget()];
    fail(one, before);
    await expect.poll(() => two.standing(before)).toBe('resting');
    redis.pause();
    try {
      fail(one, during);
      for (let count = 0; count < 1_000; count += 1) {
        one.waitMs(during);
        one.enter(during);
      }
      expect(one.standing(during)).toBe('resting');
      await expect.poll(() => one.sharing).toBe('degraded');
      expect(two.standing(before)).toBe('resting');
    } finally {
      redis.resume();
    }
    await redis.kill();
    await expect.poll(() => two.sharing).toBe('degraded');
    enter(two, newTarget()).succeeded();
    await redis.start();
    await expect.poll(() => [one.sharing, two.sharing]).toEqual(['ok', 'ok']);
    await expect.poll(() => two.standing(during)).toBe('resting');
    const late = share();
    await expect.poll(() => late.standing(before)).toBe('resting');
  });

  test('what no gateway has written is passed over', async () => {
    const [one, two] = (await several(2)) as [Health, Health];
    const places = 'sluice:{health}:places';
    const odd = [
      '',
      '[]',
      '["a"]',
      '["a","b"]',
      '{"a":1}',
      '["a","b","c"]',
      '["a","d"]',
      '["a","e"]',
      '["a","f"]',
      '["a","g"]',
      '[7,"h"]',
    ];
    const until = '9000000000000|9000000000000|';
    // JSON has numbers that are read as infinite.
    const endless = `${until}{"by":"x","rests":1e999,"base":1e999}`;
    const last = '"last":{"at":1,"code":"upstream_error","message":"broken"}';
    for (const [index, id] of odd.entries()) {
      await redis.command(
        'HSET',
        places,
        id,
        [
          '',
          'x',
          '1|2|',
          '1|2|{}',
          '9|9|{"rests":"x"}',
          '1|2|[]',
          endless,
          `${until}{"by":"x","rests":1,"base":"1",${last}}`,
          `${until}{"by":"x","rests":"1","base":1,${last}}`,
          `${until}{"by":"x","rests":-1,"base":1,${last}}`,
          `${until}{"by":"x","rests":1,"base":1,${last}}`,
        ][index] ?? '',
      );
      const revision = await redis.command('INCR', 'sluice:{health}:revision');
      await redis.command('ZADD', 'sluice:{health}:changes', String(revision), id);
    }
    const target = newTarget();
    fail(one, target);
    await expect.poll(() => two.standing(target)).toBe('resting');
    expect(two.report().some(({ channel }) => channel === 'a' || typeof channel !== 'string')).toBe(false);
  });

  test('what another gateway has written is heard, and of its reason only what is one', async () => {
    const [one] = (await several(1)) as [Health];
    const places = 'sluice:{health}:places';
    const state = '9000000000000|9000000000000|';
    // At once, as gateways write: a revision that is read before its change would hide the change.
    const script = `redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
      redis.call('ZADD', KEYS[2], redis.call('INCR', KEYS[3]), ARGV[1])`;
    const keys = [places, 'sluice:{health}:changes', 'sluice:{health}:revision'];
    const write = (id: string, rest: string): Promise<unknown> =>
      redis.command('EVAL', script, '3', ...keys, id, `${state}${rest}`);
    const last = { at: 5, code: 'upstream_error', message: 'broken' };
    await write(
      '["wrote","bad"]',
      JSON.stringify({ by: 'x', rests: 1, base: 9, last: { ...last, at: '5' } }),
    );
    await write(
      '["wrote","odd"]',
      JSON.stringify({ by: 'x', rests: 1, base: 9, last: { ...last, code: 5 } }),
    );
    await write('["wrote","none"]', JSON.stringify({ by: 'x', rests: 1, base: 9, last: 'broken' }));
    await write(
      '["wrote","nil"]',
      JSON.stringify({ by: 'x', rests: 1, base: 9, last: { ...last, message: 5 } }),
    );
    await write('["wrote","good"]', JSON.stringify({ by: 'x', rests: 1, base: 9, last }));
    const read = () => one.report().filter(({ channel }) => channel === 'wrote');
    await expect.poll(() => read().length).toBe(5);
    expect(read().map((breaker) => [breaker.key, breaker.standing, breaker.last])).toEqual([
      ['bad', 'resting', undefined],
      ['odd', 'resting', undefined],
      ['none', 'resting', undefined],
      ['nil', 'resting', undefined],
      ['good', 'resting', last],
    ]);
    await redis.command('DEL', places, 'sluice:{health}:changes');
  });
});
