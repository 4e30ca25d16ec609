/* oxlint-disable vitest/expect-expect, vitest/valid-expect -- one function holds what is expected of every refusal, and the message says what came. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import demo from '../../channels/demo/index.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { refusedSocket, SocketClient } from '../support/websocket.ts';
import { fetchRaw, type Answer } from './_wire.ts';

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway({ channels: [demo({ models: ['*'] })] });
});
afterAll(() => gateway.close());

const video = { prompt: 'A cat', first_frame_image: 'https://example.com/cat.png' };
const messages = [{ role: 'user', content: 'Hi' }];

/** Every endpoint that takes a model in a JSON body, with a request that is sound but for the name. */
const bodies: Readonly<Record<string, (model: unknown) => Record<string, unknown>>> = {
  '/v1/chat/completions': (model) => ({ model, messages }),
  '/v1/completions': (model) => ({ model, prompt: 'Hi' }),
  '/v1/responses': (model) => ({ model, input: 'Hi' }),
  '/v1/responses/compact': (model) => ({ model, input: 'Hi' }),
  '/v1/responses/input_tokens': (model) => ({ model, input: 'Hi' }),
  '/v1/messages': (model) => ({ model, messages, max_tokens: 100 }),
  '/v1/messages/count_tokens': (model) => ({ model, messages }),
  '/v1/embeddings': (model) => ({ model, input: 'Hi' }),
  '/v1/rerank': (model) => ({ model, query: 'Hi', documents: ['a'] }),
  '/v1/moderations': (model) => ({ model, input: 'Hi' }),
  '/v1/images/generations': (model) => ({ model, prompt: 'A cat' }),
  '/v1/audio/speech': (model) => ({ model, input: 'Hi', voice: 'alloy' }),
  '/v1/videos': (model) => ({ model, prompt: 'A cat' }),
  '/v1/video/generations': (model) => ({ model, ...video }),
};

/** Endpoints whose path names the model. */
const paths: Readonly<Record<string, Record<string, unknown>>> = {
  generateContent: { contents: [{ parts: [{ text: 'Hi' }] }] },
  streamGenerateContent: { contents: [{ parts: [{ text: 'Hi' }] }] },
  countTokens: { contents: [{ parts: [{ text: 'Hi' }] }] },
  embedContent: { content: { parts: [{ text: 'Hi' }] } },
  batchEmbedContents: { requests: [{ content: { parts: [{ text: 'Hi' }] } }] },
  predictLongRunning: { instances: [{ prompt: 'A cat' }] },
};

/** Names that no model has, and what is said of them. */
const wrong: readonly (readonly [what: string, name: string, expected: RegExp])[] = [
  ['257 characters', 'm'.repeat(257), /at most 256 characters/],
  ['10 000 characters', 'm'.repeat(10_000), /at most 256 characters/],
  ['a line end', 'gpt-4\n[error] all is lost', /printable/],
  ['a NUL', 'gpt\0', /printable/],
  ['an escape sequence', '\u001b[31mred', /printable/],
  ['text that runs backwards', 'gpt-\u202e4', /printable/],
  ['a space without width', 'gpt-4\u200b', /printable/],
];

const headers = { 'anthropic-version': '2023-06-01' };
const isPathSafe = (name: string): boolean => name.length < 1000;

/** Refused by name, and never with the whole of a long name in the answer. */
function expectRefused({ status, text }: Answer, expected: RegExp): void {
  expect(status, text).toBe(400);
  expect(text).toMatch(/model/);
  expect(text).toMatch(expected);
  expect(text.length).toBeLessThan(1000);
  expect(text).not.toMatch(/\\n\[error\]|\\u0000|\\u001b|\u202e|\u200b/i);
}

describe('a name that no model can have is a 400 that names the field', () => {
  for (const [path, body] of Object.entries(bodies)) {
    test.each(wrong)(`${path}: %s`, async (_what, name, expected) => {
      const answer = await fetchRaw(gateway, path, { body: body(name), headers });
      expectRefused(answer, expected);
    });

    test(`${path}: an empty one`, async () => {
      const answer = await fetchRaw(gateway, path, { body: body(''), headers });
      expect(answer.status, answer.text).toBe(400);
      expect(answer.text).toMatch(/Missing required parameter: model/);
    });

    test(`${path}: half a character`, async () => {
      const answer = await fetchRaw(gateway, path, {
        body: JSON.stringify(body('MODEL')).replace('MODEL', '\\ud800'),
        headers,
      });
      expectRefused(answer, /printable/);
    });
  }

  for (const [method, body] of Object.entries(paths)) {
    for (const folder of ['/v1beta/models', '/v1/models'] as const) {
      test.each(wrong.filter(([, name]) => isPathSafe(name)))(
        `${folder}/…:${method}: %s`,
        async (_what, name, expected) => {
          const answer = await fetchRaw(gateway, `${folder}/${encodeURIComponent(name)}:${method}`, { body });
          expectRefused(answer, expected);
        },
      );
    }
  }

  test.each(wrong)('a form: %s', async (_what, name, expected) => {
    const form = new FormData();
    form.set('model', name);
    form.set('file', new Blob(['RIFF']), 'a.wav');
    const sent = new Response(form);
    const answer = await fetchRaw(gateway, '/v1/audio/transcriptions', {
      body: Buffer.from(await sent.arrayBuffer()),
      headers: { 'content-type': sent.headers.get('content-type') ?? '' },
    });
    expectRefused(answer, expected);
  });

  test.each(wrong.filter(([, name]) => isPathSafe(name)))(
    'a realtime session: %s',
    async (_what, name, expected) => {
      const refused = await refusedSocket(`${gateway.url}/v1/realtime?model=${encodeURIComponent(name)}`, {
        headers: { authorization: `Bearer ${gateway.key}` },
      });
      const bodyText = JSON.stringify(refused.body);
      expect(refused.status, bodyText).toBe(400);
      expect(bodyText).toMatch(expected);
      expect(bodyText.length).toBeLessThan(1000);
    },
  );

  test.each(wrong)('a call over a WebSocket: %s', async (_what, name, expected) => {
    const client = await SocketClient.open(`${gateway.url}/v1/responses`, {
      headers: { authorization: `Bearer ${gateway.key}` },
    });
    client.send({ type: 'response.create', model: name, input: 'Hi' });
    const messageText = JSON.stringify(await client.until(() => true));
    expect(messageText).toMatch(expected);
    expect(messageText.length).toBeLessThan(1000);
    client.socket.close();
  });
});

describe('names that models may well have are served', () => {
  test.each([
    'm'.repeat(256),
    'accounts/fireworks/models/x',
    'ft:gpt-4.1:org::id',
    '豆包-1.6',
    'm@2024-01',
    'a b',
  ])('%s', async (name) => {
    const chat = await fetchRaw(gateway, '/v1/chat/completions', { body: { model: name, messages } });
    expect(chat.status, chat.text).toBe(200);
    expect((JSON.parse(chat.text) as { model: string }).model).toBe(name);
    const content = await fetchRaw(gateway, `/v1beta/models/${encodeURIComponent(name)}:generateContent`, {
      body: paths.generateContent ?? {},
    });
    expect(content.status, content.text).toBe(200);
  });
});
