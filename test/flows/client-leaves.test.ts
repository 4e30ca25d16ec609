/* oxlint-disable vitest/expect-expect -- one test serves many cases: what is expected depends on the case, and the message says which it was. */
import { once } from 'node:events';
import { request as send, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { definePlugin } from 'sluice';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { formatNames, voices, type FormatName } from './_wire.ts';

let upstream: ScriptedUpstream;
let gateway: TestGateway;
/** Part of the response that the provider sends before it hangs. */
let beginning: 'nothing' | 'headers' | 'frames' | 'half a document' | 'an error' = 'nothing';
let closedAt: Promise<number>;
let received: Promise<void>;
let onRequest = (): void => {};

beforeAll(async () => {
  upstream = await startUpstream((request, response) => {
    const socket = response.socket as Socket;
    closedAt = new Promise((resolve) => socket.once('close', () => resolve(performance.now())));
    const voice = Object.values(voices).find(({ path, model }) =>
      request.url.includes(
        path(model, false)
          .replace(/^\/v1(beta)?/, '')
          .split(':')[0] ?? '',
      ),
    );
    const frames = voice?.frames(['one', 'two', 'three']) ?? [];
    if (beginning === 'headers')
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    if (beginning === 'frames')
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write(frames.slice(0, 3).join(''));
    if (beginning === 'half a document')
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .write(JSON.stringify(voice?.whole('x')).slice(0, 40));
    if (beginning === 'an error')
      response.writeHead(500, { 'content-type': 'application/json' }).write('{"error":');
    onRequest();
  });
  gateway = await startGateway({
    channels: formatNames.map((name) => voices[name].channel(upstream.url)),
    // A model without a price is warned of, and what is left here is to be seen in the log.
    prices: { '*': { input: 0, output: 0 } },
    plugins: [slow()],
  });
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

let onThinking = (): void => {};
let thought: Promise<void> = Promise.resolve();

/** Thinks about requests that say so, for as long as the test wants. */
const slow = definePlugin({
  name: 'slow',
  stage: 'shape',
  setup: () => async (context, next) => {
    if (context.wire.headers['x-think'] !== undefined) {
      onThinking();
      await thought;
    }
    return next(context);
  },
});

const measured: number[] = [];
afterAll(() => {
  const sorted = measured.toSorted((a, b) => a - b);
  console.log(
    `client left → provider’s socket closed: ${sorted.length} calls, median ${sorted[Math.floor(sorted.length / 2)]?.toFixed(1)} ms, worst ${sorted.at(-1)?.toFixed(1)} ms`,
  );
});
afterEach(() => {
  gateway.lines.length = 0;
});

const pairs = formatNames.flatMap((client) => formatNames.map((channel) => [client, channel] as const));

async function leave(
  client: FormatName,
  channel: FormatName,
  stream: boolean,
  waitFor: 'request' | 'bytes',
): Promise<void> {
  received = new Promise((resolve) => {
    onRequest = resolve;
  });
  const voice = voices[client];
  const { model } = voices[channel];
  const request = send(new URL(voice.path(model, stream), gateway.url), {
    method: 'POST',
    agent: false,
    headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json', ...voice.headers },
  });
  request.on('error', () => {});
  request.end(JSON.stringify(voice.body(model, stream)));
  await received;
  if (waitFor === 'bytes') {
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    response.on('error', () => {});
    await once(response, 'data');
  } else await new Promise((resolve) => setTimeout(resolve, 30));
  const leftAt = performance.now();
  request.destroy();
  measured.push((await closedAt) - leftAt);
}

/** The one line of the call, which is written when it has ended. */
async function logged(): Promise<Record<string, unknown>> {
  const lines = (): Record<string, unknown>[] => gateway.lines.filter(({ plugin }) => plugin === 'logging');
  await expect.poll(() => lines().length).toBe(1);
  expect(gateway.lines.filter(({ level }) => level === 'error' || level === 'warn')).toEqual([]);
  return lines()[0] ?? {};
}

describe.each(pairs)('a %s client of a %s channel that leaves', (client, channel) => {
  test.each([
    ['before the provider has answered', true, 'nothing'],
    ['between the provider’s headers and its first byte', true, 'headers'],
    ['a whole reply, before the provider has answered', false, 'nothing'],
    ['a whole reply, in the middle of the provider’s answer', false, 'half a document'],
    ['in the middle of the provider’s error', true, 'an error'],
  ] as const)('%s: the provider’s socket is closed', async (_when, stream, start) => {
    beginning = start;
    await leave(client, channel, stream, 'request');
    expect(await logged()).toMatchObject({ ended: 'left' });
  });

  test('in the middle of a stream: the provider’s socket is closed', async () => {
    beginning = 'frames';
    await leave(client, channel, true, 'bytes');
    expect(await logged()).toMatchObject({ ended: 'left', status: 200, stream: true });
  });
});

test('a client that left while a plugin was still thinking is not sent on to the provider', async () => {
  for (const stream of [true, false]) {
    const seen = upstream.requests.length;
    const thinking = new Promise<void>((resolve) => {
      onThinking = resolve;
    });
    const { promise, resolve: goOn } = Promise.withResolvers<void>();
    thought = promise;
    const request = send(new URL('/v1/chat/completions', gateway.url), {
      method: 'POST',
      agent: false,
      headers: {
        authorization: `Bearer ${gateway.key}`,
        'content-type': 'application/json',
        'x-think': 'yes',
      },
    });
    request.on('error', () => {});
    request.end(JSON.stringify(voices['chat-completions'].body('via-messages', stream)));
    await thinking;
    request.destroy();
    expect(await logged()).toMatchObject({ ended: 'left' });
    goOn();
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(upstream.requests.length).toBe(seen);
    expect(gateway.lines.filter(({ level }) => level === 'error' || level === 'warn')).toEqual([]);
    gateway.lines.length = 0;
  }
});

test('a client that only closes its sending half is taken to have left', async () => {
  beginning = 'frames';
  received = new Promise((resolve) => {
    onRequest = resolve;
  });
  const request = send(new URL('/v1/chat/completions', gateway.url), {
    method: 'POST',
    agent: false,
    headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
  });
  request.on('error', () => {});
  request.end(JSON.stringify(voices['chat-completions'].body('via-chat', true)));
  await received;
  const leftAt = performance.now();
  request.socket?.end();
  console.log(`client half-closed → provider’s socket closed: ${((await closedAt) - leftAt).toFixed(1)} ms`);
});
