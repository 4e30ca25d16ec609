import { NEVER, Observable, of, throwError } from 'rxjs';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { upstreamError } from '../../../core/formats/_shared/upstream-error/index.ts';
import type { GatewayEvent } from '../../../core/model/event.ts';
import { accountOf } from '../../../core/money/account/index.ts';
import { setClientCredential } from '../../../core/sdk/client-credential.ts';
import type { Call } from '../../../core/sdk/call.ts';
import { GatewayError } from '../../../core/sdk/errors.ts';
import { all, testCall } from '../../support/call.ts';
import { event, setUp, status, type AttemptsWorld } from './_attempts.ts';
import type { Wanted } from './_targets.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const two: readonly Wanted[] = [{ id: 'x', priority: 1 }, { id: 'y' }];
const silence = (): Promise<never> => new Promise(() => {});
const after = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, milliseconds));
/** Outcomes that health was told, without names. */
const outcomes = ({ health }: AttemptsWorld): (string | undefined)[] =>
  health.outcomes.map((outcome) => outcome.split(' ')[1]);

describe('a reply', () => {
  test('begins with the request and what was tried before', async () => {
    const { attempts, noticed } = setUp(two, (name) =>
      name === 'x/a' ? Promise.reject(status(500)) : Promise.resolve(of(event)),
    );
    const { call } = testCall({ model: 'm', stream: true });
    expect(await all(await attempts(call))).toEqual([
      { type: 'request', model: 'm', stream: true },
      {
        type: 'attempt',
        channel: 'x',
        key: 'a',
        model: 'm',
        failure: 'upstream_error',
        endedAt: expect.any(Number),
        cause: { status: 500, message: 'why not' },
      },
      event,
    ]);
    expect(noticed).toMatchObject([{ channel: 'x', model: 'm', error: { code: 'upstream_error' } }]);
  });

  test('of a model that no channel serves is an error, and is not thrown at who asks', async () => {
    const { attempts } = setUp([], silence);
    await expect(attempts(testCall({ model: 'm' }).call)).rejects.toMatchObject({
      code: 'no_available_channel',
    });
  });

  test('shows that its provider answers when it begins, and how it is when it ends', async () => {
    const world = setUp(two, () => Promise.resolve(new Observable((one) => one.next(event))));
    const subscription = (await world.attempts(testCall({ model: 'm' }).call)).subscribe();
    expect([world.health.answered, world.health.outcomes]).toEqual([['x/a'], []]);
    subscription.unsubscribe();
    expect(world.health.outcomes).toEqual(['x/a left']);
  });

  test.each([
    ['failed', status(500)],
    ['failed', new GatewayError('upstream_cut', 'cut', { origin: 'upstream' })],
    ['succeeded', status(400)],
    ['left', new GatewayError('internal_error', 'a plugin broke')],
    ['left', new Error('a plugin broke')],
  ])('that breaks counts as %s, and its attempt is over', async (outcome, error) => {
    let ended = 0;
    const world = setUp(two, (_name, call) => {
      call.onEnd(() => (ended += 1));
      return Promise.resolve(throwError(() => error));
    });
    const { call } = testCall({ model: 'm' });
    await expect(world.attempts(call).then(all)).rejects.toBe(error);
    expect([outcomes(world), ended, world.running(), world.health.doubled]).toEqual([[outcome], 1, 0, 0]);
    expect(world.health.errors).toEqual(outcome === 'failed' ? [error] : []);
  });

  test('that is whole ends its attempt while the call goes on', async () => {
    let ended = 0;
    const world = setUp(two, (_name, call) => {
      call.onEnd(() => (ended += 1));
      return Promise.resolve(of(event));
    });
    await world.attempts(testCall({ model: 'm' }).call).then(all);
    expect([outcomes(world), ended]).toEqual([['succeeded'], 1]);
  });

  test('whose call ends is over once, whoever hears of it first', async () => {
    const world = setUp(two, () => Promise.resolve(NEVER));
    const { call, exchange } = testCall({ model: 'm' });
    const reported: unknown[] = [];
    exchange.endErrors = (error) => void reported.push(error);
    const subscription = (await world.attempts(call)).subscribe();
    exchange.end();
    subscription.unsubscribe();
    expect([world.health.outcomes, world.health.doubled, world.running()]).toEqual([['x/a left'], 0, 0]);
    expect(reported).toEqual([]);
  });

  test('that comes when its attempt has been given up is let go of, up to the provider', async () => {
    let torn = 0;
    const late = new Observable<GatewayEvent>(() => () => (torn += 1));
    const world = setUp(
      two,
      (name) =>
        name === 'x/a' ? after(150).then(() => late) : after(500).then(() => throwError(() => status(500))),
      { attempt: 100 },
    );
    const failed = world.attempts(testCall({ model: 'm' }).call).catch((error: unknown) => error);
    await vi.advanceTimersByTimeAsync(1_000);
    // The second one breaks as soon as somebody listens, which nobody hears of.
    expect([torn, world.health.answered, world.health.outcomes]).toEqual([
      1,
      [],
      ['x/a failed', 'y/a failed'],
    ]);
    expect(await failed).toMatchObject({ code: 'upstream_timeout', origin: 'upstream', status: 504 });
  });

  test('that is none, from a plugin that broke its word, fails the call', async () => {
    const world = setUp([{ id: 'x', forwards: 'somewhere' }], () => Promise.resolve(undefined as never));
    const { call } = testCall({ model: 'm' });
    setClientCredential(call, { kind: 'key', value: 'sk-own' });
    await expect(world.attempts(call)).rejects.toMatchObject({ code: 'internal_error' });
    expect([outcomes(world), world.running()]).toEqual([['left'], 0]);
  });
});

describe('an attempt that fails', () => {
  test.each([
    ['failed', 500, 2],
    ['failed', 429, 2],
    ['succeeded', 400, 1],
  ])('counts as %s with %i', async (outcome, code, expectedCount) => {
    const world = setUp(two, () => Promise.reject(status(code)));
    const { call } = testCall({ model: 'm' });
    await world.attempts(call).catch(() => {});
    expect(outcomes(world)).toEqual(Array.from({ length: expectedCount }, () => outcome));
    // The caller's own mistake is no failure of a channel.
    expect([world.noticed.length, accountOf(call).attempts.failures.length]).toEqual(
      code === 400 ? [0, 0] : [2, 2],
    );
  });

  test('is told to nobody once the client has left', async () => {
    const world = setUp(two, (_name, call) => {
      return new Promise((_resolve, reject) => {
        call.onEnd(() => setTimeout(() => reject(status(500)), 10));
      });
    });
    const { call, exchange } = testCall({ model: 'm' });
    const failed = world.attempts(call).catch((error: unknown) => error);
    await vi.advanceTimersByTimeAsync(5);
    exchange.end();
    await vi.advanceTimersByTimeAsync(50);
    expect(await failed).toMatchObject({ code: 'client_closed_request' });
    expect([outcomes(world), world.attempted.length, world.noticed]).toEqual([['left'], 1, []]);
  });

  test('as the last that may be made says nothing of those that were not asked', async () => {
    const unknown = () => upstreamError(404, '{"error":{"message":"The model `m` does not exist"}}', {});
    const world = setUp(two, () => Promise.reject(unknown()), { attempts: 1 });
    await expect(world.attempts(testCall({ model: 'm' }).call)).rejects.not.toMatchObject({ param: 'model' });
    expect(world.attempted).toEqual(['x/a']);
  });
});

describe('with a client’s own credential', () => {
  const secret = 'words-of-the-client';
  const quoting = (code: number) => upstreamError(code, `{"error":{"message":"bad key ${secret}"}}`, {});
  const forwarding: readonly Wanted[] = [{ id: 'x', forwards: 'somewhere' }];
  const withCredential = (
    wanted: readonly Wanted[],
    answer: (call: Call) => Promise<Observable<GatewayEvent>>,
  ) => {
    const world = setUp(wanted, (_name, call) => answer(call), { attempts: 1 });
    const { call } = testCall({ model: 'm' });
    setClientCredential(call, { kind: 'key', value: secret });
    return { world, call };
  };

  test('no failure shows it, before the reply or in the middle of it', async () => {
    const before = withCredential(forwarding, () => Promise.reject(quoting(500)));
    const thrown: unknown = await before.world.attempts(before.call).catch((error: unknown) => error);
    const events = JSON.stringify(accountOf(before.call).attempts.failures);
    expect([`${String(thrown)} ${JSON.stringify(thrown)}`, events].join(' ')).not.toContain(secret);
    expect(JSON.stringify(before.world.health.errors)).not.toContain(secret);
    expect(events).toContain('bad key …');
    const cutError = new GatewayError('upstream_cut', `cut: ${secret}`, { origin: 'upstream' });
    const midway = withCredential(forwarding, () => Promise.resolve(throwError(() => cutError)));
    await expect(midway.world.attempts(midway.call).then(all)).rejects.toMatchObject({
      code: 'upstream_cut',
      message: 'cut: …',
    });
  });

  test.each([401, 402, 429])('what its account lacks (%i) says nothing against the channel', async (code) => {
    const { world, call } = withCredential(forwarding, () => Promise.reject(quoting(code)));
    await world.attempts(call).catch(() => {});
    expect(outcomes(world)).toEqual(['left']);
  });

  test('what the provider breaks does', async () => {
    const { world, call } = withCredential(forwarding, () => Promise.reject(quoting(500)));
    await world.attempts(call).catch(() => {});
    expect(outcomes(world)).toEqual(['failed']);
  });

  test('a channel with keys of its own is judged by them', async () => {
    const { world, call } = withCredential([{ id: 'x' }], () => Promise.reject(quoting(401)));
    await world.attempts(call).catch(() => {});
    expect([outcomes(world), world.health.errors.length]).toEqual([['failed'], 1]);
  });
});

describe('the time to the first event', () => {
  const measured = ({ load }: AttemptsWorld, channel = 'x', model = 'm'): number | undefined =>
    load.channel(channel).key('a').firstToken(model, performance.now());

  test.each([
    ['of a stream is measured', { stream: true }, 40],
    ['of a whole chat is not, because it tells of its length', { stream: false }, undefined],
    ['of anything else is measured', { operation: 'embed' as const }, 40],
  ])('%s', async (_what, options, expected) => {
    await vi.advanceTimersByTimeAsync(3_000);
    const channels = [{ id: 'x', speaks: { chat: ['plain'], embed: ['plain'] } }];
    const world = setUp(channels, () => after(40).then(() => of(event)));
    const reply = world.attempts(testCall({ model: 'm', ...options }).call);
    await vi.advanceTimersByTimeAsync(40);
    await reply;
    expect(measured(world)).toBe(expected);
  });

  test('of an attempt that was too slow is at least what it was given', async () => {
    await vi.advanceTimersByTimeAsync(3_000);
    const world = setUp(two, (name) => (name === 'x/a' ? silence() : Promise.resolve(of(event))), {
      firstToken: 200,
    });
    const load = world.load.channel('x').key('a');
    load.measured('m', 5_000, performance.now());
    const reply = world.attempts(testCall({ model: 'm', stream: true }).call);
    await vi.advanceTimersByTimeAsync(200);
    await reply;
    // It would have taken longer: what was known is not made better by it.
    expect(measured(world)).toBeGreaterThan(4_900);
    const fresh = setUp(two, (name) => (name === 'x/a' ? silence() : Promise.resolve(of(event))), {
      firstToken: 200,
      attempt: 200,
    });
    const second = fresh.attempts(testCall({ model: 'm', stream: true }).call);
    await vi.advanceTimersByTimeAsync(200);
    await second;
    expect(measured(fresh)).toBe(200);
    const whole = setUp(two, (name) => (name === 'x/a' ? silence() : Promise.resolve(of(event))), {
      attempt: 200,
    });
    const third = whole.attempts(testCall({ model: 'm' }).call);
    await vi.advanceTimersByTimeAsync(200);
    await third;
    expect(measured(whole)).toBeUndefined();
  });

  test('of one that another has beaten is at least what it was given, and of one that failed is unknown', async () => {
    const hedge = { after: 50, most: 1 };
    const world = setUp(two, (name) => (name === 'x/a' ? silence() : Promise.resolve(of(event))), { hedge });
    const reply = world.attempts(testCall({ model: 'm', stream: true }).call);
    await vi.advanceTimersByTimeAsync(50);
    await reply;
    expect(measured(world)).toBe(50);
    const failing = setUp(two, () => after(10).then(() => Promise.reject(status(500))));
    failing.attempts(testCall({ model: 'm', stream: true }).call).catch(() => {});
    await vi.advanceTimersByTimeAsync(100);
    expect([measured(failing), measured(failing, 'y')]).toEqual([undefined, undefined]);
  });
});

describe('a hedged call', () => {
  const hedge = { after: 20, most: 2 };
  const three: readonly Wanted[] = [
    { id: 'x', priority: 2, keys: ['a', 'b'] },
    { id: 'y', priority: 1 },
    { id: 'z' },
  ];
  const channelsIn = (attempted: readonly string[]): string => attempted.map((name) => name[0]).join('');

  test('goes to another channel first, and to no more than the settings say', async () => {
    const world = setUp(three, silence, { hedge, attempts: 10 });
    const { call, exchange } = testCall({ model: 'm', stream: true });
    const failed = world.attempts(call).catch(() => {});
    await vi.advanceTimersByTimeAsync(1_000);
    expect(channelsIn(world.attempted)).toBe('xyz');
    exchange.end();
    await failed;
    const one = setUp(three, silence, { hedge: { ...hedge, most: 1 }, attempts: 10 });
    const second = testCall({ model: 'm', stream: true });
    const ended = one.attempts(second.call).catch(() => {});
    await vi.advanceTimersByTimeAsync(1_000);
    expect(channelsIn(one.attempted)).toBe('xy');
    second.exchange.end();
    await ended;
  });

  test('is one of the attempts that a call may make', async () => {
    const world = setUp(three, silence, { hedge, attempts: 2 });
    const { call, exchange } = testCall({ model: 'm', stream: true });
    const failed = world.attempts(call).catch(() => {});
    await vi.advanceTimersByTimeAsync(1_000);
    expect(world.attempted).toHaveLength(2);
    exchange.end();
    await failed;
    const failing = setUp(three, () => after(30).then(() => Promise.reject(status(500))), {
      hedge: { ...hedge, most: 1 },
      attempts: 2,
    });
    const all500 = failing
      .attempts(testCall({ model: 'm', stream: true }).call)
      .catch((error: unknown) => error);
    await vi.advanceTimersByTimeAsync(1_000);
    expect([await all500, failing.attempted.length]).toEqual([expect.objectContaining({ status: 502 }), 2]);
  });

  test('waits for the first where there is no other', async () => {
    const world = setUp([{ id: 'x' }], () => after(100).then(() => of(event)), { hedge });
    const reply = world.attempts(testCall({ model: 'm', stream: true }).call);
    await vi.advanceTimersByTimeAsync(100);
    expect((await all(await reply)).at(-1)).toEqual(event);
    expect([world.attempted, vi.getTimerCount()]).toEqual([['x/a'], 0]);
  });

  test('is over with the mistake of the caller that one provider tells, however silent the others are', async () => {
    const world = setUp(three, (name) => (name === 'y/a' ? Promise.reject(status(400)) : silence()), {
      hedge,
    });
    const failed = world
      .attempts(testCall({ model: 'm', stream: true }).call)
      .catch((error: unknown) => error);
    await vi.advanceTimersByTimeAsync(20);
    expect(await failed).toMatchObject({ status: 400 });
    await vi.advanceTimersByTimeAsync(1_000);
    expect([world.attempted.length, world.running()]).toEqual([2, 0]);
  });

  test('goes on while another may still answer, and tells of who failed and who was beaten', async () => {
    const world = setUp(
      three,
      (name, call) => {
        if (call.target !== undefined) accountOf(call).attempts.start(call.target);
        if (name.startsWith('x')) return Promise.reject(status(500));
        return name === 'y/a' ? silence() : Promise.resolve(of(event));
      },
      { hedge },
    );
    const reply = world.attempts(testCall({ model: 'm', stream: true }).call);
    await vi.advanceTimersByTimeAsync(100);
    const failures = (await all(await reply)).map((one) =>
      one.type === 'attempt' ? `${one.channel} ${one.failure}` : one.type,
    );
    expect(failures).toEqual(['request', 'x upstream_error', 'y hedged', 'head']);
    expect(world.health.outcomes.map((outcome) => outcome.replace(/\/\w/, ''))).toEqual([
      'x failed',
      'y left',
      'z succeeded',
    ]);
  });

  test('tells nothing of a provider that was never asked, such as one before which a plugin waited', async () => {
    const world = setUp(two, (name) => (name === 'x/a' ? silence() : Promise.resolve(of(event))), { hedge });
    const reply = world.attempts(testCall({ model: 'm', stream: true }).call);
    await vi.advanceTimersByTimeAsync(20);
    expect((await all(await reply)).map(({ type }) => type)).toEqual(['request', 'head']);
  });

  test('ends the requests of those that were beaten, and what they still say changes nothing', async () => {
    let ended = 0;
    const world = setUp(
      two,
      (name, call) => {
        if (name === 'y/a') return Promise.resolve(of(event));
        call.onEnd(() => (ended += 1));
        return after(60).then(() => Promise.reject(status(500)));
      },
      { hedge },
    );
    const { call } = testCall({ model: 'm', stream: true });
    const reply = world.attempts(call);
    await vi.advanceTimersByTimeAsync(20);
    await reply;
    expect(ended).toBe(1);
    await vi.advanceTimersByTimeAsync(100);
    expect([world.noticed, accountOf(call).attempts.failures, world.health.doubled]).toEqual([[], [], 0]);
  });
});

describe('where every target is held back', () => {
  const held = (waits: Record<string, number>, standing: 'cooling' | 'resting', wanted = two) => {
    const world = setUp(wanted, () => Promise.reject(status(500)), {});
    for (const [name, wait] of Object.entries(waits)) {
      world.health.waits.set(name, wait);
      world.health.standings.set(name, standing);
    }
    return world;
  };

  test('the one that is ready soonest is asked first, and each of them once', async () => {
    const { attempts, attempted } = held({ 'x/a': 9_000, 'y/a': 5_000 }, 'resting');
    await expect(attempts(testCall({ model: 'm' }).call)).rejects.toMatchObject({ status: 502 });
    expect(attempted).toEqual(['y/a', 'x/a']);
  });

  test('for different reasons, the client is told that no channel can serve the model', async () => {
    const { attempts, health } = held({ 'x/a': 9_000, 'y/a': 5_000 }, 'cooling');
    for (const name of ['x/a', 'y/a']) health.closed.add(name);
    await expect(attempts(testCall({ model: 'm' }).call)).rejects.toMatchObject({
      status: 429,
      retryAfter: 5,
    });
    health.standings.set('x/a', 'resting');
    await expect(attempts(testCall({ model: 'm' }).call)).rejects.toMatchObject({
      code: 'no_available_channel',
      status: 503,
      retryAfter: 5,
    });
  });

  test('after a limit of the only other, the client hears when the first of them is ready', async () => {
    const world = setUp(two, () => Promise.reject(status(429, { 'retry-after': '30' })), {});
    world.health.waits.set('y/a', 5_000);
    world.health.standings.set('y/a', 'cooling');
    world.health.closed.add('y/a');
    await expect(world.attempts(testCall({ model: 'm' }).call)).rejects.toMatchObject({
      status: 429,
      retryAfter: 5,
    });
    world.health.standings.set('y/a', 'resting');
    await expect(world.attempts(testCall({ model: 'm' }).call)).rejects.toMatchObject({
      status: 429,
      retryAfter: 30,
    });
  });

  test('a call waits no longer than it may take', async () => {
    const waiting = (total: number) => {
      const world = setUp([{ id: 'x' }], () => Promise.resolve(of(event)), { total });
      world.health.waits.set('x/a', 400);
      world.health.standings.set('x/a', 'cooling');
      world.health.closed.add('x/a');
      return world;
    };
    await vi.advanceTimersByTimeAsync(3_000);
    await expect(waiting(400).attempts(testCall({ model: 'm' }).call)).rejects.toMatchObject({ status: 429 });
    const enough = waiting(500);
    const reply = enough.attempts(testCall({ model: 'm' }).call);
    enough.health.waits.clear();
    enough.health.closed.clear();
    await vi.advanceTimersByTimeAsync(401);
    await reply;
    expect(enough.attempted).toEqual(['x/a']);
  });
});

describe('the time of a whole call', () => {
  test('begins with the call, and where it is that of an attempt the provider is to blame', async () => {
    await vi.advanceTimersByTimeAsync(3_000);
    const world = setUp([{ id: 'x' }], silence, { total: 200, attempt: 200 });
    const failed = world.attempts(testCall({ model: 'm' }).call).catch((error: unknown) => error);
    await vi.advanceTimersByTimeAsync(199);
    expect(outcomes(world)).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(await failed).toMatchObject({ code: 'upstream_timeout', origin: 'upstream' });
    expect(outcomes(world)).toEqual(['failed']);
  });

  test('leaves nothing to ask another channel in when it is over', async () => {
    const world = setUp(two, () => after(300).then(() => Promise.reject(status(500))), {
      total: 300,
      attempt: 1_000,
    });
    const failed = world.attempts(testCall({ model: 'm' }).call).catch((error: unknown) => error);
    await vi.advanceTimersByTimeAsync(1_000);
    expect([await failed, world.attempted]).toEqual([expect.objectContaining({ status: 504 }), ['x/a']]);
  });
});
