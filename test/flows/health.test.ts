import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import openai from '../../channels/openai.ts';
import type { HealthChange } from '../../core/sdk/health.ts';
import { adminPassword, logIn } from '../plugins/admin/_client.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream, type SeenRequest } from '../support/upstream.ts';
import { startRedis, withoutRedis } from '../support/redis.ts';

const json = { 'content-type': 'application/json' };

type Behaviour = (response: ServerResponse, request: SeenRequest) => void;

const answers: Behaviour = (response) =>
  void response.writeHead(200, json).end(
    JSON.stringify({
      id: 'chatcmpl-1',
      object: 'chat.completion',
      created: 1,
      model: 'm',
      choices: [{ index: 0, message: { role: 'assistant', content: 'it works' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 },
    }),
  );
const fails: Behaviour = (response) =>
  void response.writeHead(500, json).end('{"error":{"message":"it broke"}}');

let first: ScriptedUpstream;
let second: ScriptedUpstream;
let onFirst: Behaviour;
let onSecond: Behaviour;

beforeEach(async () => {
  onFirst = answers;
  onSecond = answers;
  first = await startUpstream((request, response) => onFirst(response, request));
  second = await startUpstream((request, response) => onSecond(response, request));
});
afterEach(async () => {
  await first.close();
  await second.close();
});

/** Two providers of one model; the first is asked as long as it can be. */
async function start(config: Parameters<typeof startGateway>[0] = {}): Promise<TestGateway> {
  const gateway = await startGateway({
    adminPassword,
    health: { failures: 3, rest: 400 },
    channels: [
      openai({ id: 'first', key: 'sk-the-first-key', baseUrl: first.url, models: ['m'], priority: 1 }),
      openai({ id: 'second', key: 'sk-the-second-key', baseUrl: second.url, models: ['m'] }),
    ],
    ...config,
  });
  onTestFinished(() => gateway.close());
  return gateway;
}

async function chat(gateway: TestGateway): Promise<{ readonly status: number; readonly text: string }> {
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.key}`, ...json },
    body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] }),
  });
  return { status: response.status, text: await response.text() };
}

interface Ready {
  readonly status: string;
  readonly channels: readonly { readonly id: string; readonly standing: string; readonly worst?: string }[];
}

async function ready(gateway: TestGateway): Promise<Ready & { readonly code: number }> {
  const response = await fetch(`${gateway.url}/readyz`, { headers: { 'x-api-key': gateway.key } });
  return { ...((await response.json()) as Ready), code: response.status };
}

const standingOf = async (gateway: TestGateway, id: string): Promise<string | undefined> =>
  (await ready(gateway)).channels.find((channel) => channel.id === id)?.standing;

/** A rest that no machine is slow enough to outlast, in milliseconds. */
const longRest = 600_000;

/** The clock of this process goes on by so many milliseconds at once. */
function passTime(time: number): void {
  const now = performance.now.bind(performance);
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + time);
  onTestFinished(() => clock.mockRestore());
}

describe('a provider that fails', () => {
  test('is asked no more while it rests, and again when a probe has come through', async () => {
    const gateway = await start({ health: { failures: 3, rest: longRest } });
    const changes: HealthChange[] = [];
    gateway.gateway.notices.on('health-changed', (change) => changes.push(change));
    onFirst = fails;
    for (let count = 0; count < 3; count += 1) expect((await chat(gateway)).status).toBe(200);
    expect(first.requests).toHaveLength(3);
    expect(await standingOf(gateway, 'first')).toBe('resting');
    expect(await ready(gateway)).toMatchObject({ code: 200, status: 'ready' });

    for (let count = 0; count < 5; count += 1) expect((await chat(gateway)).status).toBe(200);
    expect(first.requests).toHaveLength(3);

    passTime(2 * longRest);
    onFirst = answers;
    await expect
      .poll(
        async () => (await chat(gateway)).status === 200 && (await standingOf(gateway, 'first')) === 'up',
        { interval: 100 },
      )
      .toBe(true);
    const before = second.requests.length;
    for (let count = 0; count < 5; count += 1) await chat(gateway);
    expect(second.requests).toHaveLength(before);

    expect(changes[0]).toMatchObject({ before: 'up', standing: 'resting', elsewhere: false });
    expect(changes.at(-1)).toMatchObject({ before: 'probing', standing: 'up' });
    // Once each: every change begins where the one before it ended.
    for (const [index, { before: from }] of changes.entries())
      if (index > 0) expect(from).toBe(changes[index - 1]?.standing);
    const healthLines = gateway.lines.filter(({ msg }) =>
      /circuit breaker of a channel opened|serves again/.test(String(msg)),
    );
    expect(healthLines.map(({ level, channel }) => `${String(level)} ${String(channel)}`)).toEqual([
      'warn first',
      'info first',
    ]);
    expect(healthLines[0]).toMatchObject({
      code: 'upstream_error',
      reason: 'it broke',
      rest: expect.any(Number),
    });
    expect(JSON.stringify(gateway.lines)).not.toContain('sk-the-first-key');
  });

  test('is probed by one call at a time, however many come', async () => {
    const gateway = await start();
    onFirst = fails;
    for (let count = 0; count < 3; count += 1) await chat(gateway);
    const held: ServerResponse[] = [];
    onFirst = (response) => void held.push(response);
    const waiting: Promise<unknown>[] = [];
    await expect
      .poll(async () => {
        waiting.push(chat(gateway), chat(gateway));
        await new Promise((resolve) => setTimeout(resolve, 20));
        return first.requests.length;
      })
      .toBe(4);
    const more = await Promise.all(Array.from({ length: 20 }, () => chat(gateway)));
    expect(more.every(({ status }) => status === 200)).toBe(true);
    expect(first.requests).toHaveLength(4);
    expect(await standingOf(gateway, 'first')).toBe('probing');
    for (const response of held) fails(response, first.requests[0] as SeenRequest);
    await Promise.all(waiting);
    expect(await standingOf(gateway, 'first')).toBe('resting');
  });

  test.each([
    ['hangs up', (response: ServerResponse) => void response.socket?.destroy()],
    ['sends a web page', (response: ServerResponse) => void response.writeHead(200).end('<html>')],
    ['sends nothing', (response: ServerResponse) => void response.writeHead(200, json).end()],
    [
      'sends a code',
      (response: ServerResponse) => void response.writeHead(200, json).end('{"code":7,"message":"no"}'),
    ],
  ])('rests also when it %s', async (_what, behaviour) => {
    const gateway = await start({ health: { failures: 3, rest: longRest } });
    onFirst = behaviour;
    for (let count = 0; count < 5; count += 1) expect((await chat(gateway)).text).toContain('it works');
    expect(first.requests).toHaveLength(3);
    expect(await standingOf(gateway, 'first')).toBe('resting');
  });
});

test('callers who make mistakes or leave do a provider no harm', async () => {
  const gateway = await start();
  onFirst = (response) => void response.writeHead(400, json).end('{"error":{"message":"bad field"}}');
  for (let count = 0; count < 6; count += 1) expect((await chat(gateway)).status).toBe(400);
  onFirst = () => {};
  for (let count = 0; count < 6; count += 1) {
    const leave = new AbortController();
    const requestsBefore = first.requests.length;
    const left = fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.key}`, ...json },
      body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] }),
      signal: leave.signal,
    });
    await expect.poll(() => first.requests.length).toBe(requestsBefore + 1);
    leave.abort();
    await expect(left).rejects.toThrow(/abort/);
  }
  onFirst = answers;
  expect(await standingOf(gateway, 'first')).toBe('up');
  expect((await chat(gateway)).status).toBe(200);
  expect(second.requests).toHaveLength(0);
});

test('a provider that limits is spared for as long as it says', async () => {
  const gateway = await start();
  onFirst = (response) =>
    void response.writeHead(429, { ...json, 'retry-after': '60' }).end('{"error":{"message":"slow down"}}');
  for (let count = 0; count < 10; count += 1) expect((await chat(gateway)).status).toBe(200);
  expect(first.requests).toHaveLength(1);
  onFirst = answers;
  passTime(61_000);
  await expect
    .poll(async () => (await chat(gateway)).status === 200 && first.requests.length, { interval: 100 })
    .toBe(2);
});

describe('a channel with two keys', () => {
  const keyOf = ({ headers }: SeenRequest): string => String(headers.authorization).slice(-7);
  const two = () =>
    start({
      channels: [
        openai({
          id: 'two',
          keys: ['sk-key-one-aaaaaaa', 'sk-key-two-bbbbbbb'],
          baseUrl: first.url,
          models: ['m'],
        }),
      ],
    });

  test('goes on with one when the other is refused; callers notice nothing, and operators see which and why', async () => {
    const gateway = await two();
    onFirst = (response, request) => {
      if (keyOf(request) === 'aaaaaaa')
        response
          .writeHead(401, json)
          .end('{"error":{"message":"Incorrect API key provided: sk-key-one-aaaaaaa"}}');
      else answers(response, request);
    };
    const admin = await logIn(gateway.url);
    for (let count = 0; count < 20; count += 1) expect((await chat(gateway)).status).toBe(200);
    expect(first.requests.filter((request) => keyOf(request) === 'aaaaaaa')).toHaveLength(1);
    expect((await ready(gateway)).channels).toEqual([
      { id: 'two', kind: 'openai', standing: 'up', worst: 'resting' },
    ]);

    const { channels } = await admin.request('listChannels');
    const [shown] = channels;
    expect(shown?.standing).toBe('up');
    const [ill, well] = shown?.keys ?? [];
    expect(ill).toMatchObject({ standing: 'resting', last: { code: 'upstream_error' } });
    expect(ill?.last?.message).toMatch(/Incorrect API key/);
    expect(ill?.until).toBeGreaterThan(Date.now());
    expect(well).toMatchObject({ standing: 'up', failures: 0 });
    expect(JSON.stringify([channels, gateway.lines])).not.toMatch(/aaaaaaa|bbbbbbb/);

    onFirst = answers;
    const { channel } = await admin.request('resetChannel', { id: 'two' });
    expect(channel.keys.map(({ standing }) => standing)).toEqual(['up', 'up']);
    await expect
      .poll(async () => {
        await chat(gateway);
        return first.requests.filter((request) => keyOf(request) === 'aaaaaaa').length;
      })
      .toBeGreaterThan(1);
    const { entries } = await admin.request('listAudit');
    expect(entries[0]).toMatchObject({ action: 'channel-reset', target: 'two', before: { standing: 'up' } });
    expect(await admin.refused('resetChannel', { id: 'nobody' })).toMatchObject({ status: 404 });
  });
});

const missing = withoutRedis();

test.skipIf(missing !== undefined)(
  `what one gateway has found out spares the other the failures${missing === undefined ? '' : ` (${missing})`}`,
  async () => {
    const redis = await startRedis();
    onTestFinished(() => redis.close());
    const shared = { shared: { url: redis.url }, health: { failures: 3, rest: 30_000 } };
    const one = await start(shared);
    const two = await start(shared);
    onFirst = fails;
    await expect
      .poll(async () => {
        await chat(one);
        return standingOf(one, 'first');
      })
      .toBe('resting');
    const requestsBefore = first.requests.length;
    await expect.poll(() => standingOf(two, 'first')).toBe('resting');
    for (let count = 0; count < 5; count += 1) expect((await chat(two)).status).toBe(200);
    expect(first.requests).toHaveLength(requestsBefore);
    const admin = await logIn(two.url);
    onFirst = answers;
    await admin.request('resetChannel', { id: 'first' });
    await expect.poll(() => standingOf(one, 'first')).toBe('up');
  },
);
