import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import demo from '../../channels/demo/index.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';

let gateway: TestGateway;
let limited: string;

beforeAll(async () => {
  gateway = await startGateway({ channels: [demo({ models: ['x', 'y'] })] });
  limited = (await gateway.apiKeys.create({ name: 'limited', models: ['x'] })).value;
});
afterAll(() => gateway.close());
beforeEach(() => gateway.forgetLines());

interface RequestOptions {
  readonly key?: string | undefined;
  readonly more?: object;
  readonly headers?: Record<string, string>;
}

/** The same question in each format. */
const formats = {
  'chat-completions': (model: string, text: string, { key, more, headers }: RequestOptions = {}) =>
    post(
      '/v1/chat/completions',
      { ...(key === undefined ? {} : { authorization: `Bearer ${key}` }), ...headers },
      { model, messages: [{ role: 'user', content: text }], ...more },
    ),
  messages: (model: string, text: string, { key, more, headers }: RequestOptions = {}) =>
    post(
      '/v1/messages',
      { 'anthropic-version': '2023-06-01', ...(key === undefined ? {} : { 'x-api-key': key }), ...headers },
      { model, max_tokens: 4096, messages: [{ role: 'user', content: text }], ...more },
    ),
  'generate-content': (model: string, text: string, { key, more, headers }: RequestOptions = {}) =>
    post(
      `/v1beta/models/${model}:generateContent${key === undefined ? '' : `?key=${key}`}`,
      { ...headers },
      {
        contents: [{ role: 'user', parts: [{ text }] }],
        ...more,
      },
    ),
};
type FormatName = keyof typeof formats;
const names = Object.keys(formats) as FormatName[];

function post(path: string, headers: Record<string, string>, body: object): Promise<Response> {
  return fetch(gateway.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
}

/** The request that reached the demo, which it gives back as its answer. */
async function reached(name: FormatName, model: string, options: RequestOptions = {}) {
  const response = await formats[name](model, '!request', { key: gateway.key, ...options });
  const text = await response.text();
  expect({ status: response.status, text }).toMatchObject({ status: 200 });
  const whole = JSON.parse(text) as Record<string, unknown>;
  const found = JSON.stringify(whole).match(/\{\\"format\\".*?\}(?=")/s)?.[0] ?? '';
  return {
    whole,
    request: JSON.parse(JSON.parse(`"${found}"`) as string) as {
      headers: Record<string, string>;
      query: object;
      body: object;
    },
  };
}

async function lines(count: number): Promise<Record<string, unknown>[]> {
  const calls = () => gateway.lines.filter(({ plugin }) => plugin === 'logging');
  await expect.poll(() => calls().length).toBeGreaterThanOrEqual(count);
  return calls();
}

describe('a caller without a key', () => {
  const envelopes: Record<FormatName, object> = {
    'chat-completions': { error: { type: 'invalid_request_error' } },
    messages: { type: 'error', error: { type: 'authentication_error' } },
    'generate-content': { error: { code: 401, status: 'UNAUTHENTICATED' } },
  };
  test.each(names)('is refused in the envelope of %s, and the log says so', async (name) => {
    const response = await formats[name]('x', 'hello');
    expect(response.status).toBe(401);
    expect(response.headers.get('www-authenticate')).toBe('Bearer');
    expect(await response.json()).toMatchObject(envelopes[name]);
    expect(await lines(1)).toMatchObject([
      { level: 'info', format: name, status: 401, code: 'missing_api_key' },
    ]);
  });

  test('is refused before its body is read', async () => {
    const response = await post('/v1/chat/completions', {}, { not: 'a chat' });
    expect(await response.json()).toMatchObject({
      error: { message: expect.stringMatching(/^This request has no API key/) },
    });
  });
});

describe('a key that names models', () => {
  test.each(names)(
    'is refused others with 403 in %s, and may ask for its own with a suffix',
    async (name) => {
      const refused = await formats[name]('y', 'hello', { key: limited });
      expect(refused.status).toBe(403);
      expect(await refused.text()).toContain('This API key has no access to the model y.');
      expect((await formats[name]('x-high', 'hello', { key: limited })).status).toBe(200);
      expect(await lines(2)).toMatchObject([
        { status: 403, code: 'model_not_allowed', param: 'model', model: 'y' },
        { status: 200, model: 'x-high', modelInForce: 'x' },
      ]);
    },
  );

  test('sees only those in every list', async () => {
    const get = async (path: string, headers: Record<string, string>) =>
      (await fetch(gateway.url + path, { headers })).text();
    const lists = await Promise.all([
      get('/v1/models', { authorization: `Bearer ${limited}` }),
      get('/v1/models', { 'x-api-key': limited, 'anthropic-version': '2023-06-01' }),
      get(`/v1beta/models?key=${limited}`, {}),
    ]);
    for (const list of lists) {
      expect(list).toMatch(/"(models\/)?x"/);
      expect(list).not.toMatch(/"(models\/)?y"/);
    }
    expect((await fetch(`${gateway.url}/v1/models/y`, { headers: { 'x-api-key': limited } })).status).toBe(
      404,
    );
  });
});

describe('a suffix', () => {
  const reasoningOptions: Record<
    FormatName,
    { high: object; thinking: object; explicit: object; kept: object }
  > = {
    'chat-completions': {
      high: { model: 'x', reasoning_effort: 'high' },
      thinking: { model: 'x', reasoning_effort: 'medium' },
      explicit: { reasoning_effort: 'low' },
      kept: { model: 'x', reasoning_effort: 'low' },
    },
    messages: {
      high: { model: 'x', thinking: { type: 'enabled', budget_tokens: 4095 } },
      thinking: { model: 'x', thinking: { type: 'enabled', budget_tokens: 3276 } },
      explicit: { thinking: { type: 'enabled', budget_tokens: 1024 } },
      kept: { model: 'x', thinking: { type: 'enabled', budget_tokens: 1024 } },
    },
    'generate-content': {
      high: { generationConfig: { thinkingConfig: { thinkingLevel: expect.stringMatching(/^high$/i) } } },
      thinking: { generationConfig: { thinkingConfig: { includeThoughts: true } } },
      explicit: { generationConfig: { thinkingConfig: { thinkingLevel: 'low' } } },
      kept: { generationConfig: { thinkingConfig: { thinkingLevel: 'low' } } },
    },
  };
  test.each(names)(
    'reaches the channel in the words of %s; the reply carries the name that was asked for',
    async (name) => {
      const { high, thinking, explicit, kept } = reasoningOptions[name];
      const { whole, request } = await reached(name, 'x-high');
      expect(request.body).toMatchObject(high);
      expect(whole[name === 'generate-content' ? 'modelVersion' : 'model']).toBe('x-high');
      expect((await reached(name, 'x-thinking')).request.body).toMatchObject(thinking);
      expect((await reached(name, 'x-high', { more: explicit })).request.body).toMatchObject(kept);
    },
  );
});

describe('behind the gateway', () => {
  test.each(names)('nobody sees a credential of the client that speaks %s', async (name) => {
    const headers = {
      authorization: `Bearer ${gateway.key}`,
      'x-api-key': gateway.key,
      'x-goog-api-key': gateway.key,
      cookie: 'session=secret-1',
    };
    const { request } = await reached(name, 'x', { headers });
    expect(JSON.stringify(request)).not.toContain(gateway.key);
    expect(JSON.stringify(request)).not.toContain('secret-1');
    expect(JSON.stringify(gateway.lines)).not.toContain(gateway.key);
  });
});

test('every call has one line, also one that is refused for its headers', async () => {
  await post('/v1/messages', { 'x-api-key': gateway.key }, {});
  await post('/v1/chat/completions', { 'x-api-key': gateway.key, 'content-type': 'text/plain' }, {});
  await post('/v1/chat/completions', { 'x-api-key': gateway.key }, { model: 'x' });
  expect(await lines(3)).toMatchObject([
    { format: 'messages', status: 400 },
    { format: 'chat-completions', status: 415 },
    { format: 'chat-completions', status: 400, code: 'missing_required_parameter', param: 'messages' },
  ]);
});

test("the log carries the client's own id and what was used", async () => {
  const response = await formats['chat-completions']('x', 'hello', {
    key: gateway.key,
    headers: { 'x-request-id': 'mine-1' },
    more: { stream: true, stream_options: { include_usage: true } },
  });
  await response.text();
  expect(await lines(1)).toMatchObject([
    {
      clientId: 'mine-1',
      id: response.headers.get('x-request-id'),
      stream: true,
      ended: 'complete',
      passThrough: true,
      channel: 'demo',
      usage: { input: expect.any(Number), output: expect.any(Number) },
    },
  ]);
});
