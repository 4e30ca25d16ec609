import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { NewApiKey } from '../../core/state/api-keys/index.ts';
import channelLimits from '../../plugins/channel-limits.ts';
import modelAlias from '../../plugins/model-alias.ts';
import modelLimits from '../../plugins/model-limits.ts';
import { eventually } from '../support/eventually.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { SocketClient } from '../support/websocket.ts';
import { call, fetchRaw, formatNames, readError, voices, type Access, type FormatName } from './_wire.ts';

let first: ScriptedUpstream;
let second: ScriptedUpstream;
let gateway: TestGateway;
/** Replies that wait until a test lets them go. */
let held: (() => void)[] = [];
let hold = false;

const words = ['it', ' works'];
const voiceOf = (url: string): FormatName =>
  url.includes('/chat/') ? 'chat-completions' : url.includes('/messages') ? 'messages' : 'generate-content';

const answer = (
  { url, body }: { readonly url: string; readonly body: Buffer },
  response: ServerResponse,
): void => {
  const voice = voices[voiceOf(url)];
  const streams = url.includes('stream') || /"stream":\s*true/.test(body.toString());
  const reply = (): void => {
    if (streams)
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end(voice.frames(words).join(''));
    else
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify(voice.whole('it works')));
  };
  if (hold) held.push(reply);
  else reply();
};

beforeAll(async () => {
  first = await startUpstream(answer);
  second = await startUpstream(answer);
  const channels = formatNames.map((name) => voices[name].channel(first.url));
  gateway = await startGateway({
    trustedProxies: ['127.0.0.0/8'],
    channels: [
      ...channels,
      voices['chat-completions'].channel(first.url, {
        id: 'narrow',
        models: ['narrow', 'shared'],
        priority: 1,
      }),
      voices['messages'].channel(second.url, { id: 'wide', models: { shared: 'other' } }),
    ],
    plugins: [
      modelAlias({ aliases: { nickname: 'via-chat' } }),
      modelLimits({ models: { 'via-chat': { requestsPerMinute: 200 }, 'via-m*': { concurrency: 1 } } }),
      channelLimits({ channels: { narrow: { requestsPerMinute: 1 } } }),
    ],
  });
});
afterAll(async () => {
  await gateway.close();
  await first.close();
  await second.close();
});
beforeEach(() => {
  hold = false;
  held = [];
});

async function accessFor(limits: Omit<NewApiKey, 'name'>): Promise<Access> {
  const { value } = await gateway.apiKeys.create({ name: 'limited', ...limits });
  return { url: gateway.url, key: value };
}

function until(condition: () => boolean): Promise<void> {
  return eventually(() => expect(condition()).toBe(true));
}

/** The headers that tell how limits stand. */
function ratesIn(headers: IncomingHttpHeaders): Record<string, unknown> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => /ratelimit|retry/.test(name)));
}

const expected: Readonly<Record<FormatName, (remaining: string) => Record<string, unknown>>> = {
  'chat-completions': (remaining) => ({
    'x-ratelimit-limit-requests': '3',
    'x-ratelimit-remaining-requests': remaining,
    'x-ratelimit-reset-requests': expect.stringMatching(/^(1m)?\d+(\.\d+)?s$/) as unknown,
    'x-ratelimit-limit-tokens': '100000',
    'x-ratelimit-remaining-tokens': expect.stringMatching(/^9\d{4}$/) as unknown,
    'x-ratelimit-reset-tokens': expect.stringMatching(/s$/) as unknown,
  }),
  messages: (remaining) => ({
    'anthropic-ratelimit-requests-limit': '3',
    'anthropic-ratelimit-requests-remaining': remaining,
    'anthropic-ratelimit-requests-reset': expect.stringMatching(
      /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/,
    ) as unknown,
    'anthropic-ratelimit-tokens-limit': '100000',
    'anthropic-ratelimit-tokens-remaining': expect.stringMatching(/^9\d{4}$/) as unknown,
    'anthropic-ratelimit-tokens-reset': expect.any(String) as unknown,
  }),
  'generate-content': () => ({}),
};

describe.each(formatNames)('a key with limits, in %s', (format) => {
  const { model } = voices[format];

  test('is told on every reply how they stand, and refused in the format’s own way beyond them', async () => {
    const access = await accessFor({ requestsPerMinute: 3, tokensPerMinute: 100_000 });
    const answers = [
      await call(access, format, model, false),
      await call(access, format, model, true),
      await call(access, format, model, false),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    answers.forEach(({ headers }, index) =>
      expect(ratesIn(headers)).toEqual(expected[format](String(2 - index))),
    );
    const refused = await call(access, format, model, true);
    expect(readError(format, refused)).toEqual({
      status: 429,
      message: expect.stringMatching(
        /^This API key may be used for 3 requests a minute\. Try again in \d+ s\.$/,
      ) as unknown,
    });
    if (format === 'generate-content') {
      const { error } = JSON.parse(refused.text) as { error: { details: { '@type': string }[] } };
      expect(error.details.map((detail) => detail['@type'].split('.').at(-1))).toEqual([
        'QuotaFailure',
        'RetryInfo',
      ]);
    }
    const { 'retry-after': after, 'retry-after-ms': ms, ...rates } = ratesIn(refused.headers);
    expect(Number(after)).toBeGreaterThan(0);
    expect(Number(after)).toBeLessThanOrEqual(61);
    expect(rates).toEqual(expected[format]('0'));
    expect(ms === undefined ? undefined : Math.ceil(Number(ms) / 1_000)).toBe(
      format === 'chat-completions' ? Number(after) : undefined,
    );
  });

  test('has its tokens back that were not used, whole and streamed alike', async () => {
    const access = await accessFor({ tokensPerMinute: 5_000 });
    // Each reply uses twelve of them; about a thousand are counted beforehand.
    for (let number = 0; number < 12; number += 1)
      expect((await call(access, format, model, number % 2 === 0)).status).toBe(200);
  });
});

test('a key without limits is told nothing', async () => {
  const answered = await call(gateway, 'messages', 'via-messages', false);
  expect(answered.status).toBe(200);
  expect(ratesIn(answered.headers)).toEqual({});
});

test('a failure of the provider tells how limits stand too', async () => {
  const access = await accessFor({ requestsPerMinute: 5 });
  const answered = await call(access, 'chat-completions', 'unknown-model', false);
  expect(answered.status).toBe(503);
  expect(answered.headers['x-ratelimit-remaining-requests']).toBe('4');
});

test('calls at the same time: a stream counts until its end, and one whose client left no longer', async () => {
  hold = true;
  const access = await accessFor({ concurrency: 2 });
  const running = [
    call(access, 'chat-completions', 'via-chat', true),
    call(access, 'generate-content', 'via-content', true),
  ];
  await until(() => held.length === 2);
  expect((await call(access, 'chat-completions', 'via-chat', false)).status).toBe(429);
  for (const reply of held) reply();
  expect((await Promise.all(running)).map(({ status }) => status)).toEqual([200, 200]);
  held = [];
  const controller = new AbortController();
  const left = [1, 2].map(() =>
    fetch(`${access.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${access.key}`, 'content-type': 'application/json' },
      body: JSON.stringify(voices['chat-completions'].body('via-chat', true)),
      signal: controller.signal,
    }).catch(() => undefined),
  );
  await until(() => held.length === 2);
  controller.abort();
  await Promise.all(left);
  hold = false;
  await eventually(async () =>
    expect((await call(access, 'chat-completions', 'via-chat', false)).status).toBe(200),
  );
});

test('a model’s limits are those of all callers together, by whatever name they ask', async () => {
  hold = true;
  const [one, other] = [await accessFor({}), await accessFor({})];
  const running = call(one, 'messages', 'via-messages', true);
  await until(() => held.length === 1);
  const refused = await call(other, 'messages', 'via-messages-high', false);
  expect(readError('messages', refused)).toEqual({
    status: 429,
    message:
      'The model via-m* may be used for 1 calls at the same time. Try again when one of them has ended.',
  });
  for (const reply of held) reply();
  await running;
  hold = false;
  const headers = (await call(other, 'chat-completions', 'nickname', false)).headers;
  expect(headers['x-ratelimit-limit-requests']).toBe('200');
});

test('a channel that may serve no more leaves the call to another, and is answered 429 where there is none', async () => {
  const before = second.requests.length;
  expect((await call(gateway, 'chat-completions', 'shared', false)).status).toBe(200);
  expect(second.requests).toHaveLength(before);
  const elsewhere = await call(gateway, 'chat-completions', 'shared', true);
  expect(elsewhere.status).toBe(200);
  expect(ratesIn(elsewhere.headers)).toEqual({});
  expect(second.requests).toHaveLength(before + 1);
  const refused = await call(gateway, 'chat-completions', 'narrow', false);
  expect(readError('chat-completions', refused).message).toMatch(
    /^The channel for this model may be used for 1 requests a minute\. Try again in \d+ s\.$/,
  );
  expect(refused.status).toBe(429);
  expect(Number(refused.headers['retry-after'])).toBeGreaterThan(50);
});

test('calls over a WebSocket count, one by one, and the socket lives on', async () => {
  const access = await accessFor({ requestsPerMinute: 1 });
  const client = await SocketClient.open(`${access.url}/v1/responses`, {
    headers: { authorization: `Bearer ${access.key}` },
  });
  const create = { type: 'response.create', model: 'via-messages', input: 'hi', store: false };
  client.send(create);
  await client.until(({ type }) => type === 'response.completed');
  client.send(create);
  const [error] = await client.until(({ type }) => type === 'error');
  expect(error).toMatchObject({ status: 429 });
  client.socket.terminate();
});

test('health says how the shared store is', async () => {
  const { text } = await fetchRaw(gateway, '/readyz');
  expect(JSON.parse(text)).toMatchObject({ status: 'ready', shared: 'ok' });
});

describe('behind a trusted proxy', () => {
  test('a key is bound to the address of the client, not of the proxy', async () => {
    const access = await accessFor({ addresses: ['192.0.2.0/24'] });
    const from = async (forwarded?: string): Promise<number> => {
      const headers = { 'x-forwarded-for': forwarded };
      return (await call(access, 'chat-completions', 'via-chat', false, { headers })).status;
    };
    expect(await from('192.0.2.9')).toBe(200);
    expect(await from('192.0.2.9, 203.0.113.1')).toBe(403);
    expect(await from()).toBe(403);
  });

  test('wrong keys are 401 however many come from one address', async () => {
    const wrong = { url: gateway.url, key: 'sk-unknown-unknown-unknown' };
    const from = async (ip: string) =>
      call(wrong, 'chat-completions', 'via-chat', false, { headers: { 'x-forwarded-for': ip } });
    for (let number = 0; number < 23; number += 1) expect((await from('198.51.100.1')).status).toBe(401);
    expect((await from('198.51.100.2')).status).toBe(401);
  });
});
