import { setImmediate as nextTurn } from 'node:timers/promises';
import { EMPTY, NEVER, of, throwError, concat, type Observable } from 'rxjs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { caller } from '../../../core/sdk/caller.ts';
import { charge, type Charge } from '../../../core/money/charge.ts';
import { type Detached, DetachedCalls } from '../../../core/call/detached.ts';
import { GatewayError } from '../../../core/sdk/errors.ts';
import type { GatewayEvent } from '../../../core/model/event.ts';
import { createPrices } from '../../../core/money/prices/index.ts';
import { pricesSchema } from '../../../core/settings/prices.ts';
import { askedAt, failedAttempts } from '../../../core/routing/attempts.ts';
import type { ApiKey } from '../../../core/sdk/api-key.ts';
import type { Settlement } from '../../../core/money/ledger/index.ts';
import { openUsageLog } from '../../../core/money/usage-log/open.ts';
import { type UsageLog } from '../../../core/money/usage-log/index.ts';
import demo from '../../../channels/demo/index.ts';
import openrouter from '../../../channels/openrouter.ts';
import logging from '../../../plugins/logging.ts';
import usageLog from '../../../plugins/usage-log/index.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { startUpstream } from '../../support/upstream.ts';
import { handlerOf, testCall, testTools, type CallOptions } from '../_call.ts';

const usage = { input: 12, output: 3, cacheRead: 2, cacheWrite: 0, reasoning: 1 };
const reply: readonly GatewayEvent[] = [
  { type: 'request', model: 'x', stream: true },
  { type: 'attempt', channel: 'first', model: 'x-upstream', failure: 'upstream_timeout' },
  { type: 'attempt', channel: 'second', model: 'x-2', format: 'messages', passThrough: false },
  { type: 'loss', loss: { path: 'seed', kind: 'setting', from: 'plain', to: 'messages' } },
  { type: 'head', id: '1', model: 'x-2' },
  { type: 'reasoning-delta', block: 0, choice: 0, text: 'hm' },
  { type: 'text-delta', block: 1, choice: 0, text: 'a secret ' },
  { type: 'text-delta', block: 1, choice: 0, text: 'thought' },
  { type: 'tool-start', block: 2, choice: 0, id: 't', name: 'look' },
  { type: 'tool-delta', block: 2, choice: 0, input: '{"where":"here"}' },
  { type: 'usage', usage },
];
const pricesOf = () => createPrices(pricesSchema.parse({ x: { input: 1, output: 10 } }));

interface Given {
  readonly call?: CallOptions;
  readonly options?: Parameters<typeof usageLog>[0];
  readonly events?: () => Observable<GatewayEvent>;
  readonly charged?: Charge;
  /** The client reads the reply to its end, or leaves when it has begun. */
  readonly leaves?: boolean;
}

/** What is booked for one call. */
async function bookedFor({
  call: asked = {},
  options,
  events = () => of(...reply),
  charged,
  leaves = false,
}: Given): Promise<Settlement[]> {
  const booked: Settlement[] = [];
  const closers: (() => void | Promise<void>)[] = [];
  const { tools } = testTools({
    prices: pricesOf(),
    bookkeeper: { book: (settlement: Settlement) => void booked.push(settlement) } as never,
    usageLog: {} as UsageLog,
    onClose: (job) => void closers.push(job),
  });
  const handler = await handlerOf(usageLog, tools, options);
  const { call, exchange } = testCall({ model: 'x-high', stream: true, ...asked });
  call.set(caller, { id: 'key_1' } as ApiKey);
  // As a plugin behind this one does, whose job comes later.
  const next = async (): Promise<Observable<GatewayEvent>> => {
    call.onEnd(() => void (charged !== undefined && call.set(charge, charged)));
    return events();
  };
  try {
    const subscription = (await handler(call, next)).subscribe({ error: () => {} });
    if (leaves) subscription.unsubscribe();
  } catch {
    // The front end answers with it.
  }
  expect(booked, 'nothing is booked before the call has ended').toEqual([]);
  exchange.end();
  // Closing waits for those that end now.
  for (const close of closers) await close();
  return booked;
}

async function recordFor(given: Given): Promise<Settlement['record'] | undefined> {
  const [settlement, ...more] = await bookedFor(given);
  expect(more).toEqual([]);
  return settlement?.record;
}

describe('one record', () => {
  test('says who called, what was asked, who answered, what it used and cost, and how long it took', async () => {
    const before = Date.now();
    const price = { model: 'x', input: 1, output: 10 };
    const charged = { amounts: { microDollars: 42, tokens: 15 }, usage, price, reservation: 'res_1' };
    const [settlement] = await bookedFor({ charged });
    expect(settlement).toEqual({
      keyId: 'key_1',
      reservation: 'res_1',
      charged: { microDollars: 42, tokens: 15 },
      record: {
        id: 'req_test',
        at: expect.any(Number),
        keyId: 'key_1',
        ip: '192.0.2.7',
        operation: 'chat',
        format: 'plain',
        upstreamFormat: 'messages',
        model: 'x-high',
        upstreamModel: 'x-2',
        channel: 'second',
        stream: true,
        passThrough: false,
        status: 200,
        ended: 'complete',
        ...usage,
        microDollars: 42,
        price,
        ms: expect.any(Number),
        firstMs: expect.any(Number),
        losses: ['seed'],
        attempts: [{ channel: 'first', model: 'x-upstream', failure: 'upstream_timeout' }],
      },
    });
    expect(settlement?.record.at).toBeGreaterThanOrEqual(before - 1);
    expect(settlement?.record.at).toBeLessThanOrEqual(Date.now() + 1);
  });

  test('tells what the call would have cost where nothing charges, and charges nothing', async () => {
    const [settlement] = await bookedFor({});
    expect(settlement).toMatchObject({
      charged: { microDollars: 0, tokens: 0 },
      record: { microDollars: 42 },
    });
    expect(settlement).not.toHaveProperty('reservation');
  });

  test('of a model without a price has tokens and no cost', async () => {
    const charged = { amounts: { microDollars: 0, tokens: 15 }, usage };
    const record = await recordFor({ charged });
    expect(record).toMatchObject(usage);
    expect(record).not.toHaveProperty('microDollars');
    expect(record).not.toHaveProperty('price');
  });

  test('has the usage that was charged where it was estimated, and none where nothing is to be paid', async () => {
    const estimated = { ...usage, output: 99, estimated: true };
    const amounts = { microDollars: 1, tokens: 111 };
    expect(await recordFor({ charged: { amounts, usage: estimated }, leaves: true })).toMatchObject({
      output: 99,
      estimated: true,
    });
    const nothing = { amounts: { microDollars: 0, tokens: 0 } };
    expect(await recordFor({ charged: nothing })).toMatchObject({ input: 0, output: 0, microDollars: 0 });
  });

  test('is that of a run that goes on when its client has been answered, and there is no second one', async () => {
    const booked: Settlement[] = [];
    const { tools } = testTools({
      prices: pricesOf(),
      bookkeeper: { book: (settlement: Settlement) => void booked.push(settlement) } as never,
    });
    const handler = await handlerOf(usageLog, tools);
    const { call, exchange } = testCall({ model: 'x', stream: false });
    let run: Detached | undefined;
    const answer = await handler(call, async (inner) => {
      run = new DetachedCalls().detach(inner, true);
      return of({ type: 'result', value: { status: 'queued' } });
    });
    answer.subscribe();
    exchange.end();
    await nextTurn();
    expect(booked).toEqual([]);
    const charged = { amounts: { microDollars: 42, tokens: 15 }, usage };
    (await run?.send(async () => of(...reply)))?.subscribe();
    run?.call.set(charge, charged);
    run?.end();
    await nextTurn();
    expect(booked).toMatchObject([
      {
        charged: charged.amounts,
        record: { id: 'req_test', channel: 'second', status: 200, ended: 'complete', ...usage },
      },
    ]);
  });

  test('is followed once where the log wants it too', async () => {
    const booked: Settlement[] = [];
    const { tools, lines } = testTools({
      prices: pricesOf(),
      bookkeeper: { book: (settlement: Settlement) => void booked.push(settlement) } as never,
    });
    const [outer, inner] = [await handlerOf(logging, tools), await handlerOf(usageLog, tools)];
    const { call, exchange } = testCall({ model: 'x' });
    const source = of(...reply);
    let given: Observable<GatewayEvent> | undefined;
    (await outer(call, async (view) => (given = await inner(view, async () => source)))).subscribe();
    expect(given).toBe(source);
    exchange.end();
    await nextTurn();
    expect(lines).toMatchObject([{ channel: 'second', status: 200 }]);
    expect(booked).toMatchObject([{ record: { channel: 'second', status: 200 } }]);
  });
});

describe('a call that did not go well', () => {
  const failing = (error: unknown) => () => {
    throw error;
  };

  test('is recorded with its status, its code and a sentence without secrets', async () => {
    const error = new GatewayError('invalid_value', `The key sk-${'a1B2'.repeat(12)} is wrong.`, {
      param: 'x',
    });
    expect(await recordFor({ events: failing(error) })).toMatchObject({
      status: 400,
      ended: 'error',
      code: 'invalid_value',
      reason: 'The key sk-… is wrong.',
      input: 0,
      microDollars: 0,
    });
  });

  test('before its body was read has no model', async () => {
    const events = failing(new GatewayError('invalid_api_key', 'No.'));
    expect(await recordFor({ call: { model: undefined } as never, events })).toMatchObject({
      status: 401,
      model: '',
    });
  });

  test('in all channels names them', async () => {
    const booked: Settlement[] = [];
    const { tools } = testTools({
      prices: pricesOf(),
      bookkeeper: { book: (settlement: Settlement) => void booked.push(settlement) } as never,
    });
    const handler = await handlerOf(usageLog, tools);
    const { call, exchange } = testCall({ model: 'x' });
    const attempt = { type: 'attempt', channel: 'a', model: 'y', failure: 'upstream_cut' } as const;
    const next = (): Promise<never> => {
      call.set(failedAttempts, [attempt]);
      call.set(askedAt, call.startedAt + 7);
      return Promise.reject(new GatewayError('upstream_cut', 'Cut.', { origin: 'upstream' }));
    };
    await expect(handler(call, next)).rejects.toThrow('Cut.');
    exchange.end();
    await nextTurn();
    expect(booked).toMatchObject([
      {
        record: {
          code: 'upstream_cut',
          channel: 'a',
          gatewayMs: 7,
          attempts: [{ channel: 'a', failure: 'upstream_cut' }],
        },
      },
    ]);
  });

  test('after its reply had begun was interrupted, under the status of a success', async () => {
    const cut = () =>
      concat(
        of(...reply),
        throwError(() => new GatewayError('upstream_cut', 'Cut.')),
      );
    expect(await recordFor({ events: cut })).toMatchObject({
      status: 200,
      ended: 'interrupted',
      code: 'upstream_cut',
    });
    expect(await recordFor({ events: cut, call: { stream: false } })).toMatchObject({
      ended: 'error',
      status: 502,
    });
  });

  test('because its client left is no failure', async () => {
    const begun = () => concat(of(...reply), NEVER);
    expect(await recordFor({ events: begun, leaves: true })).toMatchObject({ status: 200, ended: 'left' });
    const record = await recordFor({ events: () => NEVER, leaves: true });
    expect(record).toMatchObject({ status: 499, ended: 'left' });
    expect(record).not.toHaveProperty('code');
  });
});

describe('what is recorded', () => {
  test('are no model lists and no answers from what is kept, unless they are wanted', async () => {
    for (const operation of ['list-models', 'state'] as const) {
      const given = { call: { operation }, events: () => EMPTY };
      expect(await bookedFor(given)).toEqual([]);
      expect(await bookedFor({ ...given, options: { lists: true } })).toHaveLength(1);
    }
    expect(await bookedFor({ call: { operation: 'count-tokens' } })).toHaveLength(1);
  });

  test('are no bodies', async () => {
    expect(JSON.stringify(await bookedFor({}))).not.toMatch(/thought|hm|where/);
  });

  test('are bodies where they are wanted, redacted and no longer than the limit', async () => {
    const capture = { redact: ['**.effort', '/secret/'] };
    const call = { settings: { reasoning: { effort: 'high' } } as never };
    const record = await recordFor({ call, options: { capture } });
    expect(JSON.parse(record?.request ?? '')).toMatchObject({
      model: 'x-high',
      settings: { reasoning: { effort: '…' } },
    });
    expect(JSON.parse(record?.response ?? '')).toEqual([
      { type: 'reasoning', text: 'hm' },
      { type: 'text', text: 'a … thought' },
      { type: 'tool', name: 'look', text: '{"where":"here"}' },
    ]);

    const short = await recordFor({ options: { capture: { limit: 10 } } });
    expect(short?.request).toBe('{"model":"…');
    expect(short?.response).toHaveLength(11);
    const one = await recordFor({ options: { capture: { request: false } } });
    expect(one).not.toHaveProperty('request');
    expect(one).toHaveProperty('response');
  });

  test('are replies that pass through as the bytes that they were', async () => {
    const frames = (text: string): GatewayEvent => ({
      type: 'frames',
      format: 'plain',
      bytes: Buffer.from(text),
    });
    const events = () => of(frames('data: {"user":"ann"}\n\n'), frames('data: [DONE]\n\n'));
    const record = await recordFor({ events, options: { capture: { redact: ['user'] } } });
    expect(record?.response).toBe('data: {"user":"…"}\n\ndata: …\n\n');
  });
});

test('a record that cannot be made is logged, and ends nothing', async () => {
  const { tools, lines } = testTools({
    prices: pricesOf(),
    bookkeeper: {
      book() {
        throw new Error('No book.');
      },
    } as never,
  });
  const handler = await handlerOf(usageLog, tools);
  const { call, exchange } = testCall({ model: 'x' });
  (await handler(call, async () => of(...reply))).subscribe();
  exchange.end();
  await nextTurn();
  expect(lines).toMatchObject([{ level: 'error', msg: 'a call could not be recorded', id: 'req_test' }]);
});

describe('in a gateway', () => {
  let gateway: TestGateway;
  let log: UsageLog;

  beforeAll(async () => {
    gateway = await startGateway({
      channels: [demo({ models: ['demo'] })],
      prices: { demo: { input: 1, output: 2 } },
      plugins: [usageLog({ capture: {} })],
    });
    log = openUsageLog(gateway.stores);
  });
  afterAll(() => gateway.close());

  const post = async (body: object, key = gateway.key): Promise<Response> => {
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ messages: [{ role: 'user', content: 'hello' }], ...body }),
    });
    await response.text();
    return response;
  };

  test('every call is found in the log within a second, also those that were refused', async () => {
    await post({ model: 'demo' });
    await post({ model: 'demo', stream: true });
    await post({ model: 'demo' }, 'sk-wrong');
    await post({ model: 'nobody' });
    await post({ model: 'demo', temperature: 'hot' });
    await fetch(`${gateway.url}/healthz`);
    await fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${gateway.key}` } });
    await expect.poll(async () => (await log.page({}, 10)).records.length).toBe(5);
    const { records } = await log.page({}, 10);
    expect(records.map(({ status }) => status)).toEqual([400, 503, 401, 200, 200]);
    const [, , stranger, stream, whole] = records;
    expect(stranger).toMatchObject({ code: 'invalid_api_key', model: '' });
    for (const record of [stream, whole]) {
      expect(record).toMatchObject({
        model: 'demo',
        channel: 'demo',
        price: { model: 'demo', input: 1, output: 2 },
        gatewayMs: expect.any(Number),
        firstMs: expect.any(Number),
      });
      expect(record?.microDollars).toBe((record?.input ?? 0) + 2 * (record?.output ?? 0));
      expect(record?.output).toBeGreaterThan(0);
    }
    expect(await log.find(stream?.id ?? '')).toMatchObject({
      request: expect.stringContaining('"hello"'),
      response: expect.stringMatching(/^data: \{/),
    });
  });

  test('a model without a price is named in the log once', async () => {
    const upstream = await startUpstream((_request, response) => {
      response.end(
        '{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}',
      );
    });
    const other = await startGateway({
      channels: [openrouter({ key: 'k', baseUrl: upstream.url, models: ['unpriced'] })],
    });
    try {
      for (let count = 0; count < 3; count += 1) {
        await fetch(`${other.url}/v1/chat/completions`, {
          method: 'POST',
          headers: { authorization: `Bearer ${other.key}`, 'content-type': 'application/json' },
          body: JSON.stringify({ model: 'unpriced', messages: [{ role: 'user', content: 'hello' }] }),
        }).then((response) => response.text());
      }
      const ofOther = openUsageLog(other.stores);
      await expect.poll(async () => (await ofOther.page({}, 10)).records.length).toBe(3);
      expect(other.lines.filter(({ msg }) => String(msg).startsWith('a model has no price'))).toMatchObject([
        { level: 'warn', model: 'unpriced' },
      ]);
    } finally {
      await other.close();
      await upstream.close();
    }
  });
});
