import { connect } from 'node:net';
import { ApiError } from '@google/genai';
import OpenAI, { toFile } from 'openai';
import { OpenAIRealtimeWS } from 'openai/realtime/ws';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import demo from '../../channels/demo/index.ts';
import anthropicChannel from '../../channels/anthropic.ts';
import openaiChannel from '../../channels/openai.ts';
import { parseSse } from '../../core/formats/_shared/sse.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream, type SeenRequest } from '../support/upstream.ts';
import { SocketClient } from '../support/websocket.ts';
import { voices } from '../flows/_wire.ts';
import { anthropicVertex, azureOpenai, vertexGenai, type Access } from './sdks.ts';

type Json = Record<string, unknown>;

let gateway: TestGateway;
let upstream: ScriptedUpstream;
/** The same gateway with a key that may use one model. */
let restricted: Access;

/** Members that the providers behind the channels know, of those that tests send; they refuse all others, as the real ones do. */
const known: Readonly<Record<string, readonly string[]>> = {
  '/v1/messages': ['model', 'max_tokens', 'messages', 'stream', 'system', 'metadata'],
  '/v1/messages/count_tokens': ['model', 'messages', 'system'],
  '/v1/chat/completions': ['model', 'messages', 'stream', 'stream_options', 'user'],
};

/** The beginning of a recording. */
const wave = Buffer.concat([Buffer.from('RIFF\x24\0\0\0WAVEfmt '), Buffer.alloc(100)]);
const json = { 'content-type': 'application/json' };

beforeAll(async () => {
  upstream = await startUpstream((request, response) => {
    const path = new URL(request.url, upstream.url).pathname;
    const body = sent(request);
    const unknown = Object.keys(body).find((name) => known[path]?.includes(name) !== true);
    // https://docs.claude.com/en/api/errors: invalid_request_error, `NAME: Extra inputs are not permitted`.
    if (unknown !== undefined) {
      const message = `${unknown}: Extra inputs are not permitted`;
      response
        .writeHead(400, json)
        .end(JSON.stringify({ error: { type: 'invalid_request_error', message } }));
      return;
    }
    if (path.endsWith('/count_tokens')) {
      response.writeHead(200, json).end('{"input_tokens":42}');
      return;
    }
    const voice = voices[path === '/v1/messages' ? 'messages' : 'chat-completions'];
    if (body.stream === true) {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (const frame of voice.frames(['fine'])) response.write(frame);
      response.end();
    } else response.writeHead(200, json).end(JSON.stringify(voice.whole('fine')));
  });
  const provider = { key: 'channel-key', baseUrl: `${upstream.url}/v1` };
  gateway = await startGateway({
    limits: { values: 20_000 },
    channels: [
      anthropicChannel({
        ...provider,
        id: 'claude',
        models: ['claude-x', 'claude@20990101', 'vendor/claude:1'],
      }),
      openaiChannel({ ...provider, id: 'gpt', models: ['gpt-x', 'gpt-y', 'vendor/gpt'] }),
      demo({
        id: 'demo',
        models: ['demo', 'gemini-embedding-001', 'text-embedding-005', 'gemini-embedding-2'],
      }),
    ],
  });
  const key = await gateway.apiKeys.create({ name: 'one model', models: ['gpt-x'] });
  restricted = { url: gateway.url, key: key.value };
});
beforeEach(() => {
  upstream.requests.length = 0;
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

function sent({ body }: Pick<SeenRequest, 'body'>): Json {
  const text = body.toString();
  return text === '' ? {} : (JSON.parse(text) as Json);
}

/** The one request that a provider got. */
function seen(): { readonly body: Json; readonly headers: SeenRequest['headers']; readonly text: string } {
  expect(upstream.requests).toHaveLength(1);
  const [request] = upstream.requests;
  if (request === undefined) throw new Error('No provider was asked.');
  return { body: sent(request), headers: request.headers, text: request.body.toString() };
}

async function post(
  path: string,
  body: string | Json,
  headers: Readonly<Record<string, string>> = { 'api-key': gateway.key },
): Promise<{ readonly status: number; readonly text: string; readonly body: Json }> {
  const response = await fetch(gateway.url + path, {
    method: 'POST',
    headers: { ...json, ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  const text = await response.text();
  let parsed: Json = {};
  try {
    parsed = JSON.parse(text) as Json;
  } catch {
    // A stream.
  }
  return { status: response.status, text, body: parsed };
}

const vertexPath = (rest: string, version = 'v1'): string =>
  `/${version}/projects/my-project/locations/europe-west1/${rest}`;
const rawPredict = (model: string, method = 'rawPredict'): string =>
  vertexPath(`publishers/anthropic/models/${model}:${method}`);
const question = { max_tokens: 10, messages: [{ role: 'user', content: 'Hi' }] };

describe('a client of Claude on Vertex AI', () => {
  test('reaches the API of Anthropic, which gets the model of the path, the version as a header and no key', async () => {
    const recordedKey = gateway.key;
    const message = await anthropicVertex(gateway).messages.create({
      model: 'claude-x',
      ...question,
      messages: [{ role: 'user', content: 'Hi' }],
    });
    expect(message).toMatchObject({ content: [{ type: 'text', text: 'fine' }] });
    const { body, headers, text } = seen();
    expect(body).toEqual({ model: 'claude-x', ...question });
    expect(headers).toMatchObject({ 'x-api-key': 'channel-key', 'anthropic-version': '2026-10-21' });
    expect(JSON.stringify(headers) + text).not.toContain(recordedKey);
  });

  test('streams', async () => {
    const stream = anthropicVertex(gateway).messages.stream({
      model: 'claude@20990101',
      max_tokens: 10,
      messages: [{ role: 'user', content: 'Hi' }],
    });
    expect(await stream.finalText()).toBe('fine');
    expect(seen().body).toMatchObject({ model: 'claude@20990101', stream: true });
  });

  test('counts tokens, with beta flags and without', async () => {
    const client = anthropicVertex(gateway);
    const request = { model: 'claude-x', messages: [{ role: 'user' as const, content: 'Hi' }] };
    expect(await client.messages.countTokens(request)).toMatchObject({ input_tokens: 42 });
    expect(await client.beta.messages.countTokens({ ...request, betas: ['flag-1'] })).toMatchObject({
      input_tokens: 42,
    });
    expect(upstream.requests[1]?.headers['anthropic-beta']).toContain('flag-1');
  });

  test('gets errors as its SDK reads them: a wrong key, a model that there is not', async () => {
    const failing = [
      [{ url: gateway.url, key: 'sk-wrong' }, 'claude-x', 401, 'authentication_error'],
      [gateway, 'no-such-model', 503, 'api_error'],
      [restricted, 'claude-x', 403, 'permission_error'],
    ] as const;
    for (const [access, model, status, type] of failing) {
      const call = anthropicVertex(access).messages.create({
        model,
        max_tokens: 10,
        messages: [{ role: 'user', content: 'Hi' }],
      });
      // oxlint-disable-next-line no-await-in-loop
      await expect(call).rejects.toMatchObject({ status, type });
    }
    expect(upstream.requests).toHaveLength(0);
  });

  test.each([
    ['vertex-2023-10-16', '2023-06-01'],
    ['2026-10-21', '2026-10-21'],
    [undefined, '2023-06-01'],
    [7, '2023-06-01'],
  ])('names the version %s in its body: the provider is told %s', async (anthropic_version, header) => {
    const body = { ...(anthropic_version === undefined ? {} : { anthropic_version }), ...question };
    expect(await post(rawPredict('claude-x'), body)).toMatchObject({ status: 200 });
    expect(seen().headers['anthropic-version']).toBe(header);
  });

  test('is refused with a version from before the first, in the words of Anthropic', async () => {
    const answer = await post(rawPredict('claude-x'), { anthropic_version: '2020-01-01', ...question });
    expect(answer).toMatchObject({
      status: 400,
      body: { type: 'error', error: { type: 'invalid_request_error' } },
    });
  });

  test('gets a stream where the path alone asks for one', async () => {
    const { text } = await post(rawPredict('claude-x', 'streamRawPredict'), { ...question, stream: false });
    expect(parseSse(text).map(({ event }) => event)).toContain('message_stop');
    expect(seen().body.stream).toBe(true);
  });

  test('asks for models whose names have a slash, a colon or an at sign, encoded or as they are', async () => {
    const models = ['claude@20990101', 'vendor/claude:1'];
    for (const name of [...models.map(encodeURIComponent), ...models]) {
      // oxlint-disable-next-line no-await-in-loop
      expect(await post(rawPredict(name), question)).toMatchObject({ status: 200 });
    }
    expect(upstream.requests.map((request) => sent(request).model)).toEqual([...models, ...models]);
  });

  test('has the bytes of its body kept, members of other names and all', async () => {
    const body = `{ "max_tokens": 10,"anthropic_version":"vertex-2023-10-16",  "metadata":{"n":12345678901234567890.10, "x":"\\u00fc"},"messages":[{"role":"user","content":"${'long '.repeat(4000)}"}] }`;
    expect(await post(rawPredict('claude-x'), body)).toMatchObject({ status: 200 });
    const { text } = seen();
    expect(text).toContain('"metadata":{"n":12345678901234567890.10, "x":"\\u00fc"}');
    expect(text).not.toContain('anthropic_version');
  });
});

describe('a client of Azure OpenAI', () => {
  test('calls a deployment without naming a model in its body', async () => {
    const answer = await post('/openai/deployments/gpt-x/chat/completions?api-version=2024-10-21', {
      messages: question.messages,
    });
    expect(answer).toMatchObject({ status: 200, body: { choices: [{ message: { content: 'fine' } }] } });
    expect(seen().body).toEqual({ model: 'gpt-x', messages: question.messages });
    expect(upstream.requests[0]?.url).toBe('/v1/chat/completions');
  });

  test.each(['Hi', 'long '.repeat(4000)])(
    'gets the deployment of the path, whatever model its body names (%#)',
    async (content) => {
      const body = { model: 'gpt-y', messages: [{ role: 'user', content }] };
      expect(await post('/openai/deployments/gpt-x/chat/completions', body)).toMatchObject({ status: 200 });
      expect(seen().body).toMatchObject({ model: 'gpt-x' });
    },
  );

  test('is refused a deployment that its key may not use, whatever model its body names, however often', async () => {
    const key = { 'api-key': restricted.key };
    const bodies = [
      JSON.stringify({ model: 'gpt-x', messages: question.messages }),
      `{"model":"gpt-x","model":"gpt-x","messages":[{"role":"user","content":"Hi"}]}`,
      `{"m\\u006fdel":"gpt-x","messages":[{"role":"user","content":"Hi"}]}`,
      JSON.stringify({ model: 'gpt-x', messages: [{ role: 'user', content: 'long '.repeat(4000) }] }),
    ];
    for (const body of bodies) {
      // oxlint-disable-next-line no-await-in-loop
      const answer = await post('/openai/deployments/gpt-y/chat/completions', body, key);
      expect(answer).toMatchObject({ status: 403, body: { error: { code: 'model_not_allowed' } } });
    }
    const form = new FormData();
    form.set('model', 'gpt-x');
    form.set('file', new Blob([wave]), 'a.wav');
    const response = await fetch(`${gateway.url}/openai/deployments/gpt-y/audio/transcriptions`, {
      method: 'POST',
      headers: key,
      body: form,
    });
    expect(response.status).toBe(403);
    expect(upstream.requests).toHaveLength(0);
    expect(
      await post(
        '/openai/deployments/gpt-x/chat/completions',
        { model: 'gpt-y', messages: question.messages },
        key,
      ),
    ).toMatchObject({ status: 200 });
  });

  // A deployment that is a part of the base URL is not encoded by the SDKs.
  test.each(['vendor/gpt', 'vendor%2Fgpt'])('calls a deployment named %s', async (name) => {
    const answer = await post(`/openai/deployments/${name}/chat/completions?api-version=2024-10-21`, {
      messages: question.messages,
    });
    expect(answer).toMatchObject({ status: 200 });
    expect(seen().body).toMatchObject({ model: 'vendor/gpt' });
  });

  test('keeps the model of its body at the address of v1', async () => {
    const body = { model: 'gpt-y', messages: question.messages };
    expect(await post('/openai/v1/chat/completions', body)).toMatchObject({ status: 200 });
    expect(await post('/openai/v1/chat/completions?api-version=preview', body)).toMatchObject({
      status: 200,
    });
    expect(upstream.requests.map((request) => sent(request).model)).toEqual(['gpt-y', 'gpt-y']);
  });

  test('names its deployment once, for all that it does', async () => {
    const client = azureOpenai(gateway, { deployment: 'demo' });
    const model = 'ignored';
    const chat = await client.chat.completions.create({ model, messages: [{ role: 'user', content: 'Hi' }] });
    expect(chat.choices[0]?.message.content).toBe('You said: Hi');
    expect((await client.completions.create({ model, prompt: 'Hi' })).choices).toHaveLength(1);
    expect((await client.embeddings.create({ model, input: ['a', 'b'] })).data).toHaveLength(2);
    expect((await client.images.generate({ model, prompt: 'A heron' })).data).toHaveLength(1);
    expect((await client.audio.speech.create({ model, voice: 'alloy', input: 'Hi' })).status).toBe(200);
    const file = await toFile(wave, 'a.wav', { type: 'audio/wav' });
    expect((await client.audio.transcriptions.create({ model, file })).text).toMatch(/./);
  });

  test('signs in with a token provider, which gives the key', async () => {
    const { AzureOpenAI } = await import('openai');
    const client = new AzureOpenAI({
      endpoint: gateway.url,
      apiVersion: '2024-10-21',
      azureADTokenProvider: () => Promise.resolve(gateway.key),
    });
    const chat = await client.chat.completions.create({
      model: 'demo',
      messages: [{ role: 'user', content: 'Hi' }],
    });
    expect(chat.choices[0]?.message.content).toBe('You said: Hi');
  });

  test('keeps responses and lists models at the addresses of its SDK', async () => {
    const client = azureOpenai(gateway);
    const response = await client.responses.create({ model: 'demo', input: 'Hi' });
    expect(await client.responses.retrieve(response.id)).toMatchObject({
      id: response.id,
      output_text: 'You said: Hi',
    });
    const ids = (await client.models.list()).data.map(({ id }) => id);
    expect(ids).toContain('gpt-x');
    expect(await client.models.retrieve('gpt-x')).toMatchObject({ id: 'gpt-x' });
  });

  test('gets errors as its SDK reads them', async () => {
    const request = { messages: [{ role: 'user' as const, content: 'Hi' }] };
    await expect(
      azureOpenai({ url: gateway.url, key: 'sk-wrong' }).chat.completions.create({
        model: 'demo',
        ...request,
      }),
    ).rejects.toMatchObject({ status: 401, code: 'invalid_api_key' });
    await expect(
      azureOpenai(gateway).chat.completions.create({ model: 'none', ...request }),
    ).rejects.toMatchObject({
      status: 503,
      code: 'no_available_channel',
    });
    await expect(azureOpenai(gateway).get('/nothing')).rejects.toMatchObject({
      status: 404,
      code: 'unknown_url',
    });
    await expect(azureOpenai(gateway).get('/deployments/%ZZ/chat/completions')).rejects.toMatchObject({
      status: 404,
    });
  });

  test('holds a session of realtime at the address of its SDK, and at that of before', async () => {
    const { port } = new URL(gateway.url);
    const client = azureOpenai(gateway);
    const realtime = await OpenAIRealtimeWS.azure(client, {
      deploymentName: 'demo',
      options: { createConnection: () => connect(Number(port), '127.0.0.1') },
    });
    const types: string[] = [];
    realtime.on('event', ({ type }) => types.push(type));
    await expect.poll(() => types, { interval: 2 }).toContain('session.created');
    realtime.close();
    const older = await SocketClient.open(
      `${gateway.url}/openai/realtime?api-version=2024-10-01-preview&deployment=demo`,
      {
        headers: { 'api-key': gateway.key },
      },
    );
    await older.until(({ type }) => type === 'session.created');
    older.vanish();
  });

  test('asks for responses over a socket', async () => {
    const socket = await SocketClient.open(`${gateway.url}/openai/v1/responses`, {
      headers: { 'api-key': gateway.key },
    });
    socket.send({ type: 'response.create', model: 'demo', input: 'Hi' });
    const [last] = await socket.until(({ type }) => type === 'response.completed');
    expect(last).toMatchObject({ response: { model: 'demo', status: 'completed' } });
    socket.vanish();
  });

  test('is asked to open a socket, or told where there is none, in the words of its API', async () => {
    const headers = { 'api-key': gateway.key };
    const plain = await fetch(`${gateway.url}/openai/realtime?deployment=demo`, { headers });
    expect(plain.status).toBe(426);
    expect(await plain.json()).toMatchObject({ error: { type: 'invalid_request_error' } });
  });
});

describe('a client of Gemini on Vertex AI', () => {
  test.each(['project', 'express'] as const)(
    'counts tokens and embeds, by both methods of its SDK (%s)',
    async (mode) => {
      const client = vertexGenai(gateway, mode);
      expect(
        (await client.models.countTokens({ model: 'demo', contents: 'one two three' })).totalTokens,
      ).toBeGreaterThan(2);
      const several = await client.models.embedContent({
        model: 'text-embedding-005',
        contents: ['a', 'b'],
        config: { taskType: 'RETRIEVAL_QUERY', outputDimensionality: 8 },
      });
      expect(several.embeddings?.map(({ values }) => values?.length)).toEqual([8, 8]);
      const one = await client.models.embedContent({ model: 'gemini-embedding-001', contents: 'a' });
      expect(one.embeddings?.[0]?.statistics?.tokenCount).toBeGreaterThan(0);
      const newer = await client.models.embedContent({
        model: 'gemini-embedding-2',
        contents: 'a',
        config: { outputDimensionality: 8 },
      });
      expect(newer.embeddings?.map(({ values }) => values?.length)).toEqual([8]);
    },
  );

  test('lists models and asks for one', async () => {
    const client = vertexGenai(gateway, 'project');
    const names: (string | undefined)[] = [];
    for await (const { name } of await client.models.list()) names.push(name);
    expect(names).toContain('models/gpt-x');
    expect(await client.models.get({ model: 'gpt-x' })).toMatchObject({ name: 'models/gpt-x' });
  });

  test('names a model of another publisher', async () => {
    const response = await vertexGenai(gateway, 'project').models.generateContent({
      model: 'vendor/gpt',
      contents: 'Hi',
    });
    expect(response.text).toBe('fine');
    expect(seen().body).toMatchObject({ model: 'vendor/gpt' });
  });

  test.each([
    ['/v1/publishers/google/models/demo:generateContent', 'x-goog-api-key'],
    ['/v1beta1/publishers/google/models/demo:generateContent', 'key'],
    [vertexPath('publishers/google/models/demo:generateContent'), 'authorization'],
    [vertexPath('publishers/google/models/demo:generateContent', 'v1beta1'), 'authorization'],
    [vertexPath('models/demo:generateContent'), 'x-goog-api-key'],
  ])('is answered at %s with its key in %s', async (path, where) => {
    const headers =
      where === 'key' ? {} : { [where]: where === 'authorization' ? `Bearer ${gateway.key}` : gateway.key };
    const query = where === 'key' ? `?key=${gateway.key}` : '';
    const answer = await post(
      path + query,
      { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] },
      { ...headers },
    );
    expect(answer).toMatchObject({
      status: 200,
      body: { candidates: [{ content: { parts: [{ text: 'You said: Hi' }] } }] },
    });
  });

  test('gets errors as its SDK reads them: a wrong key, and paths that there are not', async () => {
    const wrong = vertexGenai({ url: gateway.url, key: 'sk-wrong' }, 'project').models.generateContent({
      model: 'demo',
      contents: 'Hi',
    });
    const error = await wrong.catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ApiError);
    expect(error).toMatchObject({
      status: 401,
      message: expect.stringContaining('UNAUTHENTICATED') as string,
    });
    for (const path of [
      vertexPath('cachedContents'),
      vertexPath('publishers/mistralai/models/demo:rawPredict'),
      vertexPath('endpoints/1:generateContent'),
      '/v1beta1/nothing',
      '/v1/publishers/google/nothing',
    ]) {
      // oxlint-disable-next-line no-await-in-loop
      const answer = await post(path, {}, { authorization: `Bearer ${gateway.key}` });
      expect(answer).toMatchObject({ status: 404, body: { error: { code: 404, status: 'NOT_FOUND' } } });
    }
  });

  test('speaks chat completions there, with the official client of that format', async () => {
    for (const version of ['v1', 'v1beta1']) {
      const client = new OpenAI({
        baseURL: gateway.url + vertexPath('endpoints/openapi', version),
        apiKey: gateway.key,
      });
      // oxlint-disable-next-line no-await-in-loop
      const chat = await client.chat.completions.create({
        model: 'demo',
        messages: [{ role: 'user', content: 'Hi' }],
      });
      expect(chat.choices[0]?.message.content).toBe('You said: Hi');
    }
  });
});

describe('a body that comes by the address of a cloud', () => {
  const paths = ['/openai/deployments/gpt-x/chat/completions', rawPredict('claude-x')];

  test.each(paths)('is held to the limits of all bodies, and to JSON (%s)', async (path) => {
    const many = `{"messages":[${Array.from({ length: 30_000 }, () => '{}').join(',')}]}`;
    expect(await post(path, many)).toMatchObject({
      status: 400,
      text: expect.stringContaining('20000 values') as string,
    });
    for (const broken of ['', '{', '[]', '"model"', '{"model":}', '{"model":"a" "b"}', '{"\\q":1}'])
      // oxlint-disable-next-line no-await-in-loop
      expect(await post(path, broken)).toMatchObject({ status: 400 });
    expect(upstream.requests).toHaveLength(0);
  });
});
