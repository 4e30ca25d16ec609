import { once } from 'node:events';
import { request, type IncomingHttpHeaders } from 'node:http';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import demo from '../../channels/demo/index.ts';
import openaiChannel from '../../channels/openai.ts';
import replyHeaders from '../../plugins/reply-headers.ts';
import { anthropic, formats, genai, openai, type FormatName } from '../clients/sdks.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';

let gateway: TestGateway;
let upstream: ScriptedUpstream;
let answer = { status: 200, text: '', headers: {} as Record<string, string>, pieces: 1 };

const foreign: Readonly<Record<FormatName, FormatName>> = {
  'chat-completions': 'messages',
  messages: 'responses',
  responses: 'generate-content',
  'generate-content': 'chat-completions',
};

beforeAll(async () => {
  upstream = await startUpstream(async (_request, response) => {
    response.writeHead(answer.status, { 'content-type': 'application/json', ...answer.headers });
    const size = Math.ceil(answer.text.length / answer.pieces);
    for (let at = 0; at < answer.text.length; at += size) {
      response.write(answer.text.slice(at, at + size));
      // oxlint-disable-next-line no-await-in-loop
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    response.end();
  });
  const key = 'channel-key-0123456789';
  gateway = await startGateway({
    plugins: [replyHeaders({ holdBytes: 50_000 })],
    routing: { hedge: undefined },
    prices: { '*': { input: 1_000, output: 1_000 } },
    channels: [
      ...formats.map((format) =>
        demo({ id: format, speaks: [format], models: { [`via-${format}`]: 'demo' } }),
      ),
      openaiChannel({ id: 'broken', key, baseUrl: `${upstream.url}/v1`, models: ['twice'], priority: 1 }),
      demo({ id: 'spare', models: { twice: 'demo' } }),
      openaiChannel({ id: 'real', key, baseUrl: `${upstream.url}/v1`, models: ['real'] }),
    ],
  });
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

const paths: Readonly<Record<FormatName, (model: string, stream: boolean) => string>> = {
  'chat-completions': () => '/v1/chat/completions',
  responses: () => '/v1/responses',
  messages: () => '/v1/messages',
  'generate-content': (model, stream) =>
    `/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
};

const bodies: Readonly<Record<FormatName, (model: string, stream: boolean) => object>> = {
  'chat-completions': (model, stream) => ({ model, stream, messages: [{ role: 'user', content: 'Hello' }] }),
  responses: (model, stream) => ({ model, stream, input: 'Hello' }),
  messages: (model, stream) => ({
    model,
    stream,
    max_tokens: 100,
    messages: [{ role: 'user', content: 'Hello' }],
  }),
  'generate-content': () => ({ contents: [{ role: 'user', parts: [{ text: 'Hello' }] }] }),
};

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly trailers: NodeJS.Dict<string>;
  readonly text: string;
}

/** Sends one request, by a client that shows trailers. */
async function send(
  format: FormatName,
  model: string,
  stream: boolean,
  headers: Readonly<Record<string, string>> = {},
  to: TestGateway = gateway,
): Promise<Answer> {
  const sent = request(`${to.url}${paths[format](model, stream)}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${to.key}`,
      'content-type': 'application/json',
      'anthropic-version': '2023-06-01',
      ...headers,
    },
  });
  sent.end(JSON.stringify(bodies[format](model, stream)));
  const [response] = (await once(sent, 'response')) as [import('node:http').IncomingMessage];
  let text = '';
  response.setEncoding('utf8').on('data', (piece: string) => (text += piece));
  await once(response, 'end');
  return { status: response.statusCode ?? 0, headers: response.headers, trailers: response.trailers, text };
}

const cases = formats.flatMap((format) =>
  [format, foreign[format]].map((channel) => ({
    format,
    channel,
    how: channel === format ? 'native' : 'translated',
  })),
);
const timing = /^gateway;dur=\d+\.\d, upstream;dur=\d+\.\d, queue;dur=\d+\.\d$/;
const usage = /^input=[1-9]\d*, output=[1-9]\d*, cache-read=0, cache-write=0, reasoning=0$/;

/** The cost that these prices make of a usage. */
function costOf(text: unknown): string {
  const [, input, output] = /input=(\d+), output=(\d+)/.exec(String(text)) ?? [];
  return ((Number(input) + Number(output)) / 1_000).toFixed(6);
}

describe.each(cases)('a client of $format that asks, on a $how channel', ({ format, channel }) => {
  const model = `via-${channel}`;
  const all = { 'x-sluice-headers': 'all' };

  test('reads everything in the head of a whole response', async () => {
    const { status, headers } = await send(format, model, false, all);
    expect(status).toBe(200);
    expect(headers).toMatchObject({
      'x-sluice-model': model,
      'x-sluice-channel': channel,
      'x-sluice-attempts': '1',
      'server-timing': expect.stringMatching(timing) as string,
      'x-sluice-usage': expect.stringMatching(usage) as string,
      'x-sluice-cost': costOf(headers['x-sluice-usage']),
    });
  });

  test('reads what a stream cost in its trailers, and the rest in its head', async () => {
    const { status, headers, trailers, text } = await send(format, model, true, { ...all, te: 'trailers' });
    expect(status).toBe(200);
    expect(headers).toMatchObject({
      'x-sluice-model': model,
      'x-sluice-channel': channel,
      'x-sluice-attempts': '1',
      'server-timing': expect.stringMatching(timing) as string,
      trailer: 'x-sluice-cost, x-sluice-usage',
    });
    expect(headers).not.toHaveProperty('x-sluice-cost');
    expect(trailers).toEqual({
      'x-sluice-usage': expect.stringMatching(usage) as string,
      'x-sluice-cost': costOf(trailers['x-sluice-usage']),
    });
    expect(text).not.toContain('x-sluice');
  });

  test('gets no trailers from a stream that it does not accept them in', async () => {
    const { headers, trailers } = await send(format, model, true, all);
    expect(headers).not.toHaveProperty('trailer');
    expect(trailers).toEqual({});
  });
});

describe('official SDKs', () => {
  const headers = { 'x-sluice-headers': 'model, channel, cost, timing' };
  const expected = (model: string, channel: string) => [model, channel, expect.stringMatching(/^0\.\d{6}$/)];
  const seen = (from: Headers) =>
    ['x-sluice-model', 'x-sluice-channel', 'x-sluice-cost'].map((name) => from.get(name));

  test('openai gives them with chat completions and responses', async () => {
    const client = openai(gateway, { headers });
    const model = 'via-messages';
    const chat = await client.chat.completions
      .create({ model, messages: [{ role: 'user', content: 'Hello' }] })
      .withResponse();
    expect(seen(chat.response.headers)).toEqual(expected(model, 'messages'));
    const made = await client.responses.create({ model: 'via-responses', input: 'Hello' }).withResponse();
    expect(seen(made.response.headers)).toEqual(expected('via-responses', 'responses'));
    expect(made.data.output_text).toBe('You said: Hello');
  });

  test('openai gives those of the head with a stream, and reads it to its end', async () => {
    const { data, response } = await openai(gateway, { headers })
      .chat.completions.create({
        model: 'via-responses',
        stream: true,
        messages: [{ role: 'user', content: 'Hello' }],
      })
      .withResponse();
    expect(seen(response.headers)).toEqual(['via-responses', 'responses', null]);
    let text = '';
    for await (const chunk of data) text += chunk.choices[0]?.delta.content ?? '';
    expect(text).toBe('You said: Hello');
  });

  test('anthropic gives them with messages', async () => {
    const { response } = await anthropic(gateway, { headers })
      .messages.create({
        model: 'via-messages',
        max_tokens: 100,
        messages: [{ role: 'user', content: 'Hello' }],
      })
      .withResponse();
    expect(seen(response.headers)).toEqual(expected('via-messages', 'messages'));
  });

  test('genai gives them with generateContent', async () => {
    const made = await genai(gateway, { headers }).models.generateContent({
      model: 'via-generate-content',
      contents: 'Hello',
    });
    const responseHeaders = new Headers(made.sdkHttpResponse?.headers);
    expect(seen(responseHeaders)).toEqual(expected('via-generate-content', 'generate-content'));
  });
});

describe('a client that asks', () => {
  test('for some of them gets no other, and words that are unknown are ignored', async () => {
    const { headers } = await send('messages', 'via-messages', false, {
      'x-sluice-headers': 'Model, cache,,colour',
    });
    const names = Object.keys(headers).filter((name) => /^x-sluice|^server-timing/.test(name));
    expect(names).toEqual(['x-sluice-model']);
  });

  test('for none gets none', async () => {
    const { headers } = await send('messages', 'via-messages', false);
    expect(Object.keys(headers).filter((name) => /^x-sluice|^server-timing/.test(name))).toEqual([]);
  });

  test('reads how many attempts were made', async () => {
    answer = { ...answer, status: 503, text: '{"error":{"message":"busy"}}', headers: {} };
    const { headers } = await send('chat-completions', 'twice', false, { 'x-sluice-headers': 'all' });
    expect(headers).toMatchObject({ 'x-sluice-attempts': '2', 'x-sluice-channel': 'spare' });
  });

  test('reads with an error what was tried, and no cost', async () => {
    const unknown = await send('responses', 'nowhere', false, { 'x-sluice-headers': 'all' });
    expect(unknown.status).toBe(503);
    expect(unknown.headers).toMatchObject({
      'x-sluice-model': 'nowhere',
      'x-sluice-attempts': '0',
      'server-timing': expect.stringMatching(/^gateway;dur=[\d.]+, queue;dur=[\d.]+$/) as string,
    });
    expect(unknown.headers).not.toHaveProperty('x-sluice-cost');
    const stranger = await send('responses', 'via-responses', false, {
      'x-sluice-headers': 'all',
      authorization: 'Bearer wrong',
    });
    expect(stranger.status).toBe(401);
    expect(stranger.headers).not.toHaveProperty('x-sluice-channel');
  });

  const completion = (text: string) =>
    JSON.stringify({
      id: 'chatcmpl-1',
      object: 'chat.completion',
      created: 1,
      model: 'real',
      choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 1_000, completion_tokens: 500, total_tokens: 1_500 },
    });
  const all = { 'x-sluice-headers': 'all' };

  test.each([
    ['with its length', true],
    ['in pieces without one', false],
  ])('reads the cost of a response that comes %s, whose bytes stay as they were', async (_how, stream) => {
    const text = completion('Hello '.repeat(4_000));
    answer = {
      status: 200,
      text,
      headers: stream ? { 'content-length': String(text.length) } : {},
      pieces: 10,
    };
    const whole = await send('chat-completions', 'real', false, all);
    expect(whole.headers['x-sluice-cost']).toBe('1.500000');
    expect(whole.text).toBe(text);
  });

  test('gets a response that is longer than the gateway holds back at once, its cost in a trailer', async () => {
    const text = completion('Hello '.repeat(20_000));
    answer = { status: 200, text, headers: {}, pieces: 10 };
    const whole = await send('chat-completions', 'real', false, { ...all, te: 'trailers' });
    expect(whole.headers).not.toHaveProperty('x-sluice-cost');
    expect(whole.headers['x-sluice-channel']).toBe('real');
    expect(whole.trailers['x-sluice-cost']).toBe('1.500000');
    expect(whole.text).toBe(text);
    answer = { ...answer, headers: { 'content-length': String(text.length) } };
    const measured = await send('chat-completions', 'real', false, { ...all, te: 'trailers' });
    expect(measured.headers).not.toHaveProperty('trailer');
    expect(measured.text).toBe(text);
  });

  test('of HTTP/1.0 gets no trailers, whatever it accepts', async () => {
    const body = JSON.stringify(bodies['chat-completions']('via-messages', true));
    const { hostname, port } = new URL(gateway.url);
    const socket = connect(Number(port), hostname);
    socket.write(
      `POST /v1/chat/completions HTTP/1.0\r\nauthorization: Bearer ${gateway.key}\r\nte: trailers\r\nx-sluice-headers: all\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    let text = '';
    socket.setEncoding('utf8').on('data', (piece: string) => (text += piece));
    await once(socket, 'close');
    expect(text).toContain('x-sluice-channel: messages');
    expect(text.trimEnd().endsWith('data: [DONE]')).toBe(true);
    expect(text).not.toContain('x-sluice-cost');
  });
});

describe('operators', () => {
  test('choose what every response tells, and which keys see channel and cost', async () => {
    const chosen = await startGateway({
      plugins: [replyHeaders({ always: ['model'], channelFor: [], costFor: ['key_somebody'] })],
      channels: [demo()],
    });
    try {
      const plain = await send('messages', 'demo', false, {}, chosen);
      expect(plain.headers['x-sluice-model']).toBe('demo');
      const response = await send(
        'messages',
        'demo',
        true,
        { 'x-sluice-headers': 'all', te: 'trailers' },
        chosen,
      );
      expect(response.headers).toHaveProperty('server-timing');
      expect(response.headers).not.toHaveProperty('x-sluice-channel');
      expect(response.trailers).toEqual({});
    } finally {
      await chosen.close();
    }
  });

  test('have streams end with comments, where the clients of the format skip them', async () => {
    const commenting = await startGateway({
      plugins: [replyHeaders({ comments: true })],
      channels: [demo()],
    });
    try {
      const costHeader = { 'x-sluice-headers': 'cost' };
      for (const format of formats) {
        // oxlint-disable-next-line no-await-in-loop
        const { text } = await send(format, 'demo', true, costHeader, commenting);
        const ending = /\n\n: x-sluice-cost: 0\.\d{6}\n\n$/.test(text);
        expect([format, ending]).toEqual([format, format !== 'generate-content']);
      }
      const stream = await openai(commenting, { headers: costHeader }).chat.completions.create({
        model: 'demo',
        stream: true,
        messages: [{ role: 'user', content: 'Hello' }],
      });
      let text = '';
      for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? '';
      expect(text).toBe('You said: Hello');
      const events = anthropic(commenting, { headers: costHeader }).messages.stream({
        model: 'demo',
        max_tokens: 100,
        messages: [{ role: 'user', content: 'Hello' }],
      });
      expect(await events.finalText()).toBe('You said: Hello');
      const made = openai(commenting, { headers: costHeader }).responses.stream({
        model: 'demo',
        input: 'Hello',
      });
      expect((await made.finalResponse()).output_text).toBe('You said: Hello');
    } finally {
      await commenting.close();
    }
  });
});
