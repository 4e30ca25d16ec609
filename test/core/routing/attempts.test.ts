import * as fc from 'fast-check';
import { NEVER, Observable, of, throwError } from 'rxjs';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Call } from '../../../core/sdk/call.ts';
import { GatewayError } from '../../../core/sdk/errors.ts';
import { upstreamError } from '../../../core/formats/_shared/upstream-error/index.ts';
import type { GatewayEvent } from '../../../core/model/event.ts';
import { accountOf } from '../../../core/money/account/index.ts';
import type { routingSchema } from '../../../core/settings/routing.ts';
import type { z } from 'zod';
import { testCall } from '../../support/call.ts';
import { event, setUp, status } from './_attempts.ts';
import type { Wanted } from './_targets.ts';
import { tries } from '../../support/tries.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const two: readonly Wanted[] = [{ id: 'x', priority: 1, keys: ['a', 'b'] }, { id: 'y' }];

/** Runs a call with providers of which the first ones respond with these errors. */
async function after(
  errors: readonly GatewayError[],
  wanted = two,
  routing: z.input<typeof routingSchema> = {},
) {
  const left = [...errors];
  const world = setUp(
    wanted,
    () => {
      const error = left.shift();
      return error === undefined ? Promise.resolve(of(event)) : Promise.reject(error);
    },
    routing,
  );
  const { call } = testCall({ model: 'm' });
  let thrown: unknown;
  try {
    (await world.attempts(call)).subscribe();
  } catch (error) {
    thrown = error;
  }
  expect([world.running(), world.health.open, world.health.doubled]).toEqual([0, 0, 0]);
  return { ...world, thrown, call };
}

describe('after a failure', () => {
  test.each([400, 413, 422])('with %i nobody else is asked, and the provider is well', async (code) => {
    const { attempted, thrown, health } = await after([status(code)]);
    expect(attempted).toHaveLength(1);
    expect(thrown).toMatchObject({ retryable: false });
    expect(health.outcomes).toEqual([expect.stringContaining('succeeded')]);
  });

  test.each([401, 403, 402])('with %i the other key is asked, and then the other channel', async (code) => {
    const { attempted } = await after([status(code), status(code)]);
    expect(attempted.slice(0, 2).toSorted()).toEqual(['x/a', 'x/b']);
    expect(attempted[2]).toBe('y/a');
  });

  test.each([404, 500, 502, 503, 504, 529])(
    'with %i the other channel is asked before the other key',
    async (code) => {
      const { attempted } = await after([status(code), status(code)]);
      expect(attempted[1]).toBe('y/a');
      expect(attempted).toHaveLength(3);
      expect(attempted.toSorted()).toEqual(['x/a', 'x/b', 'y/a']);
    },
  );

  test.each([408, 409, 425])('with %i the same is asked once more, and then another', async (code) => {
    const { attempted, thrown } = await after([status(code), status(code)]);
    expect(attempted[1]).toBe(attempted[0]);
    expect(attempted[2]).toBe('y/a');
    expect(thrown).toBeUndefined();
  });

  test('of a connection that was closed unseen the same is asked at once, and nothing is noted', async () => {
    const stale = new GatewayError('upstream_cut', 'closed', { origin: 'upstream', staleConnection: true });
    const { attempted, health, call } = await after([stale], two, { attempts: 1 });
    expect(attempted[1]).toBe(attempted[0]);
    expect(health.outcomes.map((outcome) => outcome.split(' ')[1])).toEqual(['left', 'succeeded']);
    expect(accountOf(call).attempts.failures).toEqual([]);
    const twice = await after([stale, stale, stale, stale], two);
    expect(new Set(twice.attempted).size).toBe(3);
  });

  test('of a connection that was closed unseen, and of the provider over the next one, the client is told the latter', async () => {
    const stale = new GatewayError('upstream_cut', 'closed', { origin: 'upstream', staleConnection: true });
    const { attempted, thrown, health } = await after([stale, status(400)], two, { attempts: 1 });
    expect(attempted).toHaveLength(2);
    expect(thrown).toMatchObject({ status: 400, message: 'why not' });
    // A request that is wrong says nothing against the provider.
    expect(health.outcomes.map((outcome) => outcome.split(' ')[1])).toEqual(['left', 'succeeded']);
    const limited = await after([stale, status(429)]);
    expect([limited.thrown, new Set(limited.attempted).size]).toEqual([undefined, 2]);
  });

  test('of the connection, which no provider has put into words, the other channel is asked before the other key', async () => {
    const cut = new GatewayError('upstream_cut', 'cut', { origin: 'upstream' });
    for (let round = 0; round < 5; round += 1)
      // oxlint-disable-next-line no-await-in-loop -- each sees the keys drawn anew
      expect((await after([cut, cut])).attempted[1]).toBe('y/a');
  });

  test('that asks for the same again another is asked where health lets nobody in any more', async () => {
    const world = setUp(two, (name) => {
      if (name === 'y/a') return Promise.resolve(of(event));
      world.health.closed.add(name);
      return Promise.reject(status(409));
    });
    (await world.attempts(testCall({ model: 'm' }).call)).subscribe();
    expect(world.attempted.at(-1)).toBe('y/a');
    expect(new Set(world.attempted).size).toBe(world.attempted.length);
  });

  test('a target that was held back in the meantime is asked in its turn', async () => {
    const world = setUp([{ id: 'x', priority: 1 }, { id: 'y' }], (name) => {
      if (name === 'x/a') return Promise.resolve(of(event));
      world.health.closed.delete('x/a');
      return Promise.reject(status(500));
    });
    world.health.closed.add('x/a');
    (await world.attempts(testCall({ model: 'm' }).call)).subscribe();
    expect(world.attempted).toEqual(['y/a', 'x/a']);
  });

  test('of all, the client hears that nobody knows the model only where every provider says so', async () => {
    const one = [{ id: 'x' }, { id: 'y' }];
    const unknown = () => upstreamError(404, '{"error":{"message":"The model `m` does not exist"}}', {});
    const nobody = { code: 'no_available_channel', param: 'model', retryable: false };
    expect((await after([unknown(), unknown()], one)).thrown).toMatchObject(nobody);
    for (const errors of [
      [unknown(), status(500)],
      [status(500), unknown()],
    ])
      // oxlint-disable-next-line no-await-in-loop
      expect((await after(errors, one)).thrown).not.toMatchObject({ param: 'model' });
  });

  test('of the gateway’s own nobody is blamed', async () => {
    const { health } = await after([new GatewayError('internal_error', 'oops')]);
    expect(health.outcomes.map((outcome) => outcome.split(' ')[1])).toEqual(['left', 'succeeded']);
  });

  test('of all, no more are asked than the settings allow', async () => {
    const wanted = Array.from({ length: 9 }, (_, index) => ({ id: `c${index}` }));
    const { attempted, call } = await after(
      Array.from({ length: 9 }, () => status(500)),
      wanted,
      { attempts: 4 },
    );
    expect(attempted).toHaveLength(4);
    const { failures } = accountOf(call).attempts;
    expect(failures).toHaveLength(4);
    expect(failures[0]).toMatchObject({ key: 'a', failure: 'upstream_error' });
  });

  test('of all, the client is told of a limit only where there was nothing else, with the shortest wait', async () => {
    const one = [{ id: 'x' }, { id: 'y' }];
    const limit = (seconds: number) => status(429, { 'retry-after': String(seconds) });
    expect((await after([limit(9), limit(4)], one)).thrown).toMatchObject({ status: 429, retryAfter: 4 });
    expect((await after([limit(4), limit(9)], one)).thrown).toMatchObject({ status: 429, retryAfter: 4 });
    expect((await after([limit(4), status(500)], one)).thrown).toMatchObject({ status: 502 });
    expect((await after([status(500), limit(4)], one)).thrown).toMatchObject({ status: 502 });
  });

  test('by the limit of a key, another channel is as good as another key of its channel', async () => {
    const equal = [{ id: 'x', keys: ['a', 'b'] }, { id: 'y' }];
    const seconds = new Set<string>();
    // Each is drawn with even chances.
    for (let round = 0; round < 200; round += 1) {
      // oxlint-disable-next-line no-await-in-loop
      const { attempted } = await after([status(429)], equal);
      if (attempted[0]?.startsWith('x') === true) seconds.add(attempted[1]?.[0] ?? '');
    }
    expect([...seconds].toSorted()).toEqual(['x', 'y']);
  });

  test('of all, the client is told of the latest', async () => {
    const one = [{ id: 'x' }, { id: 'y' }];
    const busy = { status: 503, code: 'server_is_overloaded' };
    const broken = { status: 502, code: 'upstream_error' };
    expect((await after([status(500), status(529)], one)).thrown).toMatchObject(busy);
    expect((await after([status(529), status(500)], one)).thrown).toMatchObject(broken);
    const three = [...one, { id: 'z' }];
    expect((await after([status(500), status(529), status(429)], three)).thrown).toMatchObject(busy);
  });

  test.each([401, 402, 403, 404])('with %i of all the client is not told that status', async (code) => {
    const { thrown } = await after([status(code), status(code), status(code)]);
    expect([502, 503]).toContain((thrown as GatewayError).status);
  });
});

test('a model that is known to lack what is asked is asked after the others of its rank, and is asked', async () => {
  const wanted: readonly Wanted[] = [
    { id: 'plain', known: { cannot: ['reasoning'] } },
    { id: 'plain-too', known: { cannot: ['reasoning'] } },
    { id: 'thinks', known: { can: ['reasoning'] } },
  ];
  for (let round = 0; round < 20; round += 1) {
    const { attempts, attempted } = setUp(wanted, () => Promise.reject(status(503)));
    const { call } = testCall({ model: 'm', settings: { reasoning: { effort: 'high' } } });
    // oxlint-disable-next-line no-await-in-loop -- each sees the channels drawn anew
    await attempts(call).catch(() => {});
    expect(attempted[0]).toBe('thinks/a');
    expect(attempted.toSorted()).toEqual(['plain-too/a', 'plain/a', 'thinks/a']);
  }
});

describe('a deadline', () => {
  test('of an attempt gives it up, up to the provider, and blames it; the next one has its own', async () => {
    let ended = false;
    const { attempts, health, running } = setUp(
      [{ id: 'x', priority: 1 }, { id: 'y' }],
      (name, call) => {
        if (name === 'y/a') return Promise.resolve(of(event));
        call.onEnd(() => (ended = true));
        return new Promise(() => {});
      },
      { attempt: 200 },
    );
    const reply = attempts(testCall({ model: 'm' }).call);
    await vi.advanceTimersByTimeAsync(199);
    expect(ended).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(ended).toBe(true);
    (await reply).subscribe();
    expect(health.outcomes).toEqual(['x/a failed', 'y/a succeeded']);
    expect(health.errors).toMatchObject([{ code: 'upstream_timeout', status: 504 }]);
    expect([running(), vi.getTimerCount()]).toEqual([0, 0]);
  });

  test('for the first token holds for streams, and for a channel where it has its own', async () => {
    const channels = [{ id: 'x', firstTokenTimeout: 50 }];
    const took = async (stream: boolean): Promise<number> => {
      const { attempts } = setUp(channels, () => new Promise(() => {}), { firstToken: 5_000, attempt: 700 });
      const begun = performance.now();
      let at = 0;
      attempts(testCall({ model: 'm', stream }).call).catch(() => (at = performance.now() - begun));
      await vi.advanceTimersByTimeAsync(1_000);
      return at;
    };
    expect([await took(true), await took(false)]).toEqual([50, 700]);
  });

  test('of the whole call ends it, and does not blame whoever had too little time', async () => {
    const { attempts, attempted, health } = setUp(two, () => new Promise(() => {}), {
      total: 250,
      attempt: 200,
    });
    let thrown: unknown;
    attempts(testCall({ model: 'm' }).call).catch((error: unknown) => (thrown = error));
    await vi.advanceTimersByTimeAsync(249);
    expect(thrown).toBeUndefined();
    await vi.advanceTimersByTimeAsync(1);
    expect(thrown).toMatchObject({ code: 'upstream_timeout', status: 504 });
    expect(attempted).toHaveLength(2);
    expect(health.outcomes.map((outcome) => outcome.split(' ')[1])).toEqual(['failed', 'left']);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('does not cut a reply that has begun', async () => {
    const { attempts, health } = setUp(two, () => Promise.resolve(NEVER), {
      total: 50,
      attempt: 50,
      firstToken: 50,
    });
    const subscription = (await attempts(testCall({ model: 'm' }).call)).subscribe();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(health.outcomes).toEqual([]);
    subscription.unsubscribe();
    expect(health.outcomes).toEqual([expect.stringContaining('left')]);
  });
});

describe('where every target is held back', () => {
  const held = (standing: 'cooling' | 'resting', wait: number) => {
    const world = setUp([{ id: 'x' }, { id: 'y' }], () => Promise.resolve(of(event)));
    for (const name of ['x/a', 'y/a']) {
      world.health.waits.set(name, name === 'x/a' ? wait : wait + 5_000);
      world.health.standings.set(name, standing);
      if (standing === 'cooling') world.health.closed.add(name);
    }
    return world;
  };

  test('by a limit the client gets 429, and when to come back', async () => {
    const { attempts, attempted } = held('cooling', 7_200);
    await expect(attempts(testCall({ model: 'm' }).call)).rejects.toMatchObject({
      code: 'rate_limit_exceeded',
      status: 429,
      origin: 'upstream',
      retryAfter: 8,
    });
    expect(attempted).toEqual([]);
  });

  test('by failures the least bad one is tried; where nobody may find out, the client gets 503', async () => {
    const world = held('resting', 7_200);
    (await world.attempts(testCall({ model: 'm' }).call)).subscribe();
    expect(world.attempted).toEqual(['x/a']);
    for (const name of ['x/a', 'y/a']) world.health.closed.add(name);
    await expect(world.attempts(testCall({ model: 'm' }).call)).rejects.toMatchObject({
      code: 'no_available_channel',
      status: 503,
      retryAfter: 8,
    });
  });

  test('for a moment only, the call waits', async () => {
    const { attempts, health, attempted } = held('cooling', 400);
    const reply = attempts(testCall({ model: 'm' }).call);
    await vi.advanceTimersByTimeAsync(300);
    expect(attempted).toEqual([]);
    health.waits.clear();
    health.standings.clear();
    health.closed.clear();
    await vi.advanceTimersByTimeAsync(101);
    (await reply).subscribe();
    expect(attempted).toHaveLength(1);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('for as long as a call waits, and a moment more: what clocks and timers add does not count', async () => {
    const { attempts, health, attempted } = held('cooling', 1_000);
    const reply = attempts(testCall({ model: 'm' }).call);
    reply.catch(() => {});
    health.waits.set('x/a', 0.4);
    await vi.advanceTimersByTimeAsync(1_001);
    expect(attempted).toEqual([]);
    health.closed.clear();
    health.waits.clear();
    await vi.advanceTimersByTimeAsync(100);
    (await reply).subscribe();
    expect(attempted).toHaveLength(1);
  });

  test('again and again, the call waits no longer than once for as long as it may', async () => {
    const { attempts, attempted } = held('cooling', 400);
    let thrown: unknown;
    attempts(testCall({ model: 'm' }).call).catch((error: unknown) => (thrown = error));
    // Each time it looks again, the target asks for as long a wait as before: two of them fit.
    await vi.advanceTimersByTimeAsync(801);
    expect(thrown).toBeUndefined();
    await vi.advanceTimersByTimeAsync(2);
    expect(thrown).toMatchObject({ code: 'rate_limit_exceeded', status: 429, retryAfter: 1 });
    expect([attempted, vi.getTimerCount()]).toEqual([[], 0]);
  });

  test('a client that leaves while its call waits leaves nothing behind', async () => {
    const { attempts, attempted } = held('cooling', 400);
    const { call, exchange } = testCall({ model: 'm' });
    const reply = attempts(call);
    const refused = reply.catch((error: unknown) => error);
    await vi.advanceTimersByTimeAsync(100);
    exchange.end();
    expect(await refused).toMatchObject({ code: 'client_closed_request' });
    expect([attempted, vi.getTimerCount()]).toEqual([[], 0]);
  });
});

describe('a hedged call', () => {
  const channels: readonly Wanted[] = [{ id: 'x', priority: 1 }, { id: 'y' }, { id: 'z', priority: -1 }];
  const hedge = { after: 20, most: 2 };
  const wait = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

  test('is sent nowhere else once it is answered, however long its stream lasts', async () => {
    const { attempts, attempted, running } = setUp(channels, () => Promise.resolve(NEVER), { hedge });
    const { call, exchange } = testCall({ model: 'm', stream: true });
    const stream = (await attempts(call)).subscribe();
    await vi.advanceTimersByTimeAsync(100 * hedge.after);
    expect([attempted, running(), vi.getTimerCount()]).toEqual([['x/a'], 1, 0]);
    stream.unsubscribe();
    exchange.end();
    expect(running()).toBe(0);
  });

  test('is sent nowhere else once the second target has answered', async () => {
    const { attempts, attempted, running } = setUp(
      channels,
      (name) => (name === 'x/a' ? new Promise(() => {}) : Promise.resolve(NEVER)),
      {
        hedge,
      },
    );
    const { call, exchange } = testCall({ model: 'm', stream: true });
    const reply = attempts(call);
    await vi.advanceTimersByTimeAsync(hedge.after);
    (await reply).subscribe();
    await vi.advanceTimersByTimeAsync(100 * hedge.after);
    expect([attempted, running(), vi.getTimerCount()]).toEqual([['x/a', 'y/a'], 1, 0]);
    exchange.end();
  });

  test('that failed everywhere is sent nowhere else', async () => {
    const { attempts, attempted } = setUp(channels, () => wait(5).then(() => Promise.reject(status(400))), {
      hedge,
    });
    const { call, exchange } = testCall({ model: 'm', stream: true });
    const failed = attempts(call).catch((error: unknown) => error);
    await vi.advanceTimersByTimeAsync(100 * hedge.after);
    expect(await failed).toMatchObject({ status: 400 });
    expect([attempted, vi.getTimerCount()]).toEqual([['x/a'], 0]);
    exchange.end();
  });
});

describe('whatever happens', () => {
  type Script =
    | 'ok'
    | 'breaks'
    | 'goes on'
    | 'silent'
    | 'deaf'
    | 'late'
    | 400
    | 401
    | 409
    | 429
    | 500
    | 'stale';
  const scripts = fc.constantFrom<Script>(
    'ok',
    'breaks',
    'goes on',
    'silent',
    'deaf',
    'late',
    400,
    401,
    409,
    429,
    500,
    'stale',
  );

  const play = async (script: Script, call: Call): Promise<Observable<GatewayEvent>> => {
    const wait = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));
    switch (script) {
      case 'ok':
        await wait(30);
        return of(event);
      case 'breaks':
        return throwError(() => status(500));
      case 'goes on':
        await wait(10);
        return NEVER;
      case 'silent':
        return new Promise((_resolve, reject) => {
          call.onEnd(() => reject(new GatewayError('client_closed_request', 'left')));
        });
      case 'deaf':
        return new Promise(() => {});
      case 'late':
        await wait(500);
        return NEVER;
      case 'stale':
        await wait(5);
        throw new GatewayError('upstream_cut', 'closed', { origin: 'upstream', staleConnection: true });
      default:
        await wait(15);
        throw status(script);
    }
  };

  test('health and load hear once of each attempt, and no timer stays', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(scripts, { minLength: 1, maxLength: 8 }),
        fc.integer({ min: 0, max: 400 }),
        fc.boolean(),
        fc.integer({ min: 1, max: 5 }),
        async (plays, leaves, hedged, most) => {
          const left = [...plays];
          const world = setUp(
            [{ id: 'x', keys: ['a', 'b'] }, { id: 'y' }, { id: 'z', priority: -1 }],
            (_name, call) => play(left.shift() ?? 'ok', call),
            { attempts: most, attempt: 100, total: 300, hedge: hedged ? { after: 20, most: 2 } : false },
          );
          const { call, exchange } = testCall({ model: 'm', stream: true });
          let settled = 0;
          world.attempts(call).then(
            (reply) => {
              settled += 1;
              reply.subscribe({ error: () => {} });
            },
            () => (settled += 1),
          );
          await vi.advanceTimersByTimeAsync(leaves);
          exchange.end();
          await vi.advanceTimersByTimeAsync(1_000);
          expect([world.running(), world.health.open, world.health.doubled]).toEqual([0, 0, 0]);
          expect([settled, vi.getTimerCount()]).toEqual([1, 0]);
          const stale = plays.filter((script) => script === 'stale').length;
          expect(world.attempted.length).toBeLessThanOrEqual(most + stale);
        },
      ),
      { numRuns: tries(300) },
    );
  });
});
