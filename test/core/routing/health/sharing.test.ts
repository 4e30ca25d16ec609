import { describe, expect, test } from 'vitest';
import { createHealth } from '../../../../core/routing/health/index.ts';
import type { HealthSharing, SharedBreaker, SharingHooks } from '../../../../core/routing/health/sharing.ts';
import { GatewayError } from '../../../../core/sdk/errors.ts';
import type { Health, HealthChange, KeyOrModel } from '../../../../core/sdk/health.ts';
import type { HealthSettings } from '../../../../core/settings/routing.ts';
import { enter, errors, fail, newTarget, settingsOf, targetOf } from '../../../suites/health-suite.ts';

interface LeaseRequest {
  readonly name: KeyOrModel;
  readonly lease: number;
  /** Answers as other gateways do: 0, or for how long another one has the claim. */
  answer(wait: number | undefined): Promise<void>;
}

/** Other gateways, which answer what the test says. */
class OtherGateways implements HealthSharing {
  isUp = true;
  readonly published: SharedBreaker[] = [];
  readonly leaseRequests: LeaseRequest[] = [];
  readonly released: KeyOrModel[] = [];
  closed = 0;

  publish(state: SharedBreaker): void {
    this.published.push(state);
  }
  acquire(name: KeyOrModel, lease: number): Promise<number | undefined> {
    return new Promise((resolve) => {
      this.leaseRequests.push({
        name,
        lease,
        answer: async (wait) => {
          resolve(wait);
          await new Promise((done) => setImmediate(done));
        },
      });
    });
  }
  release(name: KeyOrModel): void {
    this.released.push(name);
  }
  close(): Promise<void> {
    this.closed += 1;
    return Promise.resolve();
  }
}

interface Stage {
  readonly health: Health;
  readonly others: OtherGateways;
  readonly hooks: SharingHooks;
  readonly clock: { now: number };
  readonly changes: HealthChange[];
}

/** One gateway whose rests last exactly as long as the settings say. */
function stage(settings: Partial<HealthSettings> = {}): Stage {
  const others = new OtherGateways();
  const clock = { now: 1_000_000 };
  let hooks: SharingHooks | undefined;
  const health = createHealth(settingsOf(settings), {
    now: () => clock.now,
    random: () => 0.5,
    share: (given) => {
      hooks = given;
      return others;
    },
  });
  if (hooks === undefined) throw new Error('Nothing is shared.');
  const changes: HealthChange[] = [];
  health.follow((change) => changes.push(change));
  return { health, others, hooks, clock, changes };
}

/** A heard place, all well unless said otherwise. */
function breaker(name: KeyOrModel, state: Partial<SharedBreaker> = {}): SharedBreaker {
  return { name, cool: 0, rest: 0, rests: 0, base: 0, ...state };
}

describe('the claim to probe a place', () => {
  test('is asked for once when the rest is over, and calls wait a moment until it is answered', async () => {
    const { health, others, clock } = stage();
    const target = newTarget();
    fail(health, target);
    expect(health.waitMs(target)).toBe(10_000);
    clock.now += 9_999;
    expect([health.waitMs(target), others.leaseRequests.length]).toEqual([1, 0]);
    clock.now += 1;
    expect([health.waitMs(target), health.waitMs(target), others.leaseRequests.length]).toEqual([50, 50, 1]);
    expect(others.leaseRequests[0]).toMatchObject({
      name: { channel: target.channel.id, key: 'first' },
      lease: 5_000,
    });
    await others.leaseRequests[0]?.answer(0);
    expect([health.waitMs(target), others.leaseRequests.length]).toEqual([0, 1]);
  });

  test('is good for its time, and then asked for again', async () => {
    const { health, others, clock } = stage();
    const target = newTarget();
    fail(health, target);
    clock.now += 10_000;
    health.waitMs(target);
    await others.leaseRequests[0]?.answer(0);
    clock.now += 4_999;
    expect([health.waitMs(target), others.leaseRequests.length]).toEqual([0, 1]);
    clock.now += 2;
    expect([health.waitMs(target), others.leaseRequests.length]).toEqual([50, 2]);
  });

  test('of another gateway keeps calls away for as long as it has it', async () => {
    const { health, others, clock } = stage();
    const target = newTarget();
    fail(health, target);
    clock.now += 10_000;
    health.waitMs(target);
    await others.leaseRequests[0]?.answer(3_000);
    expect([health.standing(target), health.waitMs(target)]).toEqual(['probing', 1_000]);
    expect(health.enter(target)).toBeUndefined();
    clock.now += 2_999;
    expect(health.standing(target)).toBe('probing');
    clock.now += 1;
    expect([health.standing(target), health.waitMs(target)]).toEqual(['resting', 50]);
    expect(others.leaseRequests).toHaveLength(2);
    enter(health, target).succeeded();
    expect(health.standing(target)).toBe('up');
  });

  test('is asked for no more while nobody answers, and calls go on', async () => {
    const { health, others, clock } = stage();
    const target = newTarget();
    fail(health, target);
    clock.now += 10_000;
    health.waitMs(target);
    others.isUp = false;
    await others.leaseRequests[0]?.answer(undefined);
    expect([health.sharing, health.waitMs(target), health.standing(target)]).toEqual([
      'degraded',
      0,
      'resting',
    ]);
    expect(others.leaseRequests).toHaveLength(1);
    enter(health, target);
  });

  test('lasts longer for a probe, also where the probe began before the answer', async () => {
    for (const early of [true, false]) {
      const { health, others, clock } = stage();
      const target = newTarget();
      fail(health, target);
      clock.now += 10_000;
      health.waitMs(target);
      if (early) enter(health, target);
      // oxlint-disable-next-line no-await-in-loop
      await others.leaseRequests[0]?.answer(0);
      if (!early) enter(health, target);
      expect([early, others.leaseRequests.map(({ lease }) => lease)]).toEqual([early, [5_000, 60_000]]);
      // oxlint-disable-next-line no-await-in-loop
      await others.leaseRequests[1]?.answer(0);
      expect([early, others.leaseRequests.length]).toEqual([early, 2]);
    }
  });

  test('of another gateway does not stop a probe that runs here, and the next one may go when it has ended', async () => {
    const { health, others, clock } = stage();
    const target = newTarget();
    fail(health, target);
    clock.now += 10_000;
    health.waitMs(target);
    const probe = enter(health, target);
    await others.leaseRequests[0]?.answer(30_000);
    probe.left();
    expect(health.standing(target)).toBe('resting');
    enter(health, target).succeeded();
    expect(health.standing(target)).toBe('up');
  });

  test('of another gateway is nothing to a place that has answered meanwhile', async () => {
    const { health, others, hooks, clock } = stage();
    const target = newTarget();
    const name = { channel: target.channel.id, key: 'first' };
    fail(health, target);
    clock.now += 10_000;
    health.waitMs(target);
    hooks.adopt(breaker(name));
    expect(health.standing(target)).toBe('up');
    await others.leaseRequests[0]?.answer(30_000);
    fail(health, target);
    expect([health.standing(target), health.waitMs(target)]).toEqual(['resting', 10_000]);
    clock.now += 10_000;
    enter(health, target).succeeded();
    expect(health.standing(target)).toBe('up');
  });

  test.each(['left', 'succeeded', 'answered', 'failed'] as const)(
    'is given back when the probe has %s',
    (how) => {
      const { health, others, clock } = stage();
      const target = newTarget();
      fail(health, target);
      clock.now += 10_000;
      const probe = enter(health, target);
      expect(others.released).toEqual([]);
      if (how === 'failed') probe.failed(errors.failed());
      else probe[how]();
      expect(others.released).toEqual([{ channel: target.channel.id, key: 'first' }]);
    },
  );

  test('is given back with a probe that a reset has overtaken, and kept by none where nothing was probed', () => {
    const { health, others, clock } = stage();
    const target = newTarget();
    fail(health, target);
    health.reset(target.channel.id);
    expect(others.released).toEqual([]);
    fail(health, target);
    clock.now += 10_000;
    const probe = enter(health, target);
    health.reset(target.channel.id);
    expect(others.released).toHaveLength(1);
    probe.failed(errors.failed());
    expect([health.standing(target), others.released.length]).toEqual(['up', 1]);
  });
});

describe('ahead of the end of a rest the claim is asked for', () => {
  const rested = (
    past: number,
    wanted: boolean,
  ): Stage & { readonly target: ReturnType<typeof newTarget> } => {
    const one = stage();
    const target = newTarget();
    fail(one.health, target);
    one.clock.now += past - 1_000;
    if (wanted) one.health.waitMs(target);
    one.clock.now += 1_000;
    return { ...one, target };
  };

  test.each([
    ['within its last second, where calls want to go there', 9_001, true, 1],
    ['not before', 9_000, true, 0],
    ['not where no call wants to go there', 9_001, false, 0],
    ['also when it is over', 12_000, true, 1],
  ])('%s', (_when, past, wanted, expectedRequests) => {
    const { hooks, others } = rested(past, wanted);
    hooks.tick();
    hooks.tick();
    expect(others.leaseRequests).toHaveLength(expectedRequests);
    expect(others.leaseRequests.map(({ lease }) => lease)).toEqual(
      Array.from({ length: expectedRequests }, () => 5_000),
    );
  });

  test('not where no call has wanted to go there for long', () => {
    const { hooks, others, clock } = rested(9_500, true);
    clock.now += 8_999;
    hooks.tick();
    expect(others.leaseRequests).toHaveLength(1);
    const late = rested(9_500, true);
    late.clock.now += 9_000;
    late.hooks.tick();
    expect(late.others.leaseRequests).toHaveLength(0);
  });

  test('not again while it lasts, and again when it has ended', async () => {
    const { hooks, others, clock, health, target } = rested(9_500, true);
    hooks.tick();
    await others.leaseRequests[0]?.answer(0);
    hooks.tick();
    expect(others.leaseRequests).toHaveLength(1);
    clock.now += 5_000;
    health.waitMs(target);
    hooks.tick();
    expect(others.leaseRequests).toHaveLength(2);
  });

  test('not while another gateway has it, and not while a probe runs', async () => {
    const { hooks, others, health, target, clock } = rested(9_500, true);
    hooks.tick();
    await others.leaseRequests[0]?.answer(2_000);
    hooks.tick();
    expect(others.leaseRequests).toHaveLength(1);
    clock.now += 2_000;
    hooks.tick();
    await others.leaseRequests[1]?.answer(undefined);
    expect(others.leaseRequests).toHaveLength(2);
    enter(health, target);
    await others.leaseRequests[2]?.answer(undefined);
    hooks.tick();
    expect(others.leaseRequests.map(({ lease }) => lease)).toEqual([5_000, 5_000, 60_000]);
  });

  test('not while the provider asks for patience, and not for what no longer rests', () => {
    const { hooks, others, health, clock } = stage({ refusedRest: 1_000 });
    const target = newTarget();
    const late = enter(health, target);
    enter(health, target).failed(errors.noModel());
    late.failed(errors.limited(30));
    clock.now += 900;
    health.waitMs(target);
    hooks.tick();
    expect(others.leaseRequests).toHaveLength(0);
    const brother = newTarget();
    enter(health, brother).failed(errors.refused());
    health.waitMs(brother);
    health.reset(brother.channel.id);
    clock.now += 900;
    hooks.tick();
    expect(others.leaseRequests).toHaveLength(0);
  });
});

describe('other gateways are not asked', () => {
  test('about a limit that is over, because every call may go there', () => {
    const { health, others, clock } = stage();
    const target = newTarget();
    enter(health, target).failed(errors.limited(5));
    clock.now += 5_000;
    expect(health.waitMs(target)).toBe(0);
    enter(health, target).succeeded();
    expect([others.leaseRequests, others.released]).toEqual([[], []]);
  });

  test('about places that answer again, or of which nothing is known any more', () => {
    const { health, others, hooks, clock } = stage({ refusedRest: 1_000 });
    const target = newTarget();
    const brothers = Array.from({ length: 501 }, (_, number) =>
      targetOf(target.channel.id, 'first', `m${number}`),
    );
    for (const one of brothers) {
      enter(health, one).failed(errors.noModel());
      health.waitMs(one);
    }
    clock.now += 500;
    hooks.tick();
    // The oldest made room for the last.
    expect(others.leaseRequests.map(({ name }) => name.model)).toEqual(
      brothers.slice(1).map(({ model }) => model),
    );
    const other = newTarget();
    fail(health, other);
    clock.now += 9_500;
    health.waitMs(other);
    clock.now += 500;
    enter(health, other).succeeded();
    others.leaseRequests.length = 0;
    hooks.tick();
    expect(others.leaseRequests.filter(({ name }) => name.channel === other.channel.id)).toEqual([]);
  });

  test('to give back what was never claimed', () => {
    const { health, others } = stage();
    enter(health, newTarget()).failed(errors.noModel());
    enter(health, newTarget()).left();
    fail(health, newTarget());
    expect(others.released).toEqual([]);
  });
});

describe('other gateways are told', () => {
  test('how a place stands when that changes, and nothing when a probe begins', () => {
    const { health, others, clock } = stage();
    const target = newTarget();
    const name = { channel: target.channel.id, key: 'first' };
    fail(health, target);
    const last = { at: expect.any(Number) as number, code: 'upstream_error', message: 'it broke' };
    expect(others.published.splice(0)).toEqual([
      { name, cool: 0, rest: 10_000, rests: 1, base: 10_000, last },
    ]);
    clock.now += 10_000;
    const probe = enter(health, target);
    expect(others.published).toEqual([]);
    probe.failed(errors.failed());
    expect(others.published.splice(0)).toMatchObject([{ name, rest: 20_000, rests: 2, base: 10_000 }]);
    clock.now += 20_000;
    enter(health, target).answered();
    expect(others.published.splice(0)).toMatchObject([{ name, cool: 0, rest: 0, rests: 0 }]);
  });

  test('nothing of failures that are few, and nothing of a reset that changes nothing to those here', () => {
    const { health, others, changes } = stage();
    const target = newTarget();
    fail(health, target, 2);
    expect(others.published).toEqual([]);
    health.reset(target.channel.id);
    health.reset('never heard of');
    expect(changes).toEqual([]);
  });

  test('of a limit, for the model, with what is left of its time', () => {
    const { health, others, hooks, clock } = stage();
    const target = newTarget();
    enter(health, target).failed(errors.limited(30));
    expect(others.published).toMatchObject([
      { name: { channel: target.channel.id, key: 'first', model: 'model' }, cool: 30_000, rests: 0 },
    ]);
    clock.now += 10_000;
    expect(hooks.known()).toMatchObject([{ name: { model: 'model' }, cool: 20_000, rest: 0, rests: 0 }]);
    clock.now += 20_000;
    expect(hooks.known()).toEqual([]);
  });

  test('of a reset that everything is forgotten', () => {
    const { health, others } = stage();
    const target = newTarget();
    fail(health, target);
    enter(health, targetOf(target.channel.id, 'second')).failed(errors.limited(30));
    others.published.length = 0;
    health.reset(target.channel.id);
    const forgotten = others.published.map(({ name, forgotten: isForgotten, rests, cool }) => [
      name.key,
      name.model,
      isForgotten,
      rests,
      cool,
    ]);
    expect(forgotten).toEqual([
      ['first', undefined, true, 0, 0],
      ['second', 'model', true, 0, 0],
      ['second', undefined, true, 0, 0],
    ]);
  });

  test('nothing where health is switched off', () => {
    let shared = 0;
    const health = createHealth(settingsOf({ enabled: false }), {
      share: () => {
        shared += 1;
        return new OtherGateways();
      },
    });
    fail(health, newTarget(), 20);
    expect([shared, health.sharing]).toEqual([0, 'alone']);
  });

  test('and all is closed with the gateway', async () => {
    const { health, others } = stage();
    expect(health.sharing).toBe('ok');
    await health.close();
    expect(others.closed).toBe(1);
    await createHealth(settingsOf()).close();
  });
});

describe('what another gateway tells', () => {
  const name = (target: ReturnType<typeof newTarget>, model?: string): KeyOrModel => ({
    channel: target.channel.id,
    key: 'first',
    ...(model === undefined ? {} : { model }),
  });

  test('of a key holds here from now on, with its reason, and is not told on', () => {
    const { health, others, hooks, clock, changes } = stage();
    const target = newTarget();
    const last = { at: 5, code: 'upstream_error', message: 'broken there' };
    hooks.adopt(breaker(name(target), { rest: 4_000, rests: 2, base: 2_000, last }));
    expect([health.standing(target), health.waitMs(target)]).toEqual(['resting', 4_000]);
    expect(health.report()).toMatchObject([{ standing: 'resting', last }]);
    expect(changes).toMatchObject([{ before: 'up', standing: 'resting', elsewhere: true }]);
    expect(others.published).toEqual([]);
    // A probe before its time is for those with nowhere else to go, and not right away.
    expect(health.enter(target)).toBeUndefined();
    clock.now += 4_000;
    enter(health, target).failed(errors.failed());
    // The series goes on where the other gateway was: the third rest is four times the first.
    expect(health.waitMs(target)).toBe(40_000);
    expect(changes.at(-1)).toMatchObject({ elsewhere: false });
  });

  test('without a reason is reported without one', () => {
    const { health, hooks } = stage();
    const target = newTarget();
    hooks.adopt(breaker(name(target), { rest: 4_000, rests: 1, base: 4_000 }));
    expect(health.report()).toEqual([
      {
        channel: target.channel.id,
        key: 'first',
        standing: 'resting',
        failures: 0,
        until: expect.any(Number) as number,
      },
    ]);
  });

  test('of one model holds for that model alone, and its end is the end', () => {
    const { health, hooks } = stage();
    const target = newTarget();
    hooks.adopt(breaker(name(target, 'model'), { cool: 9_000 }));
    expect([health.standing(target), health.waitMs(target)]).toEqual(['cooling', 9_000]);
    expect(health.standing(targetOf(target.channel.id, 'first', 'other'))).toBe('up');
    // A shorter limit does not shorten a longer one.
    hooks.adopt(breaker(name(target, 'model'), { cool: 1_000 }));
    expect(health.waitMs(target)).toBe(9_000);
    hooks.adopt(breaker(name(target, 'model'), { forgotten: true }));
    expect([health.standing(target), health.report()]).toEqual(['up', []]);
  });

  test('of an end is nothing where nothing was known', () => {
    const { health, hooks, changes } = stage();
    const target = newTarget();
    hooks.adopt(breaker(name(target)));
    hooks.adopt(breaker(name(target, 'model')));
    fail(health, target, 1);
    hooks.adopt(breaker(name(target, 'model')));
    expect([health.standing(target), changes]).toEqual(['up', []]);
  });

  test('of what failed since a reset is not lost with what was forgotten', () => {
    const { health, hooks } = stage();
    const target = newTarget();
    fail(health, target, 2);
    hooks.adopt(breaker(name(target), { rest: 7_000, rests: 1, base: 7_000, forgotten: true }));
    expect([health.standing(target), health.waitMs(target)]).toEqual(['resting', 7_000]);
    expect(health.report()).toMatchObject([{ failures: 0 }]);
  });

  test('of a model that was reset leaves the failures of its key', () => {
    const { health, hooks } = stage();
    const target = newTarget();
    fail(health, target, 2);
    hooks.adopt(breaker(name(target, 'model'), { cool: 5_000, forgotten: true }));
    expect(health.report()[0]).toMatchObject({ failures: 2 });
    enter(health, targetOf(target.channel.id, 'first', 'other')).failed(errors.failed());
    expect(health.standing(targetOf(target.channel.id, 'first', 'other'))).toBe('resting');
  });

  test('of a probe that goes on there ends what was known of it here', async () => {
    const { health, others, hooks, clock } = stage();
    const target = newTarget();
    fail(health, target);
    clock.now += 10_000;
    health.waitMs(target);
    await others.leaseRequests[0]?.answer(50_000);
    expect(health.standing(target)).toBe('probing');
    hooks.adopt(breaker(name(target), { rest: 1_000, rests: 2, base: 10_000 }));
    expect([health.standing(target), health.waitMs(target)]).toEqual(['resting', 1_000]);
  });
});

describe('a probe of a key', () => {
  test.each([
    ['a limit of its model', errors.limited(30)],
    ['an unknown model', errors.noModel()],
  ])('that meets %s shows that the key answers', (_what, error) => {
    const { health, clock } = stage();
    const target = newTarget();
    fail(health, target);
    clock.now += 10_000;
    enter(health, target).failed(error);
    expect(health.standing(targetOf(target.channel.id, 'first', 'other'))).toBe('up');
    expect(health.standing(target)).not.toBe('up');
  });

  test('that meets the caller’s mistake shows it too; one that the gateway broke shows nothing', () => {
    const { health, clock } = stage();
    const target = newTarget();
    fail(health, target);
    clock.now += 10_000;
    enter(health, target).failed(new GatewayError('internal_error', 'a plugin broke'));
    expect(health.standing(target)).toBe('resting');
    enter(health, target).failed(errors.badRequest());
    expect(health.standing(target)).toBe('up');
  });

  test('of a model fails with its key: the model may be probed again', () => {
    const { health, clock } = stage();
    const target = newTarget();
    enter(health, target).failed(errors.noModel());
    clock.now += 60_000;
    const probe = enter(health, target);
    expect(health.standing(target)).toBe('probing');
    probe.failed(errors.failed());
    expect(health.standing(target)).toBe('resting');
    enter(health, target).succeeded();
    expect(health.standing(target)).toBe('up');
  });
});
