import { expect, test } from 'vitest';
import type { Channel, Target } from '../../core/sdk/call.ts';
import { GatewayError } from '../../core/sdk/errors.ts';
import { upstreamError } from '../../core/formats/_shared/upstream-error/index.ts';
import type { Health, AttemptReport } from '../../core/sdk/health.ts';
import { healthSchema, type HealthSettings } from '../../core/settings/routing.ts';

/** A clock that a test moves by hand. */
export interface Clock {
  now: number;
}

/** Options for opening a driver. */
export type OpenHealth = (settings: HealthSettings, clock: Clock) => Health;

let channels = 0;

/** A target of a channel that no other test has used. */
export function newTarget(): Target {
  channels += 1;
  return targetOf(`channel-${process.pid}-${channels}`);
}

/** Returns a target of the same channel with another key or model. */
export function targetOf(channel: string, key = 'first', model = 'model'): Target {
  return {
    channel: { id: channel, keys: [{ id: key, index: 0 }] } as unknown as Channel,
    key: { id: key, index: 0 },
    model,
    traits: {},
  };
}

/** Errors as they come from providers. */
export const errors = {
  failed: () => upstreamError(500, '{"error":{"message":"it broke"}}'),
  overloaded: () => upstreamError(529, '', { 'retry-after': '7' }),
  cut: () => new GatewayError('upstream_cut', 'cut', { origin: 'upstream' }),
  refused: () => upstreamError(401, '{"error":{"message":"Incorrect API key provided"}}'),
  noCredit: () => upstreamError(429, '{"error":{"code":"insufficient_quota","message":"no credit"}}'),
  limited: (seconds?: number) =>
    upstreamError(
      429,
      '{"error":{"message":"slow down"}}',
      seconds === undefined ? {} : { 'retry-after': String(seconds) },
    ),
  noModel: () => upstreamError(404, '{"error":{"message":"The model `x` does not exist"}}'),
  noThing: () => upstreamError(404, '{"error":{"message":"No item with id vid_1"}}'),
  badRequest: () => upstreamError(400, '{"error":{"message":"bad field"}}'),
} as const;

/** Settings with short names for what tests count on. */
export function settingsOf(settings: Partial<HealthSettings> = {}): HealthSettings {
  return { ...healthSchema.parse({ failures: 3 }), ...settings };
}

/** Enters, or fails. */
export function enter(health: Health, target: Target): AttemptReport {
  const attempt = health.enter(target);
  if (attempt === undefined) throw new Error('It may not be asked.');
  return attempt;
}

/** Lets a target fail until it rests. */
export function fail(health: Health, target: Target, times = 3): void {
  for (let count = 0; count < times; count += 1) enter(health, target).failed(errors.failed());
}

/** Contract of every driver for one gateway, whatever it shares. */
export function healthSuite(open: OpenHealth): void {
  const start = (settings?: Partial<HealthSettings>): { health: Health; clock: Clock; target: Target } => {
    const clock = { now: 1_000_000 };
    return { health: open(settingsOf(settings), clock), clock, target: newTarget() };
  };

  test('what nobody has asked yet may be asked', () => {
    const { health, target } = start();
    expect(health.waitMs(target)).toBe(0);
    expect(health.standing(target)).toBe('up');
    expect(health.report().filter(({ channel }) => channel === target.channel.id)).toEqual([]);
  });

  test.each(['failed', 'overloaded', 'cut'] as const)(
    'a key that %s often enough is left alone, its brother is not',
    (kind) => {
      const { health, target } = start();
      const brother = targetOf(target.channel.id, 'second');
      for (let count = 0; count < 3; count += 1) {
        // Another model each time: what is asked is the key.
        const other = targetOf(target.channel.id, 'first', `model-${count}`);
        expect(health.waitMs(other)).toBe(0);
        enter(health, other).failed(errors[kind]());
      }
      expect(health.waitMs(target)).toBeGreaterThanOrEqual(8_000);
      expect(health.waitMs(target)).toBeLessThanOrEqual(12_000);
      expect(health.standing(target)).toBe('resting');
      expect(health.enter(target)).toBeUndefined();
      expect(health.waitMs(brother)).toBe(0);
    },
  );

  test('a busy key that fails now and then goes on', () => {
    const { health, clock, target } = start();
    for (let count = 0; count < 500; count += 1) {
      clock.now += 10;
      const attempt = enter(health, target);
      if (count % 50 === 0) attempt.failed(errors.failed());
      else attempt.succeeded();
    }
    expect(health.waitMs(target)).toBe(0);
    expect(health.report().find(({ channel }) => channel === target.channel.id)).toMatchObject({
      standing: 'up',
      failures: 10,
      last: { code: 'upstream_error', message: 'it broke' },
    });
  });

  test('failures further apart than the window are none', () => {
    const { health, clock, target } = start();
    for (let count = 0; count < 10; count += 1) {
      enter(health, target).failed(errors.failed());
      clock.now += 31_000;
    }
    expect(health.waitMs(target)).toBe(0);
  });

  test('one probe finds out, and all may go when it was answered', () => {
    const { health, clock, target } = start();
    fail(health, target);
    clock.now += 12_001;
    const probe = enter(health, target);
    expect(health.standing(target)).toBe('probing');
    expect(health.enter(target)).toBeUndefined();
    // Those who come meanwhile are told to come back when the probe is likely to be over.
    expect(health.waitMs(target)).toBe(1_000);
    probe.answered();
    expect(health.standing(target)).toBe('up');
    expect(health.waitMs(target)).toBe(0);
    probe.succeeded();
    // Old failures are forgotten: one more does not open it again.
    enter(health, target).failed(errors.failed());
    expect(health.waitMs(target)).toBe(0);
  });

  test('a rest is twice as long after each probe in vain, up to the longest', () => {
    const { health, clock, target } = start({ rest: 1_000, mostRest: 5_000 });
    fail(health, target);
    let longest = 0;
    for (let count = 0; count < 8; count += 1) {
      const wait = health.waitMs(target);
      expect(wait).toBeLessThanOrEqual(5_000);
      if (count < 2) expect(wait).toBeGreaterThanOrEqual(Math.min(5_000, 2 ** count * 800));
      longest = Math.max(longest, wait);
      clock.now += wait;
      enter(health, target).failed(errors.cut());
    }
    expect(longest).toBeGreaterThanOrEqual(4_000);
  });

  test('a probe whose client left says nothing: the next may go', () => {
    const { health, clock, target } = start();
    fail(health, target);
    clock.now += 12_001;
    enter(health, target).left();
    expect(health.standing(target)).toBe('resting');
    enter(health, target).succeeded();
    expect(health.standing(target)).toBe('up');
  });

  test('a probe that failed because its client left says nothing either', () => {
    const { health, clock, target } = start();
    fail(health, target);
    clock.now += 12_001;
    enter(health, target).failed(new GatewayError('client_closed_request', 'left', { origin: 'client' }));
    expect(health.standing(target)).toBe('resting');
    enter(health, target).succeeded();
    expect(health.standing(target)).toBe('up');
  });

  test('calls that fail late, while their key rests, do not prolong its rest', () => {
    const { health, clock, target } = start();
    const late = [1, 2, 3].map(() => enter(health, target));
    fail(health, target);
    const wait = health.waitMs(target);
    clock.now += 5_000;
    for (const attempt of late) attempt.failed(errors.failed());
    expect(health.waitMs(target)).toBe(wait - 5_000);
  });

  test('where all else is gone, one call at a time may come before its time, and not often', () => {
    const { health, clock, target } = start();
    fail(health, target);
    expect(health.enter(target)).toBeUndefined();
    clock.now += 1_001;
    const early = enter(health, target);
    expect(health.enter(target)).toBeUndefined();
    const wait = health.waitMs(target);
    early.failed(errors.failed());
    // It makes nothing worse.
    expect(health.waitMs(target)).toBeLessThanOrEqual(wait);
    expect(health.enter(target)).toBeUndefined();
    clock.now += 1_001;
    enter(health, target).answered();
    expect(health.waitMs(target)).toBe(0);
  });

  test.each([
    ['refused', 'upstream_error', 'Incorrect API key provided'],
    ['noCredit', 'no_available_channel', 'no credit'],
  ] as const)('a key that is %s is out at once, for longer, and operators see why', (kind, code, message) => {
    const { health, target } = start();
    enter(health, target).succeeded();
    enter(health, target).failed(errors[kind]());
    expect(health.waitMs(target)).toBeGreaterThanOrEqual(48_000);
    const breaker = health.report().find(({ channel }) => channel === target.channel.id);
    expect(breaker).toMatchObject({ key: 'first', standing: 'resting', last: { code, message } });
    expect(breaker).not.toHaveProperty('model');
    expect(breaker?.until).toBeGreaterThan(Date.now());
  });

  test('a key that is refused while it rests for failures rests for longer', () => {
    const { health, target } = start();
    const late = enter(health, target);
    fail(health, target);
    late.failed(errors.refused());
    expect(health.waitMs(target)).toBeGreaterThanOrEqual(48_000);
  });

  test('a model that is limited is spared for as long as the provider says; other models are not', () => {
    const { health, clock, target } = start();
    const other = targetOf(target.channel.id, 'first', 'other');
    enter(health, target).failed(errors.limited(30));
    expect(health.waitMs(target)).toBe(30_000);
    expect(health.standing(target)).toBe('cooling');
    expect(health.waitMs(other)).toBe(0);
    expect(health.enter(target)).toBeUndefined();
    clock.now += 30_000;
    expect(health.waitMs(target)).toBe(0);
    // No probe: all may go at once.
    for (const attempt of [enter(health, target), enter(health, target)]) attempt.succeeded();
  });

  test('patience without a time is short, and a time beyond belief is cut', () => {
    const { health, target } = start();
    const other = targetOf(target.channel.id, 'first', 'other');
    enter(health, target).failed(errors.limited());
    enter(health, other).failed(errors.limited(86_400));
    expect(health.waitMs(target)).toBe(5_000);
    expect(health.waitMs(other)).toBe(120_000);
  });

  test('limits never count as failures, however many', () => {
    const { health, clock, target } = start();
    for (let count = 0; count < 20; count += 1) {
      enter(health, target).failed(errors.limited(1));
      clock.now += 1_000;
    }
    expect(health.waitMs(targetOf(target.channel.id, 'first', 'other'))).toBe(0);
    expect(health.report().find(({ channel }) => channel === target.channel.id)?.failures).toBe(0);
  });

  test('a reply that began before a limit does not end it', () => {
    const { health, target } = start();
    const early = enter(health, target);
    enter(health, target).failed(errors.limited(30));
    early.succeeded();
    expect(health.waitMs(target)).toBe(30_000);
  });

  test('a limit that comes while a probe is under way outlasts the probe', () => {
    const { health, clock, target } = start();
    const late = enter(health, target);
    enter(health, target).failed(errors.noModel());
    clock.now += 72_001;
    const probe = enter(health, target);
    late.failed(errors.limited(30));
    probe.succeeded();
    expect(health.waitMs(target)).toBe(30_000);
    expect(health.enter(target)).toBeUndefined();
  });

  test('the time that an overloaded provider names is kept', () => {
    const { health, target } = start();
    enter(health, target).failed(errors.overloaded());
    expect(health.waitMs(target)).toBe(7_000);
    expect(health.waitMs(targetOf(target.channel.id, 'first', 'other'))).toBe(0);
  });

  test('a model that the provider does not know is left alone, the key is not', () => {
    const { health, clock, target } = start();
    enter(health, target).failed(errors.noModel());
    expect(health.standing(target)).toBe('resting');
    expect(health.waitMs(target)).toBeGreaterThanOrEqual(48_000);
    expect(health.waitMs(targetOf(target.channel.id, 'first', 'other'))).toBe(0);
    clock.now += 72_001;
    const probe = enter(health, target);
    expect(health.enter(target)).toBeUndefined();
    probe.succeeded();
    expect(health.standing(target)).toBe('up');
  });

  test.each(['badRequest', 'noThing'] as const)(
    'callers cannot harm a channel by mistakes of their own: %s',
    (kind) => {
      const { health, target } = start();
      for (let count = 0; count < 20; count += 1) enter(health, target).failed(errors[kind]());
      for (let count = 0; count < 20; count += 1) enter(health, target).left();
      const internal = new GatewayError('internal_error', 'a plugin broke');
      for (let count = 0; count < 20; count += 1) enter(health, target).failed(internal);
      expect(health.waitMs(target)).toBe(0);
      expect(health.standing(target)).toBe('up');
    },
  );

  test('a channel that is reset may be asked at once', () => {
    const { health, target } = start();
    const model = targetOf(target.channel.id, 'first', 'limited');
    const elsewhere = newTarget();
    enter(health, model).failed(errors.limited(60));
    for (const one of [target, elsewhere]) enter(health, one).failed(errors.refused());
    health.reset(target.channel.id);
    expect(health.waitMs(target)).toBe(0);
    expect(health.waitMs(model)).toBe(0);
    expect(health.waitMs(elsewhere)).toBeGreaterThan(0);
    expect(health.report().filter(({ channel }) => channel === target.channel.id)).toEqual([]);
  });

  test('a channel that is reset has no failures behind it', () => {
    const { health, target } = start();
    fail(health, target, 2);
    health.reset(target.channel.id);
    fail(health, target, 2);
    expect(health.waitMs(target)).toBe(0);
  });

  test('each change is told once', () => {
    const { health, clock, target } = start();
    const changes: string[] = [];
    const stop = health.follow(({ channel, before, standing }) => {
      if (channel === target.channel.id) changes.push(`${before} > ${standing}`);
    });
    fail(health, target);
    clock.now += 12_001;
    enter(health, target).failed(errors.failed());
    clock.now += 24_001;
    enter(health, target).succeeded();
    enter(health, target).failed(errors.limited(5));
    enter(health, targetOf(target.channel.id, 'second')).failed(errors.limited(5));
    stop();
    clock.now += 5_000;
    fail(health, target);
    expect(changes).toEqual([
      'up > resting',
      'resting > probing',
      'probing > resting',
      'resting > probing',
      'probing > up',
      'up > cooling',
      'up > cooling',
    ]);
  });

  test('switched off, everything may always be asked', () => {
    const { health, target } = start({ enabled: false });
    fail(health, target, 20);
    enter(health, target).failed(errors.refused());
    expect(health.waitMs(target)).toBe(0);
    expect(health.enter(target)).toBeDefined();
  });
}

/** Contract of all drivers that share health. `several` opens drivers that share their state. */
export function sharedHealthSuite(
  several: (count: number, settings: Partial<HealthSettings>) => Promise<readonly Health[]>,
): void {
  const pass = (time: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, time));

  test('what one finds out the others know soon, and also that it is over or forgotten', async () => {
    const [one, two, three] = (await several(3, { rest: 300 })) as [Health, Health, Health];
    const [broken, limited, unknown] = [newTarget(), newTarget(), newTarget()];
    const changes: string[] = [];
    two.follow(({ channel, standing, elsewhere }) => {
      if (channel === broken.channel.id) changes.push(`${standing} ${elsewhere}`);
    });
    fail(one, broken);
    enter(one, limited).failed(errors.limited(30));
    enter(two, unknown).failed(errors.noModel());
    for (const health of [one, two, three]) {
      await expect.poll(() => health.standing(broken)).toBe('resting');
      await expect.poll(() => health.standing(limited)).toBe('cooling');
      await expect.poll(() => health.standing(unknown)).toBe('resting');
      expect(health.waitMs(limited)).toBeGreaterThan(20_000);
      expect(health.waitMs(limited)).toBeLessThanOrEqual(30_000);
    }
    expect(three.report().find(({ channel }) => channel === broken.channel.id)?.last?.message).toBe(
      'it broke',
    );
    await pass(400);
    enter(one, broken).succeeded();
    for (const health of [two, three]) await expect.poll(() => health.standing(broken)).toBe('up');
    expect(changes).toEqual(['resting true', 'up true']);
    two.reset(limited.channel.id);
    for (const health of [one, three]) await expect.poll(() => health.standing(limited)).toBe('up');
  });

  test('failures before a channel is reset at another gateway count no more', async () => {
    const [one, two] = (await several(2, {})) as [Health, Health];
    const target = newTarget();
    fail(one, target, 1);
    fail(two, target, 2);
    one.reset(target.channel.id);
    // Only news about the place itself shows that the reset has arrived.
    enter(one, targetOf(target.channel.id, 'second')).failed(errors.refused());
    await expect.poll(() => two.standing(targetOf(target.channel.id, 'second'))).toBe('resting');
    fail(two, target, 2);
    expect(two.standing(target)).toBe('up');
  });

  test('a channel that is reset and fails again in the same moment has no older failures behind it elsewhere', async () => {
    const [one, two] = (await several(2, {})) as [Health, Health];
    const target = newTarget();
    fail(two, target, 2);
    one.reset(target.channel.id);
    enter(one, target).failed(errors.failed());
    one.reset(target.channel.id);
    enter(one, target).failed(errors.refused());
    await expect.poll(() => two.standing(target)).toBe('resting');
    expect(two.report().find(({ channel }) => channel === target.channel.id)).toMatchObject({ failures: 0 });
  });

  test('a turn is given back with a probe that finds the model unknown', async () => {
    const [one, two] = (await several(2, { refusedRest: 300 })) as [Health, Health];
    const target = newTarget();
    enter(one, target).failed(errors.noModel());
    await expect.poll(() => two.standing(target)).toBe('resting');
    await expect.poll(() => one.waitMs(target)).toBe(0);
    enter(one, target).failed(errors.noModel());
    await expect.poll(() => two.waitMs(target), { interval: 20 }).toBe(0);
    enter(two, target).succeeded();
    await expect.poll(() => one.standing(target)).toBe('up');
  });

  test('a turn is given back with the end of the probe', async () => {
    const [one, two] = (await several(2, { rest: 300 })) as [Health, Health];
    const target = newTarget();
    fail(one, target);
    await expect.poll(() => two.standing(target)).toBe('resting');
    await expect.poll(() => one.waitMs(target)).toBe(0);
    const probe = enter(one, target);
    await expect.poll(() => two.standing(target) === 'probing' || two.waitMs(target) > 0).toBe(true);
    probe.left();
    await expect.poll(() => two.waitMs(target), { interval: 20 }).toBe(0);
    enter(two, target).succeeded();
    await expect.poll(() => one.standing(target)).toBe('up');
  });
}
