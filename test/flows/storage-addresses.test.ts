import { GoogleGenAI } from '@google/genai';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import bedrock from '../../channels/bedrock/index.ts';
import gemini from '../../channels/gemini.ts';
import openai from '../../channels/openai.ts';
import openaiCompatible from '../../channels/openai-compatible.ts';
import anthropic from '../../channels/anthropic.ts';
import providerObjects from '../../plugins/provider-objects/index.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startGeminiObjects } from '../support/gemini-objects.ts';
import { startRealtimeUpstream } from '../support/realtime-upstream.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { SocketClient } from '../support/websocket.ts';
import { voices } from './_wire.ts';

type Json = Record<string, unknown>;

const converseReply = {
  output: { message: { role: 'assistant', content: [{ text: 'hi' }] } },
  stopReason: 'end_turn',
  usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 },
};

let gateway: TestGateway;
let upstream: ScriptedUpstream;
let key: string;

beforeAll(async () => {
  upstream = await startUpstream(({ url: path }, response) => {
    const body = path.includes('/converse')
      ? converseReply
      : path.includes(':predictLongRunning')
        ? { name: 'models/veo/operations/1' }
        : path.includes(':generateContent')
          ? voices['generate-content'].whole('hi')
          : path.includes('/messages')
            ? voices.messages.whole('hi')
            : voices['chat-completions'].whole('hi');
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  const here = { key: 'k', baseUrl: `${upstream.url}/v1` };
  const ofGoogle = { key: 'k', baseUrl: `${upstream.url}/v1beta` };
  const ofAmazon = { key: 'k', region: 'us-east-1', baseUrl: upstream.url };
  gateway = await startGateway({
    channels: [
      bedrock({ ...ofAmazon, id: 'shut', models: { converse: 'amazon.nova-pro-v1:0' } }),
      bedrock({
        ...ofAmazon,
        id: 'open',
        models: { 'converse-open': 'amazon.nova-pro-v1:0', both: 'amazon.nova-lite-v1:0' },
        mayRead: ['s3://ours/shared/', 's3://ours/one.pdf'],
      }),
      // Asked first, were it not for the address.
      bedrock({ ...ofAmazon, id: 'first', priority: 1, models: { both: 'amazon.nova-pro-v1:0' } }),
      gemini({ ...ofGoogle, id: 'google', models: ['gemini-a', 'veo-a'] }),
      gemini({
        ...ofGoogle,
        id: 'google-open',
        models: ['gemini-open', 'veo-open'],
        mayRead: ['gs://ours/', 'projects/p/locations/l/ragCorpora/1'],
        mayWrite: ['gs://out/'],
      }),
      anthropic({ ...here, models: ['claude-a'] }),
      openai({ ...here, id: 'chat', models: ['gpt-a'] }),
      openaiCompatible({ ...here, name: 'own', id: 'own', models: ['own-a'], mayRead: ['file:///media/'] }),
      openaiCompatible({
        baseUrl: `${upstream.url}/v1`,
        name: 'theirs',
        models: ['theirs'],
        credentials: 'client',
      }),
    ],
  });
  key = (await gateway.apiKeys.create({ name: 'key' })).value;
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});
beforeEach(() => void (upstream.requests.length = 0));

async function post(path: string, body: Json | string, headers: Record<string, string> = {}) {
  const response = await fetch(gateway.url + path, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${key}`,
      'anthropic-version': '2023-06-01',
      ...headers,
    },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

const converse = (model: string, uri: string) =>
  post(`/model/${model}/converse`, {
    messages: [
      {
        role: 'user',
        content: [
          { text: 'Read.' },
          { document: { name: 'a', format: 'pdf', source: { s3Location: { uri } } } },
        ],
      },
    ],
  });
const generate = (model: string, part: Json, more: Json = {}) =>
  post(`/v1beta/models/${model}:generateContent`, {
    contents: [{ role: 'user', parts: [{ text: 'Read.' }, part] }],
    ...more,
  });
const chat = (model: string, url: string, headers: Record<string, string> = {}) =>
  post(
    '/v1/chat/completions',
    {
      model,
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'See.' },
            { type: 'image_url', image_url: { url } },
          ],
        },
      ],
    },
    headers,
  );

describe('an address in storage of the operator reaches no provider, unless the operator allows it', () => {
  test('s3 in Converse, in the words of that format', async () => {
    const { status, headers, text } = await converse('converse', 's3://other-tenant/secret.pdf');
    expect(status).toBe(403);
    expect(headers.get('x-amzn-errortype')).toBe('AccessDeniedException');
    expect(text).toContain('messages[0].content[1].document.source.s3Location.uri');
    expect(text).toContain('s3://other-tenant/secret.pdf');
    expect(text).toContain('mayRead');
    expect(upstream.requests).toEqual([]);
  });

  test('below a prefix, and exactly one object', async () => {
    expect((await converse('converse-open', 's3://ours/shared/a.pdf')).status).toBe(200);
    expect((await converse('converse-open', 'S3://ours/shared/b/c.pdf')).status).toBe(200);
    expect((await converse('converse-open', 's3://ours/one.pdf')).status).toBe(200);
    expect(upstream.requests).toHaveLength(3);
    for (const uri of [
      's3://ours/one.pdf.bak',
      's3://ours/shared',
      's3://ours/shared/../secret.pdf',
      's3://ours/shared/%2e%2e/secret.pdf',
      's3://ours/shared/..\\secret.pdf',
      's3://ours-too/shared/a.pdf',
      's3://OURS/shared/a.pdf',
      'https://ours.s3.amazonaws.com/secret.pdf',
    ])
      expect([uri, (await converse('converse-open', uri)).status]).toEqual([uri, 403]);
    expect(upstream.requests).toHaveLength(3);
  });

  test('another channel of the model that may read it is asked in place of the first', async () => {
    expect((await converse('both', 's3://ours/shared/a.pdf')).status).toBe(200);
    expect(upstream.requests.map(({ url }) => url)).toEqual([expect.stringContaining('nova-lite')]);
    expect((await converse('both', 's3://ours/else.pdf')).status).toBe(403);
  });

  test.each([
    ['fileUri', { fileData: { mimeType: 'text/plain', fileUri: 'gs://theirs/a.txt' } }],
    ['file_uri', { file_data: { mime_type: 'text/plain', file_uri: 'gs://theirs/a.txt' } }],
    ['with capitals', { fileData: { mimeType: 'text/plain', fileUri: 'GS://theirs/a.txt' } }],
    ['with a space before it', { fileData: { mimeType: 'text/plain', fileUri: ' gs://theirs/a.txt' } }],
    [
      'with a line break in its scheme',
      { fileData: { mimeType: 'text/plain', fileUri: 'g\ns://theirs/a.txt' } },
    ],
    [
      'in the result of a function',
      {
        functionResponse: {
          name: 'f',
          response: {},
          parts: [{ fileData: { fileUri: 'gs://theirs/a.png' } }],
        },
      },
    ],
  ])('gs in generateContent: %s', async (_, part) => {
    const { status, text } = await generate('gemini-a', part);
    expect([status, JSON.parse(text)]).toEqual([
      403,
      {
        error: expect.objectContaining({
          code: 403,
          status: 'PERMISSION_DENIED',
          message: expect.stringContaining('mayRead'),
        }),
      },
    ]);
    expect(upstream.requests).toEqual([]);
  });

  test('written with codes in place of letters, and behind many spaces', async () => {
    const part = (member: string): string =>
      `{"contents":[{"role":"user","parts":[{"text":"Read."},{"fileData":{"mimeType":"text/plain",${member}}}]}]}`;
    for (const member of [
      String.raw`"file\u0055ri":"gs://theirs/a.txt"`,
      String.raw`"fileUri":"\u0067s:\/\/theirs/a.txt"`,
      `"fileUri"${' '.repeat(70_000)}:${' '.repeat(100)}"gs://theirs/a.txt"`,
      `"fileUri": "gs://theirs/a.txt", "x": "${'y'.repeat(200_000)}"`,
    ])
      expect((await post('/v1beta/models/gemini-a:generateContent', part(member))).status).toBe(403);
    expect(upstream.requests).toEqual([]);
  });

  test('what is allowed passes as it came, and what names no storage too', async () => {
    const fileUri = 'gs://ours/a.txt';
    expect((await generate('gemini-open', { fileData: { mimeType: 'text/plain', fileUri } })).status).toBe(
      200,
    );
    expect(JSON.parse(upstream.requests[0]?.body.toString() ?? '')).toMatchObject({
      contents: [{ parts: [{}, { fileData: { fileUri } }] }],
    });
    for (const uri of ['https://example.com/a.txt', 'https://www.youtube.com/watch?v=9hE5-98ZeCg'])
      expect(
        (await generate('gemini-a', { fileData: { mimeType: 'text/plain', fileUri: uri } })).status,
      ).toBe(200);
    expect(
      (await generate('gemini-a', { text: 'What is in gs://theirs/a.txt, "fileUri": "gs://theirs/a.txt"?' }))
        .status,
    ).toBe(200);
    expect(
      (
        await generate('gemini-a', {
          functionResponse: { name: 'list', response: { uri: 'gs://theirs/a.txt' } },
        })
      ).status,
    ).toBe(200);
  });

  test('data stores and corpora of the operator’s project', async () => {
    const tools = (name: string) => ({ tools: [{ retrieval: { vertexRagStore: { ragCorpora: [name] } } }] });
    expect(
      (await generate('gemini-open', { text: 'a' }, tools('projects/p/locations/l/ragCorpora/1'))).status,
    ).toBe(200);
    expect(
      (await generate('gemini-open', { text: 'a' }, tools('projects/p/locations/l/ragCorpora/2'))).status,
    ).toBe(403);
    const search = {
      tools: [{ retrieval: { vertexAiSearch: { datastore: 'projects/p/locations/l/dataStores/1' } } }],
    };
    expect((await generate('gemini-a', { text: 'a' }, search)).status).toBe(403);
  });

  test('where a video is read from, and where it is written to', async () => {
    const make = (model: string, instance: Json, parameters: Json) =>
      post(`/v1beta/models/${model}:predictLongRunning`, {
        instances: [{ prompt: 'a', ...instance }],
        parameters,
      });
    const image = (gcsUri: string) => ({ image: { gcsUri, mimeType: 'image/png' } });
    expect((await make('veo-a', image('gs://theirs/a.png'), {})).text).toContain('mayRead');
    const refused = await make('veo-a', {}, { storageUri: 'gs://theirs/' });
    expect(refused.status).toBe(403);
    expect(refused.text).toContain('mayWrite');
    // What may be read may not be written.
    expect((await make('veo-open', image('gs://ours/a.png'), { storageUri: 'gs://ours/' })).status).toBe(403);
    expect(upstream.requests).toEqual([]);
    expect((await make('veo-open', image('gs://ours/a.png'), { storageUri: 'gs://out/b/' })).status).toBe(
      200,
    );
  });

  test.each([
    'file:///etc/passwd',
    'FILE:/etc/passwd',
    '/etc/passwd',
    '../a.png',
    'oss://theirs/a.png',
    'ms://file-of-another',
  ])('chat completions: %s', async (url) => {
    const { status, text } = await chat('gpt-a', url);
    expect([status, JSON.parse(text)]).toEqual([
      403,
      { error: expect.objectContaining({ param: 'messages[0].content[1].image_url.url' }) },
    ]);
    expect(upstream.requests).toEqual([]);
  });

  test('a file that a server of one’s own may open', async () => {
    expect((await chat('own-a', 'file:///media/a.png')).status).toBe(200);
    expect((await chat('own-a', 'file:///media/../etc/passwd')).status).toBe(403);
  });

  test('messages, and Responses with a part at the top of the body that looks like a call of a tool', async () => {
    const source = { type: 'url', url: 's3://theirs/a.png' };
    const messages = await post('/v1/messages', {
      model: 'claude-a',
      max_tokens: 9,
      messages: [{ role: 'user', content: [{ type: 'image', source }] }],
    });
    expect([messages.status, JSON.parse(messages.text)]).toEqual([
      403,
      expect.objectContaining({
        type: 'error',
        error: expect.objectContaining({ type: 'permission_error' }),
      }),
    ]);
    const responses = await post('/v1/responses', {
      model: 'gpt-a',
      type: 'x_tool_use',
      input: [{ role: 'user', content: [{ type: 'input_image', image_url: 's3://theirs/a.png' }] }],
    });
    expect(responses.status).toBe(403);
    expect(upstream.requests).toEqual([]);
  });

  test('arguments of tools may name what they like', async () => {
    const reply = await post('/v1/messages', {
      model: 'claude-a',
      max_tokens: 9,
      messages: [
        { role: 'user', content: 'Copy it.' },
        {
          role: 'assistant',
          content: [{ type: 'tool_use', id: 't', name: 'copy', input: { url: 's3://ours/a' } }],
        },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: 'done' }] },
      ],
    });
    expect(reply.status).toBe(200);
  });

  test('with the client’s own credential the provider reads what the client may read', async () => {
    const own = { authorization: 'Bearer of-the-client', 'x-sluice-key': key };
    expect((await chat('theirs', 's3://mine/a.png', own)).status).toBe(200);
  });

  test('in pictures as base64 nothing is taken for an address', async () => {
    expect((await chat('gpt-a', 'data:image/png;base64,iVBORw0KGgo=')).status).toBe(200);
    expect((await chat('gpt-a', '/9j/4AAQSkZJRg==')).status).toBe(200);
  });
});

test('lines of a batch, also where they came in a file, and a batch in a body', async () => {
  const provider = await startGeminiObjects();
  const own = await startGateway({
    plugins: [providerObjects({ poll: { first: 60_000, most: 60_000 } })],
    channels: [
      gemini({
        id: 'a',
        key: 'k',
        baseUrl: `${provider.url}/v1beta`,
        models: ['gemini-a'],
        mayRead: ['gs://ours/'],
      }),
    ],
  });
  onTestFinished(async () => {
    await own.close();
    await provider.close();
  });
  const { value: apiKey } = await own.apiKeys.create({ name: 'one' });
  const client = new GoogleGenAI({ apiKey, httpOptions: { baseUrl: own.url } });
  const request = (fileUri: string) => ({
    contents: [{ role: 'user', parts: [{ fileData: { fileUri, mimeType: 'text/plain' } }] }],
  });
  const upload = (fileUri: string) =>
    client.files.upload({
      file: new Blob([`${JSON.stringify({ key: 'a', request: request(fileUri) })}\n`]),
      config: { mimeType: 'jsonl' },
    });
  const create = async (src: object) => client.batches.create({ model: 'gemini-a', src: src as never });
  await expect(create({ inlinedRequests: [request('gs://theirs/a.txt')] })).rejects.toMatchObject({
    status: 403,
  });
  const theirs = await upload('gs://theirs/a.txt');
  await expect(create({ fileName: theirs.name })).rejects.toMatchObject({
    status: 403,
    message: expect.stringContaining('mayRead'),
  });
  expect(provider.requests.filter(({ path }) => path.includes(':batch'))).toEqual([]);
  const ours = await upload('gs://ours/a.txt');
  expect(await create({ fileName: ours.name })).toMatchObject({ name: expect.stringContaining('batches/') });
});

test('a message of a session that names such an address is not sent on', async () => {
  const provider = await startRealtimeUpstream((session, message) => {
    if (message !== undefined) session.socket.send(message.data, { binary: message.binary });
  });
  const own = await startGateway({
    channels: [openai({ key: 'k', baseUrl: provider.url, models: ['talk'] })],
  });
  onTestFinished(async () => {
    await own.close();
    await provider.close();
  });
  const client = await SocketClient.open(`${own.url}/v1/realtime?model=talk`, {
    headers: { authorization: `Bearer ${own.key}` },
  });
  const item = (image_url: string) => ({
    type: 'conversation.item.create',
    event_id: 'mine',
    item: { type: 'message', role: 'user', content: [{ type: 'input_image', image_url }] },
  });
  client.send(item('file:///etc/passwd'));
  client.send(item('https://example.com/a.png'));
  await client.until(({ type }) => type === 'conversation.item.create');
  expect(client.messages).toEqual([
    expect.objectContaining({
      type: 'error',
      error: expect.objectContaining({ event_id: 'mine', message: expect.stringContaining('mayRead') }),
    }),
    item('https://example.com/a.png'),
  ]);
  client.vanish();
});
