import { of } from 'rxjs';
import { GatewayError, type GatewayEvent, type PluginEntry } from 'sluice';
import { definePlugin, type Call, type InternalTools, type Target } from 'sluice/internal';
import { fail, reply as replyOf, testPlugins } from 'sluice/testing';
import type { CallOptions, RunOptions, Script } from 'sluice/testing';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { Bookkeeper } from '../../../core/money/ledger/index.ts';
import type { UsageLog } from '../../../core/money/usage-log/index.ts';
import type { Charge } from '../../../core/money/account/charge.ts';
import { accountOf } from '../../../core/money/account/index.ts';
import type { Settlement } from '../../../core/money/ledger/index.ts';
import { openUsageLog } from '../../../core/money/usage-log/open.ts';
import demo from '../../../channels/demo/index.ts';
import openrouter from '../../../channels/openrouter.ts';
import logging from '../../../plugins/logging.ts';
import usageLog from '../../../plugins/usage-log/index.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { startUpstream } from '../../support/upstream.ts';
import { between } from '../_between.ts';

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
const silent: Script = [{ wait: 2 ** 30 }];

interface Given extends RunOptions {
  readonly call?: CallOptions;
  readonly options?: Parameters<typeof usageLog>[0];
  readonly charged?: Charge;
}

/** The plugin with the bookkeeper in the hands of the test. */
async function withBooks(
  plugins: readonly PluginEntry[],
  settle = (_settlement: Settlement): void => {},
): Promise<{ readonly booked: Settlement[] } & Awaited<ReturnType<typeof testPlugins>>> {
  const booked: Settlement[] = [];
  const tested = await testPlugins(plugins, {
    settings: { prices: { x: { input: 1, output: 10 } } },
    tools: {
      bookkeeper: {
        enqueue(settlement: Settlement) {
          settle(settlement);
          booked.push(settlement);
        },
      } as unknown as Bookkeeper,
    },
  });
  onTestFinished(() => tested.close());
  return { ...tested, booked };
}

/** Returns the settlement of one call. */
async function bookedFor({ call = {}, options, charged, ...run }: Given): Promise<Settlement[]> {
  // As a plugin behind this one does, whose job comes later.
  const charging = definePlugin({
    name: 'charging',
    stage: 'admit',
    setup: () => async (one: Call, next) => {
      one.onEnd(() => void (charged !== undefined && accountOf(one).charge(charged)));
      return next(one);
    },
  });
  const tested = await withBooks([usageLog(options), charging()]);
  const callOptions = { model: 'x-high', stream: true, key: { id: 'key_1' }, ...call };
  const answer = run.reply ?? reply;
  await tested.run(callOptions, {
    ...run,
    reply(sent, index) {
      expect(tested.booked, 'nothing is booked before the call has ended').toEqual([]);
      return typeof answer === 'function' ? answer(sent, index) : answer;
    },
  });
  return tested.booked;
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
    const amounts = { microDollars: 42, tokens: 15 };
    const reservation = { id: 'res_1', most: amounts, unwatch: () => {} };
    const charged = { amounts, usage, price, reservation };
    const [settlement] = await bookedFor({ charged });
    expect(settlement).toEqual({
      keyId: 'key_1',
      owners: [],
      reservation: 'res_1',
      series: [],
      charged: { microDollars: 42, tokens: 15 },
      record: {
        id: expect.stringMatching(/^req_/),
        at: expect.any(Number),
        keyId: 'key_1',
        ip: '192.0.2.7',
        operation: 'chat',
        format: 'chat-completions',
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
    expect(await recordFor({ charged: { amounts, usage: estimated }, leaveAfter: 1 })).toMatchObject({
      output: 99,
      estimated: true,
    });
    const nothing = { amounts: { microDollars: 0, tokens: 0 } };
    expect(await recordFor({ charged: nothing })).toMatchObject({ input: 0, output: 0, microDollars: 0 });
  });

  test('is that of a run that goes on when its client has been answered, and there is no second one', async () => {
    const charged = { amounts: { microDollars: 42, tokens: 15 }, usage };
    const bookedAtFirst: unknown[] = [];
    const { promise: answered, resolve: clientHasIt } = Promise.withResolvers<void>();
    const { promise: over, resolve: hasEnded } = Promise.withResolvers<void>();
    const background = definePlugin({
      name: 'background',
      stage: 'shape',
      setup: (_options, { detached }: InternalTools) =>
        async function inBackground(call, next) {
          const own = detached.detach(call as Parameters<typeof detached.detach>[0], true);
          const events = await own.send(next);
          void answered.then(() => {
            bookedAtFirst.push(...booked);
            events.subscribe();
            accountOf(own.call).charge(charged);
            own.end();
            hasEnded();
          });
          return of({ type: 'result', value: { status: 'queued' } });
        },
    });
    const { run, booked } = await withBooks([usageLog(), background()]);
    await run({ model: 'x' }, { reply });
    clientHasIt();
    await over;
    await expect.poll(() => booked).toHaveLength(1);
    expect(bookedAtFirst).toEqual([]);
    expect(booked).toMatchObject([
      {
        charged: charged.amounts,
        record: { channel: 'second', status: 200, ended: 'complete', ...usage },
      },
    ]);
  });

  test('is followed once where the log wants it too', async () => {
    const { plugins, passed } = between(usageLog());
    const { run, lines, booked } = await withBooks([logging(), ...plugins]);
    await run({ model: 'x' }, { reply });
    expect(passed[0]?.got).toBeDefined();
    expect(passed[0]?.gave).toBe(passed[0]?.got);
    expect(lines).toMatchObject([{ channel: 'second', status: 200 }]);
    expect(booked).toMatchObject([{ record: { channel: 'second', status: 200 } }]);
  });
});

describe('a call that did not go well', () => {
  const failing = (error: Error): Script => replyOf(fail(error));

  test('is recorded with its status, its code and a sentence without secrets', async () => {
    const error = new GatewayError('invalid_value', `The key sk-${'a1B2'.repeat(12)} is wrong.`, {
      param: 'x',
    });
    expect(await recordFor({ reply: failing(error) })).toMatchObject({
      status: 400,
      ended: 'error',
      code: 'invalid_value',
      reason: 'The key sk-… is wrong.',
      input: 0,
      microDollars: 0,
    });
  });

  test('before its body was read has no model', async () => {
    const refusing = definePlugin({
      name: 'refusing',
      stage: 'identify',
      setup: () => () => Promise.reject(new GatewayError('invalid_api_key', 'No.')),
    });
    const { run, booked } = await withBooks([usageLog(), refusing()]);
    await run();
    expect(booked).toMatchObject([{ record: { status: 401, model: '' } }]);
  });

  test('in all channels names them', async () => {
    const attempt = { type: 'attempt', channel: 'a', model: 'y', failure: 'upstream_cut' } as const;
    const target = {} as Target;
    const record = await recordFor({
      reply({ call }) {
        const { attempts } = accountOf(call);
        attempts.failed(attempt);
        attempts.start(target);
        return failing(new GatewayError('upstream_cut', 'Cut.', { origin: 'upstream' }));
      },
    });
    expect(record).toMatchObject({
      code: 'upstream_cut',
      channel: 'a',
      gatewayMs: expect.any(Number),
      attempts: [{ channel: 'a', failure: 'upstream_cut' }],
    });
  });

  test('after its reply had begun was interrupted, under the status of a success', async () => {
    const cut: Script = [...reply, { fail: new GatewayError('upstream_cut', 'Cut.') }];
    expect(await recordFor({ reply: cut })).toMatchObject({
      status: 200,
      ended: 'interrupted',
      code: 'upstream_cut',
    });
    expect(await recordFor({ reply: cut, call: { stream: false } })).toMatchObject({
      ended: 'error',
      status: 502,
    });
  });

  test('because its client left is no failure', async () => {
    const begun = { reply: [...reply, ...silent], leaveAfter: reply.length };
    expect(await recordFor(begun)).toMatchObject({ status: 200, ended: 'left' });
    const record = await recordFor({ reply: silent, leaveAfter: 0 });
    expect(record).toMatchObject({ status: 499, ended: 'left' });
    expect(record).not.toHaveProperty('code');
  });
});

describe('what is recorded', () => {
  test('are no model lists and no answers from what is kept, unless they are wanted', async () => {
    for (const operation of ['list-models', 'state'] as const) {
      const given: Given = { call: { operation }, reply: [] };
      expect(await bookedFor(given)).toEqual([]);
      expect(await bookedFor({ ...given, options: { lists: true } })).toHaveLength(1);
    }
    expect(await bookedFor({ call: { operation: 'count-tokens', format: 'messages' } })).toHaveLength(1);
  });

  test('are no bodies', async () => {
    expect(JSON.stringify(await bookedFor({}))).not.toMatch(/thought|hm|where/);
  });

  test('are bodies where they are wanted, redacted and no longer than the limit', async () => {
    const capture = { redact: ['**.effort', '/secret/'] };
    const body = { model: 'x-high', input: 'Hello', reasoning: { effort: 'high' } };
    const record = await recordFor({ call: { format: 'responses', body }, options: { capture } });
    expect(JSON.parse(record?.request ?? '')).toEqual({ ...body, reasoning: { effort: '…' } });
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
      format: 'chat-completions',
      bytes: Buffer.from(text),
    });
    const record = await recordFor({
      reply: [frames('data: {"user":"ann"}\n\n'), frames('data: [DONE]\n\n')],
      options: { capture: { redact: ['user'] } },
    });
    expect(record?.response).toBe('data: {"user":"…"}\n\ndata: …\n\n');
  });
});

test('a record that cannot be made is logged, and ends nothing', async () => {
  const { run, lines } = await withBooks([usageLog()], () => {
    throw new Error('No book.');
  });
  expect(await run({ model: 'x' }, { reply })).toMatchObject({ status: 200 });
  expect(lines).toMatchObject([{ level: 'error', msg: 'a call could not be recorded' }]);
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
    // Calls that began in the same millisecond have no order of their own.
    const byStatus = Object.groupBy(records, ({ status }) => status);
    expect(Object.entries(byStatus).map(([status, group]) => [Number(status), group?.length])).toEqual([
      [200, 2],
      [400, 1],
      [401, 1],
      [503, 1],
    ]);
    const stranger = byStatus[401]?.[0];
    const stream = byStatus[200]?.find((record) => record.stream);
    const whole = byStatus[200]?.find((record) => !record.stream);
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
