import { of } from 'rxjs';
import { GatewayError, type ApiKey, type GatewayEvent, type ModelTraits, type RateVerdict } from 'sluice';
import { definePlugin, type Call, type InternalTools } from 'sluice/internal';
import {
  ended,
  fail,
  reply,
  testPlugins,
  virtualClock,
  type CallOptions,
  type Outcome,
  type RunOptions,
} from 'sluice/testing';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { Rates } from '../../core/money/rates/index.ts';
import { accountOf } from '../../core/money/account/index.ts';
import { MemoryRates } from '../../core/money/rates/memory.ts';
import rateLimit from '../../plugins/rate-limit/index.ts';
import { between } from './_between.ts';

type Limits = Partial<Pick<ApiKey, 'requestsPerMinute' | 'tokensPerMinute' | 'concurrency'>>;

const head: GatewayEvent = { type: 'head', id: '1', model: 'x' };
const used = (input: number, output: number) => ended({ usage: { input, output } }, 'Hello.');
const longest = 2 ** 30;

/** What the ordinary request of these tests is estimated at, besides its limit of the output. */
const input = 6;

/** A gateway's worth of calls with one key. `remaining` asks how the limit of tokens stands. */
async function gatewayFor(
  limits: Limits,
  options: Parameters<typeof rateLimit>[0] = {},
  rates: Rates = new MemoryRates(),
  more: Parameters<typeof testPlugins>[0] = [],
  traits: ModelTraits = {},
) {
  const plugins = [rateLimit(options), ...(Array.isArray(more) ? more : [more])];
  const tested = await testPlugins(plugins, {
    tools: { rates },
    channels: { script: { models: ['*'], traits } },
  });
  onTestFinished(() => tested.close());
  const key = { id: 'key_1', ...limits };
  const ask = (run: RunOptions = {}, call: CallOptions = {}): Promise<Outcome> =>
    tested.run({ key, ...call }, run);
  const remaining = async (): Promise<number | undefined> =>
    (await rates.take([{ subject: 'key:key_1:tokens', limit: limits.tokensPerMinute ?? 0, cost: 0 }]))
      .states[0]?.remaining;
  /** Begins a call that runs until its client leaves. */
  const begin = (): (() => Promise<Outcome>) => {
    const client = new AbortController();
    const running = ask({ reply: [head, { wait: longest }], signal: client.signal });
    return () => {
      client.abort();
      return running;
    };
  };
  return { ask, begin, remaining };
}

const count: CallOptions = { operation: 'count-tokens', format: 'messages' };

describe('a key without limits', () => {
  test('costs nothing: no store is asked, and the reply goes through as it is', async () => {
    const take = vi.fn<Rates['take']>();
    const rates: Rates = { take, state: 'ok', close: async () => {} };
    const { plugins, passed } = between(rateLimit());
    const tested = await testPlugins(plugins, { tools: { rates } });
    onTestFinished(() => tested.close());
    expect(await tested.run({ key: {} })).toMatchObject({ status: 200 });
    expect(passed[0]?.got).toBeDefined();
    expect(passed[0]?.gave).toBe(passed[0]?.got);
    expect(take).not.toHaveBeenCalled();
  });
});

describe('requests a minute', () => {
  test('beyond the limit are refused with 429 and the time to wait', async () => {
    const { ask } = await gatewayFor({ requestsPerMinute: 2 });
    await ask();
    await ask();
    const { error, sent } = await ask();
    expect(sent).toEqual([]);
    expect(error).toMatchObject({
      status: 429,
      code: 'rate_limit_exceeded',
      origin: 'client',
      retryable: true,
    });
    expect(error?.retryAfter).toBeGreaterThan(55);
    expect(error?.retryAfter).toBeLessThanOrEqual(61);
    expect(error?.message).toBe(
      `This API key may be used for 2 requests a minute. Try again in ${error?.retryAfter} s.`,
    );
  });

  test('are those that reach a model: lists and what is stored are free', async () => {
    const { ask } = await gatewayFor({ requestsPerMinute: 1, concurrency: 1 });
    for (let number = 0; number < 5; number += 1) {
      expect(await ask({}, { operation: 'list-models' })).toMatchObject({ status: 200 });
      expect(await ask({}, { operation: 'state' })).toMatchObject({ status: 200 });
    }
    expect((await ask({}, count)).error).toBeUndefined();
    expect(await ask()).toMatchObject({ status: 429 });
  });

  test('that a key does not limit are limited by the default, which a key of its own mind overrides', async () => {
    const options = { default: { requestsPerMinute: 1 } };
    const plain = await gatewayFor({}, options);
    expect(await plain.ask()).toMatchObject({ status: 200 });
    expect(await plain.ask()).toMatchObject({ status: 429 });
    const other = await gatewayFor({ requestsPerMinute: 2 }, options);
    await other.ask();
    expect(await other.ask()).toMatchObject({ status: 200 });
    expect(await other.ask()).toMatchObject({ status: 429 });
  });
});

describe('tokens a minute', () => {
  test('are estimated before the call, and refused where they might not fit', async () => {
    const { ask, remaining } = await gatewayFor({ tokensPerMinute: 1_500 });
    const seen: (number | undefined)[] = [];
    const answer = async () => {
      seen.push(await remaining());
      return [head];
    };
    await ask({ reply: answer }, { settings: { maxOutput: 400, choices: 2 } });
    expect(seen).toEqual([700 - input]);
    const { error } = await ask({ reply: answer }, { settings: { maxOutput: 1_000 } });
    expect(error?.message).toMatch(
      new RegExp(
        `^This API key may be used for 1500 tokens a minute, and this request may need ${1_000 + input}\\. Try again in \\d+ s\\.$`,
      ),
    );
  });

  test('count the input of every request that a call of several answers takes', async () => {
    const { ask, remaining } = await gatewayFor({ tokensPerMinute: 1_500 }, {}, new MemoryRates(), [], {
      refuses: ['choices'],
    });
    let seen: number | undefined;
    const answer = async () => {
      seen = await remaining();
      return [head];
    };
    await ask({ reply: answer }, { settings: { maxOutput: 100, choices: 4 } });
    expect(seen).toBe(1_500 - 4 * (100 + input));
  });

  test('are counted as they were used, once the reply has ended', async () => {
    const { ask, remaining } = await gatewayFor({ tokensPerMinute: 10_000 });
    await ask({ reply: [...used(100, 1), ...used(100, 50)] });
    expect(await remaining()).toBe(9_850);
    await ask({ reply: used(6_000, 3_000) });
    expect(await remaining()).toBe(850);
  });

  test('are what the provider told last, also where more of the reply follows', async () => {
    const { ask, remaining } = await gatewayFor({ tokensPerMinute: 10_000 });
    await ask({ reply: [...used(100, 50), head] });
    expect(await remaining()).toBe(9_850);
  });

  test('of a call without a limit of its own are guessed as the operator says', async () => {
    const { ask, remaining } = await gatewayFor({ tokensPerMinute: 10_000 }, { output: 5_000 });
    await ask({ reply: [head] });
    expect(await remaining()).toBe(5_000 - input);
  });

  test('of a call that failed are given back', async () => {
    const { ask, remaining } = await gatewayFor({ tokensPerMinute: 10_000 });
    const failing = reply(fail(new GatewayError('upstream_error', 'It failed.')));
    expect((await ask({ reply: failing })).error?.message).toBe('It failed.');
    expect(await remaining()).toBe(10_000);
  });

  test('of a reply that told none are what was charged, else the estimate', async () => {
    const charging = definePlugin({
      name: 'charging',
      stage: 'shape',
      setup: () => async (call: Call, next) => {
        if (call.wire.headers['x-charged'] !== undefined)
          call.onEnd(() => accountOf(call).charge({ amounts: { microDollars: 0, tokens: 70 } }));
        return next(call);
      },
    });
    const { ask, remaining } = await gatewayFor({ tokensPerMinute: 10_000 }, {}, undefined, charging());
    await ask({ reply: [head] }, { headers: { 'x-charged': 'yes' } });
    expect(await remaining()).toBe(9_930);
    await ask({ reply: [head] }, { settings: { maxOutput: 930 - input } });
    expect(await remaining()).toBe(9_000);
  });

  test('of a client that left are what was used until then', async () => {
    const { ask, remaining } = await gatewayFor({ tokensPerMinute: 10_000 });
    const begun = [...used(20, 5), { wait: longest }];
    await ask({ reply: begun, leaveAfter: begun.length - 1 });
    expect(await remaining()).toBe(9_975);
  });

  test('are not counted for a request that only counts them', async () => {
    const { ask, remaining } = await gatewayFor({ tokensPerMinute: 10_000 });
    expect((await ask({}, count)).sent).toHaveLength(1);
    expect(await remaining()).toBe(10_000);
  });
});

describe('calls at the same time', () => {
  test('beyond the limit are refused; a stream runs until its end', async () => {
    const { begin, ask } = await gatewayFor({ concurrency: 2 });
    const [leave] = [begin(), begin()];
    const refused = await ask();
    expect(refused.error).toMatchObject({
      status: 429,
      retryAfter: 1,
      message: 'This API key may be used for 2 calls at the same time. Try again when one of them has ended.',
    });
    await leave();
    expect(await ask()).toMatchObject({ status: 200 });
    expect(await ask()).toMatchObject({ status: 200 });
  });

  test('are free again when calls fail, or end before they were admitted', async () => {
    const { ask } = await gatewayFor({ concurrency: 1 });
    expect((await ask({ reply: reply(fail(new Error('no'))) })).status).toBe(500);
    expect((await ask({ signal: AbortSignal.abort() })).error?.code).toBe('client_closed_request');
    expect(await ask()).toMatchObject({ status: 200 });
  });

  test('include one that goes on without its client, until it has ended', async () => {
    const clock = virtualClock();
    onTestFinished(() => clock.restore());
    const background = definePlugin({
      name: 'background',
      stage: 'shape',
      setup: (_options, { detached }: InternalTools) =>
        async function inBackground(call, next) {
          if (call.wire.headers['x-background'] === undefined) return next(call);
          const own = detached.detach(call as Parameters<typeof detached.detach>[0]);
          (await own.send(next)).subscribe({ complete: () => own.end() });
          return of(head);
        },
    });
    const { ask, remaining } = await gatewayFor(
      { concurrency: 1, tokensPerMinute: 10_000 },
      {},
      undefined,
      background(),
    );
    const slow = [{ wait: 1_000 }, ...used(400, 100)];
    expect((await ask({ reply: slow }, { headers: { 'x-background': 'yes' } })).events).toEqual([head]);
    expect(await ask()).toMatchObject({ status: 429 });
    await clock.advance(1_000);
    expect(await remaining()).toBe(9_500);
    expect(await ask()).toMatchObject({ status: 200 });
  });
});

test('calls whose limits nobody can check are refused with 503 where the operator wants that', async () => {
  const verdict: RateVerdict = { allowed: false, states: [], retryMs: 1_000, degraded: true };
  const rates: Rates = { take: async () => verdict, state: 'degraded', close: async () => {} };
  const { ask } = await gatewayFor({ requestsPerMinute: 5 }, {}, rates);
  expect((await ask()).error).toMatchObject({ status: 503, code: 'server_is_overloaded', retryAfter: 1 });
});

describe('the headers of a reply', () => {
  const standing = ({ headers }: Outcome): Record<string, string | undefined> =>
    Object.fromEntries(
      Object.entries(headers).filter(([name]) => name.startsWith('x-ratelimit-') && !name.includes('reset')),
    );
  const chat: CallOptions = { format: 'chat-completions', settings: { maxOutput: 400 } };

  test('tell how the limits of requests and tokens stand', async () => {
    const { ask } = await gatewayFor({ requestsPerMinute: 3, tokensPerMinute: 10_000 });
    expect(standing(await ask({ reply: used(100, 50) }, chat))).toEqual({
      'x-ratelimit-limit-requests': '3',
      'x-ratelimit-remaining-requests': '2',
      'x-ratelimit-limit-tokens': '10000',
      'x-ratelimit-remaining-tokens': String(10_000 - 400 - input),
    });
    expect(standing(await ask({ reply: used(100, 50) }, chat))).toMatchObject({
      'x-ratelimit-remaining-requests': '1',
      'x-ratelimit-remaining-tokens': String(9_850 - 400 - input),
    });
  });

  test('tell nothing of limits that a key does not have', async () => {
    const { ask } = await gatewayFor({ concurrency: 2 });
    expect(standing(await ask({}, chat))).toEqual({});
    const requests = await gatewayFor({ requestsPerMinute: 1 });
    await requests.ask({}, chat);
    expect(standing(await requests.ask({}, chat))).toEqual({
      'x-ratelimit-limit-requests': '1',
      'x-ratelimit-remaining-requests': '0',
    });
  });
});
