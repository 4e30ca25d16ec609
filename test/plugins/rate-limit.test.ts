import { EMPTY, NEVER, of, Subject, type Observable } from 'rxjs';
import { describe, expect, test, vi } from 'vitest';
import { caller } from '../../core/sdk/caller.ts';
import { charge } from '../../core/money/charge.ts';
import { DetachedCalls } from '../../core/call/detached.ts';
import type { Next } from '../../core/sdk/define.ts';
import { GatewayError } from '../../core/sdk/errors.ts';
import type { GatewayEvent } from '../../core/model/event.ts';
import type { ApiKey } from '../../core/sdk/api-key.ts';
import { MemoryRates } from '../../core/money/rates/memory.ts';
import type { Rates, RateVerdict } from '../../core/money/rates/index.ts';
import rateLimit from '../../plugins/rate-limit/index.ts';
import { all, answering, handlerOf, testCall, testTools, type CallOptions } from './_call.ts';

type Limits = Partial<Pick<ApiKey, 'requestsPerMinute' | 'tokensPerMinute' | 'concurrency'>>;

const head: GatewayEvent = { type: 'head', id: '1', model: 'x' };
const usage = (input: number, output: number): GatewayEvent => ({
  type: 'usage',
  usage: { input, output, cacheRead: 0, cacheWrite: 0, reasoning: 0 },
});

/** A gateway's worth of calls with one key. `remaining` asks how the limit of tokens stands. */
async function gatewayFor(
  limits: Limits,
  options: Parameters<typeof rateLimit>[0] = {},
  rates: Rates = new MemoryRates(),
) {
  const key = { id: 'key_1', name: 'test', ...limits } as unknown as ApiKey;
  const handler = await handlerOf(rateLimit, testTools({ rates }).tools, options);
  const begin = (next: Next = answering(head), call: CallOptions = {}) => {
    const made = testCall({ model: 'x', ...call });
    made.call.set(caller, key);
    return { ...made, reply: handler(made.call, next) };
  };
  /** A whole call, which ends as the front end ends it. */
  const ask = async (next: Next = answering(head), call: CallOptions = {}): Promise<GatewayEvent[]> => {
    const { reply, exchange } = begin(next, call);
    try {
      return await all(await reply);
    } finally {
      exchange.end();
      await Promise.resolve();
    }
  };
  const remaining = async (): Promise<number | undefined> =>
    (await rates.take([{ subject: 'key:key_1:tokens', limit: limits.tokensPerMinute ?? 0, cost: 0 }]))
      .states[0]?.remaining;
  return { begin, ask, remaining, rates };
}

const ending = (...events: GatewayEvent[]): Next => answering(head, ...events);
const replying =
  (reply: Observable<GatewayEvent>): Next =>
  async () =>
    reply;

describe('a key without limits', () => {
  test('costs nothing: no store is asked, and the reply goes through as it is', async () => {
    const take = vi.fn<Rates['take']>();
    const rates: Rates = { take, state: 'ok', close: async () => {} };
    const { begin } = await gatewayFor({}, {}, rates);
    const reply = of(head);
    expect(await begin(replying(reply)).reply).toBe(reply);
    expect(take).not.toHaveBeenCalled();
  });
});

describe('requests a minute', () => {
  test('beyond the limit are refused with 429 and the time to wait', async () => {
    const { ask } = await gatewayFor({ requestsPerMinute: 2 });
    await ask();
    await ask();
    const error: unknown = await ask().catch((thrown) => thrown);
    expect(error).toMatchObject({
      status: 429,
      code: 'rate_limit_exceeded',
      origin: 'client',
      retryable: true,
    });
    const { retryAfter, message } = error as GatewayError;
    expect(retryAfter).toBeGreaterThan(55);
    expect(retryAfter).toBeLessThanOrEqual(61);
    expect(message).toBe(`This API key may be used for 2 requests a minute. Try again in ${retryAfter} s.`);
  });

  test('are those that reach a model: lists and what is stored are free', async () => {
    const { ask } = await gatewayFor({ requestsPerMinute: 1, concurrency: 1 });
    for (let number = 0; number < 5; number += 1) {
      await ask(undefined, { operation: 'list-models' });
      await ask(undefined, { operation: 'state' });
    }
    await ask(undefined, { operation: 'count-tokens' });
    await expect(ask()).rejects.toMatchObject({ status: 429 });
  });

  test('that a key does not limit are limited by the default, which a key of its own mind overrides', async () => {
    const options = { default: { requestsPerMinute: 1 } };
    const plain = await gatewayFor({}, options);
    await plain.ask();
    await expect(plain.ask()).rejects.toMatchObject({ status: 429 });
    const other = await gatewayFor({ requestsPerMinute: 2 }, options);
    await other.ask();
    await other.ask();
    await expect(other.ask()).rejects.toMatchObject({ status: 429 });
  });
});

describe('tokens a minute', () => {
  test('are estimated before the call, and refused where they might not fit', async () => {
    const { ask, remaining } = await gatewayFor({ tokensPerMinute: 1_500 });
    const seen: (number | undefined)[] = [];
    const next: Next = async () => {
      seen.push(await remaining());
      return of(head);
    };
    await ask(next, { settings: { maxOutput: 400, choices: 2 } });
    expect(seen).toEqual([700]);
    await expect(ask(next, { settings: { maxOutput: 1_000 } })).rejects.toThrow(
      /^This API key may be used for 1500 tokens a minute, and this request may need 1000\. Try again in \d+ s\.$/,
    );
  });

  test('are counted as they were used, once the reply has ended', async () => {
    const { ask, remaining } = await gatewayFor({ tokensPerMinute: 10_000 });
    await ask(ending(usage(100, 1), usage(100, 50)));
    expect(await remaining()).toBe(9_850);
    await ask(ending(usage(6_000, 3_000)));
    expect(await remaining()).toBe(850);
  });

  test('of a call that failed are given back', async () => {
    const { ask, remaining } = await gatewayFor({ tokensPerMinute: 10_000 });
    const failing: Next = () => Promise.reject(new GatewayError('upstream_error', 'It failed.'));
    await expect(ask(failing)).rejects.toThrow('It failed.');
    expect(await remaining()).toBe(10_000);
  });

  test('of a reply that told none are what was charged, else the estimate', async () => {
    const { ask, begin, remaining } = await gatewayFor({ tokensPerMinute: 10_000 });
    const { call, exchange, reply } = begin();
    await all(await reply);
    call.onEnd(() => call.set(charge, { amounts: { microDollars: 0, tokens: 70 } }));
    exchange.end();
    await Promise.resolve();
    expect(await remaining()).toBe(9_930);
    await ask(undefined, { settings: { maxOutput: 930 } });
    expect(await remaining()).toBe(9_000);
  });

  test('of a client that left are what was used until then', async () => {
    const { begin, remaining } = await gatewayFor({ tokensPerMinute: 10_000 });
    const events = new Subject<GatewayEvent>();
    const { exchange, reply } = begin(replying(events));
    const subscription = (await reply).subscribe();
    events.next(usage(20, 5));
    subscription.unsubscribe();
    exchange.end();
    await Promise.resolve();
    expect(await remaining()).toBe(9_975);
  });

  test('are not counted for a request that only counts them', async () => {
    const { ask, remaining } = await gatewayFor({ tokensPerMinute: 10_000 });
    await ask(undefined, { operation: 'count-tokens' });
    expect(await remaining()).toBe(10_000);
  });
});

describe('calls at the same time', () => {
  test('beyond the limit are refused; a stream runs until its end', async () => {
    const { begin, ask } = await gatewayFor({ concurrency: 2 });
    const running = [begin(replying(NEVER)), begin(replying(NEVER))];
    await Promise.all(running.map(({ reply }) => reply));
    await expect(ask()).rejects.toMatchObject({
      status: 429,
      retryAfter: 1,
      message: 'This API key may be used for 2 calls at the same time. Try again when one of them has ended.',
    });
    running[0]?.exchange.end();
    await Promise.resolve();
    await ask();
    await ask();
  });

  test('are free again when calls fail, or end before they were admitted', async () => {
    const { begin, ask } = await gatewayFor({ concurrency: 1 });
    await expect(ask(() => Promise.reject(new Error('no')))).rejects.toThrow('no');
    const { exchange, reply } = begin(replying(EMPTY));
    exchange.end();
    await reply;
    await ask();
  });

  test('include one that goes on without its client, until it has ended', async () => {
    const { begin, ask, remaining } = await gatewayFor({ concurrency: 1, tokensPerMinute: 10_000 });
    const events = new Subject<GatewayEvent>();
    const inBackground: Next = async (call) => {
      const own = new DetachedCalls().detach(call);
      const reply = await own.send(replying(events));
      reply.subscribe({ complete: () => own.end() });
      return of(head);
    };
    const { exchange, reply } = begin(inBackground);
    await all(await reply);
    exchange.end();
    await Promise.resolve();
    await expect(ask()).rejects.toMatchObject({ status: 429 });
    events.next(usage(400, 100));
    events.complete();
    await Promise.resolve();
    expect(await remaining()).toBe(9_500);
    await ask();
  });
});

test('calls whose limits nobody can check are refused with 503 where the operator wants that', async () => {
  const verdict: RateVerdict = { allowed: false, states: [], retryMs: 1_000, degraded: true };
  const rates: Rates = { take: async () => verdict, state: 'degraded', close: async () => {} };
  const { ask } = await gatewayFor({ requestsPerMinute: 5 }, {}, rates);
  await expect(ask()).rejects.toMatchObject({ status: 503, code: 'server_is_overloaded', retryAfter: 1 });
});
