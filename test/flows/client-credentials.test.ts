import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI } from '@google/genai';
import OpenAI from 'openai';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { ChannelEntry } from 'sluice';
import anthropic from '../../channels/anthropic.ts';
import demo from '../../channels/demo/index.ts';
import gemini from '../../channels/gemini.ts';
import openai from '../../channels/openai.ts';
import openaiCompatible from '../../channels/openai-compatible.ts';
import vertex from '../../channels/vertex/index.ts';
import { adminPassword, logIn } from '../plugins/admin/_client.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { formatNames, voices, type FormatName } from './_wire.ts';

type Json = Record<string, unknown>;

// No pattern for secrets finds anything in these.
const token = 'canary-token-sings-at-dawn';
const key = 'canary-key-sings-at-noon';
const oauthBeta = 'oauth-2025-04-20';

let provider: ScriptedUpstream;
let other: ScriptedUpstream;
/** Returns a response of the provider that replaces the default of its format. */
let answers:
  | ((headers: Json) => { readonly status: number; readonly body: Json; readonly headers?: Json })
  | undefined;
const open: TestGateway[] = [];

/** The format that a path belongs to. */
function formatOf(url: string): FormatName {
  if (url.includes('enerateContent')) return 'generate-content';
  return url.includes('/messages') ? 'messages' : 'chat-completions';
}

const refusal = (type: string, message: string): Json => ({ type: 'error', error: { type, message } });

/**
 * How Anthropic takes credentials: keys in x-api-key or as bearers (@anthropic-ai/sdk 1.11.0, client.ts), tokens as bearers with a beta flag.
 * What it says otherwise stands in reports 5983 and 28091 of its command-line client.
 */
function refusedByAnthropic(headers: Json): string | undefined {
  if (headers['x-api-key'] !== undefined)
    return headers['x-api-key'] === key ? undefined : 'invalid x-api-key';
  if (headers.authorization === `Bearer ${key}`) return undefined;
  if (headers.authorization !== `Bearer ${token}`) return 'Invalid bearer token';
  return String(headers['anthropic-beta']).split(',').includes(oauthBeta)
    ? undefined
    : 'OAuth authentication is currently not supported.';
}

beforeAll(async () => {
  provider = await startUpstream(({ headers, url = '', body }, response) => {
    const format = formatOf(url);
    const refused = format === 'messages' ? refusedByAnthropic(headers) : undefined;
    const refusalAnswer =
      answers?.(headers) ??
      (refused === undefined
        ? undefined
        : { status: 401, body: refusal('authentication_error', refused), headers: {} });
    const limits = { 'anthropic-ratelimit-unified-status': 'allowed', 'x-ratelimit-remaining-requests': '7' };
    if (refusalAnswer !== undefined) {
      response.writeHead(refusalAnswer.status, {
        'content-type': 'application/json',
        ...limits,
        ...refusalAnswer.headers,
      });
      response.end(JSON.stringify(refusalAnswer.body));
      return;
    }
    const voice = voices[format];
    const streams = url.includes('stream') || /"stream": ?true/.test(String(body));
    response.writeHead(200, {
      ...limits,
      'content-type': streams ? 'text/event-stream' : 'application/json',
    });
    response.end(streams ? voice.frames(['hel', 'lo']).join('') : JSON.stringify(voice.whole('hello')));
  });
  other = await startUpstream(({ url = '' }, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(voices[formatOf(url)].whole('from the other')));
  });
});
afterEach(() => Promise.all(open.splice(0).map((gateway) => gateway.close())));
afterAll(async () => {
  await provider.close();
  await other.close();
});
beforeEach(() => {
  answers = undefined;
  provider.requests.length = 0;
  other.requests.length = 0;
});

const start = async (...channels: ChannelEntry[]): Promise<TestGateway> => {
  const gateway = await startGateway({ channels, adminPassword });
  open.push(gateway);
  return gateway;
};

const claude = (more: Json = {}): ChannelEntry =>
  anthropic({ baseUrl: `${provider.url}/v1`, credentials: 'client', ...more });

/** Sends a request in a format, with headers of its own. */
function send(
  gateway: TestGateway,
  format: FormatName,
  model: string,
  headers: Readonly<Record<string, string>>,
): Promise<Response> {
  const voice = voices[format];
  return fetch(gateway.url + voice.path(model, false), {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'anthropic-version': '2023-06-01', ...headers },
    body: JSON.stringify(voice.body(model, false)),
  });
}

const withToken = (gateway: TestGateway): Record<string, string> => ({
  'x-sluice-key': gateway.key,
  authorization: `Bearer ${token}`,
  'anthropic-beta': oauthBeta,
});

describe('the credential of the client goes to the provider as its format carries it', () => {
  test('Anthropic’s SDK with a token of an account', async () => {
    const gateway = await start(claude());
    const client = new Anthropic({
      baseURL: gateway.url,
      apiKey: null,
      authToken: token,
      defaultHeaders: { 'x-sluice-key': gateway.key, 'anthropic-beta': oauthBeta },
    });
    const request = {
      model: 'claude-sonnet-4-5',
      max_tokens: 64,
      messages: [{ role: 'user', content: 'hi' }],
    } as const;
    const message = await client.messages.create({ ...request, messages: [...request.messages] });
    expect(message.content).toMatchObject([{ type: 'text', text: 'hello' }]);
    const streamed = client.messages.stream({ ...request, messages: [...request.messages] });
    expect(await streamed.finalText()).toBe('hello');
    for (const { headers } of provider.requests) {
      expect(headers).toMatchObject({ authorization: `Bearer ${token}`, 'anthropic-beta': oauthBeta });
      expect(headers['user-agent']).toMatch(/^Anthropic\/JS /);
      expect(headers['x-api-key']).toBeUndefined();
      expect(JSON.stringify(headers)).not.toContain(gateway.key);
      expect(headers['x-sluice-key']).toBeUndefined();
    }
  });

  test('Anthropic’s SDK with a key', async () => {
    const gateway = await start(claude());
    const client = new Anthropic({
      baseURL: gateway.url,
      apiKey: key,
      defaultHeaders: { 'x-sluice-key': gateway.key },
    });
    await client.messages.create({
      model: 'claude-sonnet-4-5',
      max_tokens: 64,
      messages: [{ role: 'user', content: 'hi' }],
    });
    // Where the SDK puts its keys.
    expect(provider.requests[0]?.headers.authorization).toBe(`Bearer ${key}`);
    await send(gateway, 'messages', 'claude-sonnet-4-5', { 'x-sluice-key': gateway.key, 'x-api-key': key });
    expect(provider.requests[1]?.headers['x-api-key']).toBe(key);
    expect(provider.requests[1]?.headers.authorization).toBeUndefined();
  });

  test('OpenAI’s SDK, at OpenAI and at a provider whose keys have another header', async () => {
    const gateway = await start(
      claude(),
      openai({ baseUrl: `${provider.url}/v1`, credentials: 'client', models: ['gpt-5-mini'] }),
    );
    const client = new OpenAI({
      baseURL: `${gateway.url}/v1`,
      apiKey: key,
      defaultHeaders: { 'x-sluice-key': gateway.key },
    });
    for (const model of ['gpt-5-mini', 'claude-sonnet-4-5']) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      await client.chat.completions.create({ model, messages: [{ role: 'user', content: 'hi' }] });
    }
    expect(provider.requests.map(({ headers }) => [headers.authorization, headers['x-api-key']])).toEqual([
      [`Bearer ${key}`, undefined],
      [undefined, key],
    ]);
  });

  test('Google’s SDK', async () => {
    const gateway = await start(
      gemini({ baseUrl: `${provider.url}/v1beta`, credentials: 'client', models: ['gemini-2.5-flash'] }),
    );
    const client = new GoogleGenAI({
      apiKey: key,
      httpOptions: { baseUrl: gateway.url, headers: { 'x-sluice-key': gateway.key } },
    });
    await client.models.generateContent({ model: 'gemini-2.5-flash', contents: 'hi' });
    expect(provider.requests[0]?.headers['x-goog-api-key']).toBe(key);
  });
});

describe('a call without a credential of its own', () => {
  test.each(formatNames)('%s: 401 in its format, and the provider is not asked', async (format) => {
    const gateway = await start(claude());
    const shown: readonly Record<string, string>[] = [
      { authorization: `Bearer ${gateway.key}` },
      { 'x-sluice-key': gateway.key },
      // A key of the gateway is nobody else’s business.
      { 'x-sluice-key': gateway.key, authorization: `Bearer ${gateway.key}` },
      { 'x-sluice-key': gateway.key, 'x-api-key': (await gateway.apiKeys.create({ name: 'second' })).value },
    ];
    for (const headers of shown) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      const answer = await send(gateway, format, 'claude-sonnet-4-5', headers);
      expect(answer.status).toBe(401);
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      const body = (await answer.json()) as Json;
      expect(voices[format].isEnvelope(body, 401)).toBe(true);
      expect(JSON.stringify(body)).toContain('x-sluice-key');
    }
    expect(provider.requests).toEqual([]);
  });

  test('is served by another channel that has a key of its own', async () => {
    const gateway = await start(
      claude({ priority: 1 }),
      anthropic({ id: 'company', baseUrl: `${other.url}/v1`, key: 'company-key-1' }),
    );
    const answer = await send(gateway, 'messages', 'claude-sonnet-4-5', { 'x-api-key': gateway.key });
    expect(JSON.stringify(await answer.json())).toContain('from the other');
    expect(provider.requests).toEqual([]);
  });
});

test('a wrong key in x-sluice-key is 401, whatever else the request carries', async () => {
  const gateway = await start(claude());
  const answer = await send(gateway, 'messages', 'claude-sonnet-4-5', {
    'x-sluice-key': 'sk-wrong',
    'x-api-key': gateway.key,
  });
  expect(answer.status).toBe(401);
  expect(provider.requests).toEqual([]);
});

describe('the credential goes to no other channel', () => {
  const model = 'claude-sonnet-4-5';

  test.each([
    ['refuses the client', 401],
    ['limits the client', 429],
    ['is down', 503],
  ])('when the provider %s', async (_what, status) => {
    answers = () => ({ status, body: refusal('api_error', 'not now') });
    const gateway = await start(
      claude({ models: [model], priority: 3 }),
      openaiCompatible({
        name: 'second',
        baseUrl: `${other.url}/v1`,
        models: [model],
        credentials: 'client',
        priority: 2,
      }),
      anthropic({ id: 'company', baseUrl: `${other.url}/v1`, key: 'company-key-1' }),
    );
    const answer = await send(gateway, 'messages', model, withToken(gateway));
    expect(answer.ok).toBe(false);
    expect(other.requests).toEqual([]);
  });

  test('nor to one that serves other models, which goes with its own key', async () => {
    const gateway = await start(
      claude(),
      openai({ baseUrl: `${other.url}/v1`, key: 'company-key-1', models: ['gpt-5-mini'] }),
      demo(),
    );
    await send(gateway, 'messages', 'gpt-5-mini', withToken(gateway));
    expect(other.requests[0]?.headers.authorization).toBe('Bearer company-key-1');
    expect(JSON.stringify(other.requests[0]?.headers)).not.toContain('canary');
  });
});

describe('what the provider says of the client’s account', () => {
  test.each([
    [401, 'authentication_error', 'OAuth token has expired. Please obtain a new token.'],
    [403, 'permission_error', 'OAuth token does not meet scope requirement user:inference'],
    [404, 'not_found_error', 'model: claude-sonnet-4-5'],
    [429, 'rate_limit_error', 'This request would exceed your account’s rate limit. Please try again later.'],
  ])('%i goes back to it as it is', async (status, type, message) => {
    answers = () => ({
      status,
      body: refusal(type, message),
      headers: { 'retry-after': '17', 'x-should-retry': 'true', 'anthropic-ratelimit-unified-reset': '1764' },
    });
    const gateway = await start(claude());
    const answer = await send(gateway, 'messages', 'claude-sonnet-4-5', withToken(gateway));
    expect(answer.status).toBe(status);
    expect(await answer.json()).toMatchObject({ type: 'error', error: { type, message } });
    expect(answer.headers.get('anthropic-ratelimit-unified-reset')).toBe('1764');
    if (status === 429) expect(answer.headers.get('retry-after')).toBe('17');
  });

  test.each(formatNames)('%s: a bad credential is told in the format of the client', async (format) => {
    const gateway = await start(claude());
    const answer = await send(gateway, format, 'claude-sonnet-4-5', {
      'x-sluice-key': gateway.key,
      'x-api-key': 'nonsense-key',
    });
    expect(answer.status).toBe(401);
    const body = (await answer.json()) as Json;
    expect(voices[format].isEnvelope(body, 401)).toBe(true);
    expect(JSON.stringify(body)).toContain('invalid x-api-key');
  });

  test('is not held against the channel: the next client is served', async () => {
    const gateway = await start(claude());
    let refusals = 0;
    answers = (headers) => {
      if (headers.authorization === `Bearer ${token}`) return undefined as never;
      refusals += 1;
      const status = [401, 403, 429, 402, 404][refusals % 5] ?? 401;
      return { status, body: refusal('x', 'no'), headers: { 'retry-after': '600' } };
    };
    const bad = { 'x-sluice-key': gateway.key, 'x-api-key': 'nonsense-key' };
    for (let call = 0; call < 30; call += 1) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      expect((await send(gateway, 'messages', 'claude-sonnet-4-5', bad)).ok).toBe(false);
    }
    expect(provider.requests).toHaveLength(30);
    expect((await send(gateway, 'messages', 'claude-sonnet-4-5', withToken(gateway))).status).toBe(200);
    const ready = await fetch(`${gateway.url}/readyz`, { headers: { 'x-sluice-key': gateway.key } });
    expect(await ready.json()).toMatchObject({ channels: [{ id: 'anthropic', standing: 'up' }] });
  });

  test('the limits of its account reach it with every answer', async () => {
    const gateway = await start(claude());
    const answer = await send(gateway, 'messages', 'claude-sonnet-4-5', withToken(gateway));
    expect(answer.headers.get('anthropic-ratelimit-unified-status')).toBe('allowed');
    expect(answer.headers.get('x-ratelimit-remaining-requests')).toBe('7');
  });
});

test('the credential stands in no log, error, record, metric or list, though the provider quotes it', async () => {
  const gateway = await start(claude(), demo());
  expect((await send(gateway, 'messages', 'claude-sonnet-4-5', withToken(gateway))).status).toBe(200);
  for (const status of [400, 401, 404, 422, 429, 500, 200]) {
    answers = (headers) => ({
      status,
      body: refusal('x', `what is ${JSON.stringify(headers)}`),
    });
    for (const headers of [withToken(gateway), { 'x-sluice-key': gateway.key, 'x-api-key': key }]) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      const answer = await send(gateway, 'messages', 'claude-sonnet-4-5', headers);
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      if (status !== 200) expect(await answer.text()).not.toContain('canary');
    }
  }
  await send(gateway, 'messages', 'unknown-model', withToken(gateway));
  const admin = await logIn(gateway.url);
  for (const page of [
    'listUsage',
    'exportUsage',
    'listChannels',
    'listKeys',
    'status',
    'overview',
    'listModels',
  ] as const) {
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    const answer = await admin.send(page);
    expect(answer.status).toBe(200);
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    expect(await answer.text()).not.toContain('canary');
  }
  for (const page of ['/metrics', '/readyz', '/v1/models']) {
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    const answer = await fetch(gateway.url + page, { headers: { 'x-sluice-key': gateway.key } });
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    expect(await answer.text()).not.toContain('canary');
  }
  expect(JSON.stringify(gateway.lines)).not.toContain('canary');
});

describe('the config', () => {
  const failure = (channel: ChannelEntry): Promise<unknown> =>
    startGateway({ channels: [channel] }).then((gateway) => {
      open.push(gateway);
      return 'started';
    }, String);

  test.each([
    ['a key', () => claude({ key: 'a-key-of-its-own-12345678' }), /cannot be combined with key/],
    [
      'discovery',
      () => claude({ models: 'discover' }),
      /no credential for requesting the provider's model list/,
    ],
    [
      'a kind that serves what its provider lists',
      () => openaiCompatible({ name: 'x', baseUrl: provider.url, credentials: 'client' }),
      /no credential for requesting the provider's model list/,
    ],
    ['another word', () => claude({ credentials: 'mine' }), /credentials/],
  ])('%s beside it is a mistake', async (_what, channel, sentence) => {
    expect(await failure(channel())).toMatch(sentence);
  });

  test('a kind that has credentials of its own goes on to take them', async () => {
    expect(await failure(vertex({ project: 'p', credentials: '/nowhere.json', models: ['m'] }))).toBe(
      'started',
    );
    expect(await failure(vertex({ project: 'p', credentials: 'client', models: ['m'] }))).toBe('started');
  });
});
