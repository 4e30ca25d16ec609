import { request as send, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { Worker } from 'node:worker_threads';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, onTestFinished, test } from 'vitest';
import type { GatewayConfig } from '../../core/sdk/config.ts';
import demo from '../../channels/demo/index.ts';
import { definePlugin } from '../../core/config/whole-definitions.ts';
import { type InternalTools } from '../../core/config/internal-tools.ts';
import type { WholeLoad } from '../../core/front/overload.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream } from '../support/upstream.ts';
import { SocketClient } from '../support/websocket.ts';
import type { ClientCall, Refused } from './_overloading.ts';
import { formatNames, voices } from './_wire.ts';

let started: TestGateway | undefined;
afterEach(async () => {
  await started?.close();
  started = undefined;
});

const start = async (config: Partial<GatewayConfig>): Promise<TestGateway> => {
  started = await startGateway({ timeouts: { drain: 100 }, channels: [demo()], ...config });
  return started;
};

/** A call that is on its way. */
function call(
  gateway: TestGateway,
  path: string,
  body: object,
  headers: Record<string, string> = {},
): { readonly answer: Promise<IncomingMessage>; leave(): void } {
  const request = send(new URL(path, gateway.url), {
    method: 'POST',
    agent: false,
    headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json', ...headers },
  });
  const answer = new Promise<IncomingMessage>((resolve, reject) => {
    request.once('response', resolve);
    request.once('error', reject);
  });
  answer.catch(() => {});
  request.end(JSON.stringify(body));
  onTestFinished(() => void request.destroy());
  return { answer, leave: () => void request.destroy() };
}

const sendChat = (gateway: TestGateway, words: string, stream = false) =>
  call(gateway, '/v1/chat/completions', {
    model: 'demo',
    stream,
    messages: [{ role: 'user', content: words }],
  });

const ready = (gateway: TestGateway): Promise<number> =>
  fetch(`${gateway.url}/readyz`).then(({ status }) => status);

describe('when as many calls run as may', () => {
  test('the next is refused in its own format, before its body is read, and health answers', async () => {
    const gateway = await start({ overload: { running: 1, waiting: 0 } });
    const open = await sendChat(gateway, 'hello !silence=10k', true).answer;
    for (const format of formatNames) {
      const voice = voices[format];
      const refused = await call(
        gateway,
        voice.path('demo', false),
        voice.body('demo', false) as object,
        voice.headers,
      ).answer;
      expect({ format, status: refused.statusCode }).toEqual({ format, status: 503 });
      expect(refused.headers['retry-after']).toBe('1');
      const body = JSON.parse(await text(refused)) as { error: Record<string, unknown> };
      expect(body.error['message']).toContain('limit of running');
    }
    // Nothing of the body was sent, and the answer is there.
    const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    socket.write(
      `POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: ${gateway.key}\r\nanthropic-version: 2023-06-01\r\ncontent-type: application/json\r\ncontent-length: 1000000\r\n\r\n`,
    );
    const [head] = await new Promise<[Buffer]>((resolve) => socket.once('data', (data) => resolve([data])));
    expect(head.toString()).toMatch(/^HTTP\/1\.1 503 /);
    expect(await ready(gateway)).toBe(200);
    expect((await fetch(`${gateway.url}/healthz`)).status).toBe(200);
    open.destroy();
    await expect.poll(async () => (await sendChat(gateway, 'hello').answer).statusCode).toBe(200);
  });

  test('others wait for one to end, in their order, and a client that leaves gives its place up', async () => {
    const gateway = await start({ overload: { running: 1, waiting: 3, patience: 15_000 } });
    const first = await sendChat(gateway, 'hello !silence=600', true).answer;
    const ended: string[] = [];
    const follow = async (name: string, answer: Promise<IncomingMessage>): Promise<number | undefined> => {
      const { statusCode } = await answer;
      ended.push(name);
      return statusCode;
    };
    const second = sendChat(gateway, 'second');
    const waiting = follow('second', second.answer);
    await passed(100);
    const left = sendChat(gateway, 'left');
    await passed(100);
    const last = follow('last', sendChat(gateway, 'last').answer);
    await passed(100);
    left.leave();
    await text(first);
    expect([await waiting, await last]).toEqual([200, 200]);
    expect(ended).toEqual(['second', 'last']);
    expect((await sendChat(gateway, 'hello').answer).statusCode).toBe(200);
  });

  test('whoever waited too long is refused', async () => {
    const gateway = await start({ overload: { running: 1, waiting: 1, patience: 100 } });
    const open = await sendChat(gateway, 'hello !silence=10k', true).answer;
    const refused = await sendChat(gateway, 'hello').answer;
    expect(refused.statusCode).toBe(503);
    expect(await text(refused)).toContain('none ended in time');
    open.destroy();
  });

  test('calls over a socket count as well', async () => {
    const gateway = await start({ overload: { running: 1, waiting: 0 } });
    const open = await sendChat(gateway, 'hello !silence=10k', true).answer;
    const headers = { authorization: `Bearer ${gateway.key}` };
    const socket = await SocketClient.open(`${gateway.url}/v1/responses`, { headers });
    socket.send({ type: 'response.create', model: 'demo', input: 'hello' });
    const [refused] = await socket.until(({ type }) => type === 'error');
    expect(refused).toMatchObject({ error: { code: 'server_is_overloaded' } });
    open.destroy();
    await expect.poll(async () => (await sendChat(gateway, 'hello').answer).statusCode).toBe(200);
    socket.send({ type: 'response.create', model: 'demo', input: 'hello' });
    await socket.until(({ type }) => type === 'response.completed');
    socket.vanish();
  });
});

const passed = (time: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, time));

test('bodies that would not fit beside those that are held are refused, and fit afterwards', async () => {
  const gateway = await start({ limits: { body: 100_000 }, overload: { bodies: 100_000 } });
  const large = { model: 'demo', messages: [{ role: 'user', content: 'x'.repeat(60_000) }] };
  const words = JSON.stringify(large);
  const half = send(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    agent: false,
    headers: {
      authorization: `Bearer ${gateway.key}`,
      'content-type': 'application/json',
      'content-length': words.length,
    },
  });
  onTestFinished(() => void half.destroy());
  half.write(words.slice(0, -1));
  await passed(200);
  const refused = await call(gateway, '/v1/chat/completions', large).answer;
  expect([refused.statusCode, refused.headers['retry-after']]).toEqual([503, '1']);
  expect(await text(refused)).toContain('limit of request bytes in memory');
  // What counts is what a compressed body comes to.
  const small = gzipSync(words);
  const compressed = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${gateway.key}`,
      'content-type': 'application/json',
      'content-encoding': 'gzip',
    },
    body: small,
  });
  expect(compressed.status).toBe(503);
  await compressed.text();
  const finished = new Promise<IncomingMessage>((resolve) => half.once('response', resolve));
  half.end(words.slice(-1));
  expect((await finished).statusCode).toBe(200);
  expect((await call(gateway, '/v1/chat/completions', large).answer).statusCode).toBe(200);
});

describe('a large body that its provider has not answered', () => {
  const large = { messages: [{ role: 'user', content: 'x'.repeat(60_000) }] };
  const limits = { limits: { body: 100_000 }, overload: { bodies: 100_000 } };
  const silent = async () => {
    const waiting: ServerResponse[] = [];
    const upstream = await startUpstream((_request, response) => void waiting.push(response));
    onTestFinished(() => upstream.close());
    const seen: { load?: WholeLoad } = {};
    const looking = definePlugin({
      name: 'looking',
      stage: 'observe',
      setup(_options, tools: InternalTools) {
        seen.load = tools.overload;
        return (current, next) => next(current);
      },
    });
    const channels = [voices['chat-completions'].channel(upstream.url)];
    const gateway = await start({ ...limits, channels, plugins: [looking()] });
    return {
      gateway,
      waitingCount: () => waiting.length,
      bodies: () => seen.load?.bodies ?? -1,
      running: () => seen.load?.running ?? -1,
      answer(content: string) {
        const whole = JSON.stringify(voices['chat-completions'].whole(content));
        for (const response of waiting.splice(0)) response.end(whole);
      },
    };
  };
  const asking = (gateway: TestGateway, more: object = {}) =>
    call(gateway, '/v1/chat/completions', { model: 'via-chat', ...large, ...more });

  test('is held: another is refused until there is an answer', async () => {
    const { gateway, answer, waitingCount, bodies } = await silent();
    const first = asking(gateway);
    await expect.poll(bodies).toBeGreaterThan(60_000);
    const refused = await asking(gateway).answer;
    expect([refused.statusCode, refused.headers['retry-after']]).toEqual([503, '1']);
    expect(await text(refused)).toContain('limit of request bytes in memory');
    await expect.poll(waitingCount).toBe(1);
    answer('hello');
    expect((await first.answer).statusCode).toBe(200);
    await expect.poll(bodies).toBe(0);
  });

  test('of many small values counts for what it comes to in memory, and is taken where it is alone', async () => {
    const { gateway, answer, waitingCount, bodies } = await silent();
    const many = {
      messages: [{ role: 'user', content: 'hello' }],
      odd: Array.from({ length: 10_000 }, () => []),
    };
    const first = asking(gateway, many);
    await expect.poll(waitingCount).toBe(1);
    expect(bodies()).toBe(100_000);
    const refused = await asking(gateway, many).answer;
    expect([refused.statusCode, refused.headers['retry-after']]).toEqual([503, '1']);
    answer('hello');
    expect((await first.answer).statusCode).toBe(200);
    await expect.poll(bodies).toBe(0);
  });

  test('is let go of when its client leaves', async () => {
    const { gateway, bodies } = await silent();
    const first = asking(gateway);
    await expect.poll(bodies).toBeGreaterThan(60_000);
    first.leave();
    await expect.poll(bodies).toBe(0);
  });

  test('is held by the call that goes on in the background when its client has its answer', async () => {
    const { gateway, answer, bodies, running, waitingCount } = await silent();
    const body = { model: 'via-chat', input: 'x'.repeat(60_000), background: true };
    const begun = await call(gateway, '/v1/responses', body).answer;
    expect(begun.statusCode).toBe(200);
    await text(begun);
    await expect.poll(running).toBe(0);
    expect(bodies()).toBeGreaterThan(60_000);
    expect((await asking(gateway).answer).statusCode).toBe(503);
    await expect.poll(waitingCount).toBe(1);
    answer('hello');
    await expect.poll(bodies).toBe(0);
  });
});

describe('when more calls come than the process can look at', () => {
  /** Every call holds the event loop for a while. */
  const slow = definePlugin({
    name: 'slow',
    stage: 'identify',
    setup: () => (current, next) => {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
      return next(current);
    },
  });

  test('those that waited are refused in the format of their client, health answers, and calls are taken again afterwards', async () => {
    const gateway = await start({ overload: { lag: 50 }, plugins: [slow()] });
    const clientCalls = formatNames.map((format): ClientCall => {
      const { path, body, headers } = voices[format];
      return {
        format,
        url: `${gateway.url}${path('demo', false)}`,
        headers: {
          authorization: `Bearer ${gateway.key}`,
          'content-type': 'application/json',
          ...headers,
        },
        body: JSON.stringify(body('demo', false)),
      };
    });
    const refused = new Map<string, Refused>();
    const clients = new Worker(new URL('./_overloading.ts', import.meta.url), { workerData: clientCalls });
    onTestFinished(async () => void (await clients.terminate()));
    clients.on('message', (one: Refused) => void refused.set(one.format, one));
    await expect.poll(() => [...refused.keys()].toSorted()).toEqual([...formatNames].toSorted());
    expect((await fetch(`${gateway.url}/healthz`)).status).toBe(200);
    expect(await ready(gateway)).toBe(200);
    await clients.terminate();
    for (const { format, retryAfter, body } of refused.values()) {
      expect([format, retryAfter]).toEqual([format, '5']);
      const { error } = JSON.parse(body) as { error: Record<string, unknown> };
      expect(error['message']).toContain('is overloaded');
    }
    await expect.poll(async () => (await sendChat(gateway, 'hello').answer).statusCode).toBe(200);
  });
});
