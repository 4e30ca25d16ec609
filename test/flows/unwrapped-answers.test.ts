import type { ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, test } from 'vitest';
import { map } from 'rxjs';
import { defineChannel, definePlugin, type ChannelOptions, type JsonObject, type Upstream } from 'sluice';
import openai from '../../channels/openai.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { Bare, requestText } from './_socket.ts';

let gateway: TestGateway | undefined;
let provider: ScriptedUpstream | undefined;
afterEach(async () => {
  await gateway?.close();
  await provider?.close();
  gateway = provider = undefined;
});

/** Removes the envelope `{"data": …}` as the page about channels says: with `map` over the bytes of the answer. */
const unwrap = (answer: Upstream): Upstream => ({
  ...answer,
  bytes: answer.bytes.pipe(
    map((bytes) => {
      const { data } = JSON.parse(bytes.toString()) as { data: JsonObject };
      return Buffer.from(JSON.stringify(data));
    }),
  ),
});

/** A channel of somebody else's, whose provider wraps its replies. */
const wrapping = defineChannel({
  name: 'wrapping',
  models: ['wrapped-*'],
  setup: ({ baseUrl = '' }: ChannelOptions, { http }) => ({
    speaks: { chat: ['chat-completions'], speak: ['audio'] },
    async open(call, { path, body }) {
      const headers = { 'content-type': 'application/json' };
      return unwrap(await http.send(call, { url: baseUrl + path, headers, body }));
    },
  }),
});

const reply = (text: string): JsonObject => ({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: 'wrapped-1',
  choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12 },
});

/** Answers with a length and validators, which are true of these bytes alone. */
function answerWith(response: ServerResponse, body: Buffer, headers: Record<string, string> = {}): void {
  response.writeHead(200, {
    'content-type': 'application/json',
    'content-length': String(body.length),
    etag: '"of-the-envelope"',
    'content-digest': 'sha-256=:AAAA:',
    ...headers,
  });
  response.end(body);
}

async function start(body: Buffer, headers?: Record<string, string>): Promise<TestGateway> {
  provider = await startUpstream((_request, response) => answerWith(response, body, headers));
  gateway = await startGateway({ channels: [wrapping({ key: 'k', baseUrl: provider.url })] });
  return gateway;
}

/** Two requests over one connection: the second can be answered only where the first answer ended where its head said. */
async function callTwice({ url, key }: TestGateway, path: string, body: JsonObject): Promise<string[]> {
  const bare = await Bare.to(url);
  const answers: string[] = [];
  const text = JSON.stringify(body);
  const head = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  for (const _ of [1, 2]) {
    const before = bare.text.length;
    bare.write(requestText('POST', path, { ...head, 'content-length': String(text.length) }, text));
    // oxlint-disable-next-line no-await-in-loop -- a kept-alive connection has one request at a time
    await bare.until(new RegExp(`^[^]{${before}}HTTP/1\\.1 [^]*(?:\\r\\n0\\r\\n\\r\\n|\\}|THE END)$`));
    answers.push(bare.text.slice(before));
  }
  bare.socket.destroy();
  await bare.closed;
  return answers;
}

/** Parses one response strictly. Throws when bytes follow it. */
function readAnswer(answer: string): { readonly head: string; readonly body: string } {
  const at = answer.indexOf('\r\n\r\n');
  const head = answer.slice(0, at).toLowerCase();
  let rest = answer.slice(at + 4);
  const length = /\ncontent-length: (\d+)/.exec(head)?.[1];
  if (length !== undefined) {
    expect(rest).toHaveLength(Number(length));
    return { head, body: rest };
  }
  expect(head).toContain('transfer-encoding: chunked');
  let body = '';
  for (;;) {
    const [line, size = ''] = /^([\da-f]+)\r\n/i.exec(rest) ?? [];
    expect(line).toBeDefined();
    const count = Number.parseInt(size, 16);
    body += rest.slice((line ?? '').length, (line ?? '').length + count);
    rest = rest.slice((line ?? '').length + count + 2);
    if (count === 0) break;
  }
  expect(rest).toBe('');
  return { head, body };
}

const request: JsonObject = { model: 'wrapped-1', messages: [{ role: 'user', content: 'Hi' }] };

describe('an answer that a channel has changed', () => {
  // Shorter and longer than the envelope, which the provider measured.
  test.each([
    ['in an envelope', (text: string) => ({ data: reply(text), code: 0, note: 'x'.repeat(300) })],
    ['in a compact envelope', (text: string) => ({ data: reply(text) })],
  ])('ends where its head says, over a kept-alive connection: %s', async (_name, wrap) => {
    const running = await start(Buffer.from(JSON.stringify(wrap('Hello'))));
    for (const answer of await callTwice(running, '/v1/chat/completions', request)) {
      const { head, body } = readAnswer(answer);
      expect(JSON.parse(body)).toEqual(reply('Hello'));
      expect(head).not.toMatch(/\n(?:etag|content-digest|content-encoding)/);
    }
  });

  test('is read also where its provider compresses', async () => {
    const running = await start(gzipSync(JSON.stringify({ data: reply('Hello') })), {
      'content-encoding': 'gzip',
    });
    for (const answer of await callTwice(running, '/v1/chat/completions', request)) {
      expect(JSON.parse(readAnswer(answer).body)).toEqual(reply('Hello'));
    }
  });

  test('has no length of the provider where it is a recording', async () => {
    const running = await start(Buffer.from(JSON.stringify({ data: { sound: 'x'.repeat(500) } })), {
      'content-type': 'audio/mpeg',
    });
    const wanted = { model: 'wrapped-1', input: 'Hi', voice: 'alloy' };
    for (const answer of await callTwice(running, '/v1/audio/speech', wanted))
      expect(readAnswer(answer).body).toContain('xxx');
  });
});

describe('an answer that nobody has changed', () => {
  const startPlain = async (body: Buffer, headers: Record<string, string>): Promise<TestGateway> => {
    provider = await startUpstream((_request, response) => answerWith(response, body, headers));
    gateway = await startGateway({
      channels: [openai({ key: 'k', baseUrl: provider.url, models: ['wrapped-1'] })],
    });
    return gateway;
  };

  test('keeps the length that its provider has told', async () => {
    const body = Buffer.from(JSON.stringify(reply('Hello')));
    const running = await startPlain(body, {});
    for (const answer of await callTwice(running, '/v1/chat/completions', request))
      expect(readAnswer(answer).head).toContain(`content-length: ${body.length}`);
  });

  test('has no length where it was compressed', async () => {
    const running = await startPlain(gzipSync(JSON.stringify(reply('Hello'))), {
      'content-encoding': 'gzip',
    });
    for (const answer of await callTwice(running, '/v1/chat/completions', request)) {
      const { head, body } = readAnswer(answer);
      expect(JSON.parse(body)).toEqual(reply('Hello'));
      expect(head).not.toMatch(/\ncontent-(?:length|encoding)/);
    }
  });
});

test('a plugin that changes the bytes of an answer breaks the connection rather than the next answer', async () => {
  const lengthening = definePlugin({
    name: 'lengthening',
    stage: 'shape',
    setup: () => async (call, next) =>
      (await next(call)).pipe(
        map((event) =>
          (event as { type: string }).type === 'bytes'
            ? Object.assign({}, event, {
                bytes: Buffer.from('{"a stranger": "and much more than was told"}'.repeat(40)),
              })
            : event,
        ),
      ),
  });
  const body = Buffer.from(JSON.stringify(reply('Hello')));
  provider = await startUpstream((_request, response) => answerWith(response, body));
  gateway = await startGateway({
    channels: [openai({ key: 'k', baseUrl: provider.url, models: ['wrapped-1'] })],
    plugins: [lengthening()],
  });
  const bare = await Bare.to(gateway.url);
  const text = JSON.stringify(request);
  const head = { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' };
  bare.write(
    requestText('POST', '/v1/chat/completions', { ...head, 'content-length': String(text.length) }, text),
  );
  await bare.closed;
  const [, length = '', sent = ''] = /content-length: (\d+)\r\n[^]*?\r\n\r\n([^]*)$/i.exec(bare.text) ?? [];
  expect(sent.length).toBeLessThanOrEqual(Number(length));
});
