import { readFileSync } from 'node:fs';
import { createServer as createSecureServer } from 'node:https';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import type { ChannelOptions } from '../../core/sdk/define.ts';
import type { GatewayConfig } from '../../core/sdk/config.ts';
import openai from '../../channels/openai.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startProxy } from '../support/proxy.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { call, fetchRaw, formatNames, read, readError, voices, type FormatName } from './_wire.ts';
import { eventually } from '../support/eventually.ts';

type Json = Record<string, unknown>;

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

const json = { 'content-type': 'application/json' };
const stream = { 'content-type': 'text/event-stream' };

/** A provider that answers in the format of whichever path it is asked on, with the model's own name for itself. */
async function provider(): Promise<ScriptedUpstream> {
  const started = await startUpstream(({ url, body }, response) => {
    const format = formatOf(url);
    const fields = JSON.parse(body.toString()) as Json;
    const named = /models\/([^:]+):/.exec(url)?.[1];
    const model = String(fields.model ?? decodeURIComponent(named ?? ''));
    if (fields.stream === true || url.includes('streamGenerateContent'))
      response.writeHead(200, stream).end(voices[format].frames(['fi', 'ne'], model).join(''));
    else response.writeHead(200, json).end(JSON.stringify(voices[format].whole('fine', model)));
  });
  closers.push(() => started.close());
  return started;
}

function formatOf(url: string): FormatName {
  if (url.includes('/chat/')) return 'chat-completions';
  return url.includes('/messages') ? 'messages' : 'generate-content';
}

async function gatewayOf(config: GatewayConfig): Promise<TestGateway> {
  const gateway = await startGateway(config);
  closers.push(() => gateway.close());
  return gateway;
}

/** A gateway with one channel that speaks the format, and what its provider was sent last. */
async function stage(format: FormatName, options: ChannelOptions) {
  const upstream = await provider();
  const gateway = await gatewayOf({ channels: [voices[format].channel(upstream.url, { ...options })] });
  return {
    gateway,
    upstream,
    last: (): Json => JSON.parse(upstream.requests.at(-1)?.body.toString() ?? '') as Json,
  };
}

const models = { fast: 'vendor/real-1', 'big-*': 'vendor/big-*-v2' };

describe('the model’s name', () => {
  for (const channel of formatNames) {
    for (const format of formatNames) {
      test(`is the provider’s there and the client’s here: ${format} on a ${channel} channel`, async () => {
        const { gateway, upstream } = await stage(channel, { models });
        for (const [model, upstreamModel] of [
          ['fast', 'vendor/real-1'],
          ['big-7b', 'vendor/big-7b-v2'],
        ] as const) {
          for (const streamed of [false, true]) {
            const answer = await call(gateway, format, model, streamed);
            expect(answer.status).toBe(200);
            const { text, models: named } = read(format, streamed, answer);
            expect({ text, named: [...new Set(named)] }).toEqual({ text: 'fine', named: [model] });
            const seen = upstream.requests.at(-1);
            const requestOf =
              channel === 'generate-content' ? decodeURIComponent(seen?.url ?? '') : seen?.body.toString();
            expect(requestOf).toContain(upstreamModel);
            expect(answer.text).not.toContain('vendor');
          }
        }
      });
    }
  }

  test('that fits nothing is told of as ever', async () => {
    const { gateway } = await stage('messages', { models });
    const answer = await call(gateway, 'messages', 'vendor/real-1', false);
    expect(readError('messages', answer).status).toBe(503);
  });
});

describe('the operator’s headers and members of the body', () => {
  test.each([false, true])('are in what passes through (stream: %s)', async (streamed) => {
    const { gateway, upstream, last } = await stage('chat-completions', {
      headers: { set: { 'X-Team': 'blue', Authorization: 'Bearer of another account' }, remove: ['accept'] },
      body: { set: { 'metadata.team': 'blue', seed: 7 }, remove: ['user', 'messages.0.name'] },
    });
    const body = {
      ...voices['chat-completions'].body('via-chat', streamed),
      user: 'me',
      unknown_field: [1],
      messages: [{ role: 'user', content: 'hi', name: 'ann' }],
    };
    const answer = await call(gateway, 'chat-completions', 'via-chat', streamed, { body });
    expect(read('chat-completions', streamed, answer).text).toBe('fine');
    expect(answer.headers).not.toHaveProperty('x-sluice-loss');
    expect(upstream.requests[0]?.headers).toMatchObject({
      'x-team': 'blue',
      authorization: 'Bearer of another account',
    });
    expect(upstream.requests[0]?.headers).not.toHaveProperty('accept');
    expect(last()).toMatchObject({
      metadata: { team: 'blue' },
      seed: 7,
      unknown_field: [1],
      messages: [{ role: 'user', content: 'hi' }],
    });
    expect(last()).not.toHaveProperty('user');
    expect(last().messages).toEqual([{ role: 'user', content: 'hi' }]);
  });

  test('are in what is translated, in the provider’s words', async () => {
    const { gateway, last } = await stage('generate-content', {
      body: { set: { 'generationConfig.seed': 7 }, remove: ['generationConfig.temperature'] },
    });
    const body = { ...voices.messages.body('via-content', false), temperature: 0.5 };
    const model = voices['generate-content'].model;
    await call(gateway, 'messages', model, false, { body: { ...body, model } });
    expect(last().generationConfig).toMatchObject({ seed: 7, maxOutputTokens: 100 });
    expect(last().generationConfig).not.toHaveProperty('temperature');
  });
});

describe('the operator’s system prompt', () => {
  const client = { role: 'user', content: 'hi' };
  const chat = (system?: string): Json => ({
    messages: [...(system === undefined ? [] : [{ role: 'system', content: system }]), client],
  });

  test.each<[string, NonNullable<ChannelOptions['systemPrompt']>, string | undefined, string]>([
    ['alone', 'Be kind.', undefined, 'Be kind.'],
    ['before the client’s', 'Be kind.', 'Be brief.', 'Be kind.\n\nBe brief.'],
    ['after the client’s', { text: 'Be kind.', place: 'after' }, 'Be brief.', 'Be brief.\n\nBe kind.'],
    ['instead of the client’s', { text: 'Be kind.', place: 'instead' }, 'Be brief.', 'Be kind.'],
  ])('stands %s, in every format', async (_, systemPrompt, own, whole) => {
    const inChat = await stage('chat-completions', { systemPrompt });
    await call(inChat.gateway, 'chat-completions', 'via-chat', true, {
      body: { model: 'via-chat', stream: true, ...chat(own) },
    });
    expect(inChat.last().messages).toEqual([{ role: 'system', content: whole }, client]);

    const inMessages = await stage('messages', { systemPrompt });
    const native = voices.messages.body('via-messages', false);
    await call(inMessages.gateway, 'messages', 'via-messages', false, {
      body: own === undefined ? native : { ...native, system: own },
    });
    expect(inMessages.last()).toMatchObject({ system: whole, messages: [client] });
    await call(inMessages.gateway, 'chat-completions', 'via-messages', false, {
      body: { model: 'via-messages', ...chat(own) },
    });
    expect(inMessages.last()).toMatchObject({ system: whole, messages: [client] });

    const { model } = voices['generate-content'];
    const inContent = await stage('generate-content', { systemPrompt });
    const contents = { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] };
    await call(inContent.gateway, 'generate-content', model, false, {
      body: own === undefined ? contents : { ...contents, systemInstruction: { parts: [{ text: own }] } },
    });
    expect(inContent.last()).toMatchObject({ ...contents, systemInstruction: { parts: [{ text: whole }] } });
  });

  test.each<[string, NonNullable<ChannelOptions['systemPrompt']>, Json, string]>([
    ['alone', 'Be kind.', { input: 'hi' }, 'Be kind.'],
    ['before', 'Be kind.', { input: 'hi', instructions: 'Be brief.' }, 'Be kind.\n\nBe brief.'],
    [
      'after',
      { text: 'Be kind.', place: 'after' },
      { input: 'hi', instructions: 'Be brief.' },
      'Be brief.\n\nBe kind.',
    ],
    [
      'instead',
      { text: 'Be kind.', place: 'instead' },
      { input: 'hi', instructions: 'Be brief.' },
      'Be kind.',
    ],
  ])('is in `instructions` of the Responses API: %s', async (_, systemPrompt, fields, whole) => {
    const upstream = await startUpstream(
      (_request, response) => void response.writeHead(400, json).end('{}'),
    );
    closers.push(() => upstream.close());
    const gateway = await gatewayOf({
      channels: [openai({ key: 'k', baseUrl: `${upstream.url}/v1`, models: ['gpt-5-pro'], systemPrompt })],
    });
    await fetchRaw(gateway, '/v1/responses', { body: { model: 'gpt-5-pro', store: false, ...fields } });
    expect(upstream.requests[0]?.url).toBe('/v1/responses');
    const seen = JSON.parse(upstream.requests[0]?.body.toString() ?? '') as Json;
    expect(seen).toMatchObject({ instructions: whole, input: 'hi' });

    await call(gateway, 'chat-completions', 'gpt-5-pro', false, {
      body: { model: 'gpt-5-pro', ...chat(fields.instructions as string | undefined) },
    });
    const translated = JSON.parse(upstream.requests[1]?.body.toString() ?? '') as Json;
    expect(translated).toMatchObject({ instructions: whole });
  });

  test('leaves cache marks of the client’s where they are', async () => {
    const { gateway, last } = await stage('messages', { systemPrompt: 'Be kind.' });
    const system = [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }];
    await call(gateway, 'messages', 'via-messages', false, {
      body: { ...voices.messages.body('via-messages', false), system },
    });
    expect(last().system).toEqual([{ type: 'text', text: 'Be kind.' }, ...system]);
  });

  test('is of that channel alone, and of each attempt only its own', async () => {
    const failing = await startUpstream((_, response) => void response.writeHead(503, json).end('{}'));
    closers.push(() => failing.close());
    const upstream = await provider();
    const gateway = await gatewayOf({
      channels: [
        voices['chat-completions'].channel(failing.url, { id: 'a', priority: 1, systemPrompt: 'First.' }),
        voices['chat-completions'].channel(upstream.url, { id: 'b', systemPrompt: 'Second.' }),
      ],
      health: { enabled: false },
    });
    const answer = await call(gateway, 'chat-completions', 'via-chat', false);
    expect(read('chat-completions', false, answer).text).toBe('fine');
    expect(failing.requests[0]?.body.toString()).toContain('First.');
    expect(upstream.requests[0]?.body.toString()).toContain('Second.');
    expect(upstream.requests[0]?.body.toString()).not.toContain('First.');
  });

  test('is not counted, and does not stand in the way of a count', async () => {
    const upstream = await startUpstream(
      (_, response) => void response.writeHead(200, json).end('{"input_tokens":3}'),
    );
    closers.push(() => upstream.close());
    const gateway = await gatewayOf({
      channels: [voices.messages.channel(upstream.url, { systemPrompt: 'Be kind.' })],
    });
    const answer = await fetchRaw(gateway, '/v1/messages/count_tokens', {
      headers: voices.messages.headers,
      body: { model: 'via-messages', messages: [{ role: 'user', content: 'hi' }] },
    });
    expect(JSON.parse(answer.text)).toEqual({ input_tokens: 3 });
    expect(upstream.requests[0]?.body.toString()).not.toContain('kind');
  });

  test('has no place in a text completion that the provider takes as it is, and the client is told', async () => {
    const upstream = await startUpstream(
      (_, response) =>
        void response.writeHead(200, json).end(
          JSON.stringify({
            id: 'cmpl-1',
            object: 'text_completion',
            created: 1,
            model: 'gpt-3.5-turbo-instruct',
            choices: [{ index: 0, text: ' fine', finish_reason: 'stop', logprobs: null }],
            usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
          }),
        ),
    );
    closers.push(() => upstream.close());
    const model = 'gpt-3.5-turbo-instruct';
    const gateway = await gatewayOf({
      channels: [
        openai({ key: 'k', baseUrl: `${upstream.url}/v1`, models: [model], systemPrompt: 'Be kind.' }),
      ],
    });
    const answer = await fetchRaw(gateway, '/v1/completions', { body: { model, prompt: 'hi' } });
    expect(answer.status).toBe(200);
    expect(upstream.requests[0]?.url).toBe('/v1/completions');
    expect(answer.headers['x-sluice-loss']).toBe('systemPrompt');
  });
});

describe('the way to the provider', () => {
  test('leads through the channel’s proxy, for streams too', async () => {
    const upstream = await provider();
    const proxy = await startProxy(Number(new URL(upstream.url).port));
    closers.push(() => proxy.close());
    const gateway = await gatewayOf({
      channels: [
        voices.messages.channel('http://provider.test', {
          proxy: proxy.url.replace('//', '//u:pass-word-of-mine@'),
        }),
      ],
    });
    for (const streamed of [false, true]) {
      const answer = await call(gateway, 'messages', 'via-messages', streamed);
      expect(read('messages', streamed, answer)).toMatchObject({ text: 'fine', complete: true });
    }
    expect(proxy.requests[0]?.url).toBe('provider.test:80');
    expect(upstream.requests[0]?.headers).not.toHaveProperty('proxy-authorization');
  });

  test.each<[string, (port: number) => Promise<string>]>([
    [
      'refuses',
      async (port) => {
        const proxy = await startProxy(port, () => 407);
        closers.push(() => proxy.close());
        return proxy.url.replace('//', '//user:pass-word-of-mine@');
      },
    ],
    ['is not there', () => Promise.resolve('http://user:pass-word-of-mine@127.0.0.1:9')],
  ])('a proxy that %s is told of without addresses and passwords', async (_, proxyOf) => {
    const upstream = await provider();
    const proxy = await proxyOf(Number(new URL(upstream.url).port));
    const gateway = await gatewayOf({
      channels: [voices.messages.channel('http://provider.test', { proxy })],
      routing: { attempts: 1 },
    });
    const answer = await call(gateway, 'messages', 'via-messages', false);
    expect(readError('messages', answer).status).toBe(502);
    expect(answer.text).not.toMatch(/127\.|provider\.test|pass-word|proxy/i);
    const lines = JSON.stringify(gateway.lines);
    expect(lines).toMatch(/The proxy (returned status 407|could not be reached)/);
    expect(lines).not.toMatch(/pass-word|provider\.test|127\.0\.0\.1:/);
  });

  test('a certificate that nobody vouches for is refused, unless the operator knows it or does not care', async () => {
    const pem = (name: string): string =>
      readFileSync(new URL(`../fixtures/tls/${name}.pem`, import.meta.url), 'utf8');
    const server = createSecureServer({ cert: pem('certificate'), key: pem('key') }, (_, response) =>
      response.writeHead(200, json).end(JSON.stringify(voices.messages.whole('fine'))),
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    closers.push(() => {
      server.closeAllConnections();
      server.close();
    });
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const channel = (id: string, options: ChannelOptions) =>
      voices.messages.channel(url, { id, models: [id], ...options });
    const gateway = await gatewayOf({
      channels: [
        channel('stranger', {}),
        channel('known', { tls: { ca: pem('certificate') } }),
        channel('careless', { tls: { verify: false } }),
      ],
      health: { enabled: false },
      routing: { attempts: 1 },
    });
    expect((await call(gateway, 'messages', 'stranger', false)).status).toBe(502);
    for (const model of ['known', 'careless'])
      expect(read('messages', false, await call(gateway, 'messages', model, false)).text).toBe('fine');
    expect(gateway.gateway.warnings).toEqual([
      expect.stringMatching(/channels\[2\] "careless": tls\.verify is false/),
    ]);
  });

  test('has the channel’s own times', async () => {
    const upstream = await startUpstream(() => {});
    closers.push(() => upstream.close());
    const gateway = await gatewayOf({
      channels: [voices.messages.channel(upstream.url, { timeouts: { idle: 600 } })],
      routing: { attempts: 1 },
    });
    const answer = await call(gateway, 'messages', 'via-messages', false);
    expect(readError('messages', answer).status).toBe(504);
  });
});

test('a connection that the provider closed unseen costs no caller anything', async () => {
  const open = new Set<Socket>();
  let answered = 0;
  const server = createServer((socket) => {
    open.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => open.delete(socket));
    let served = 0;
    socket.on('data', (chunk) => {
      if (!chunk.toString('latin1').includes('HTTP/1.1')) return;
      served += 1;
      // Each connection answers once, and is found closed by the next request.
      if (served > 1) {
        socket.resetAndDestroy();
        return;
      }
      answered += 1;
      const body = JSON.stringify(voices.messages.whole('fine'));
      socket.write(
        `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      );
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(() => {
    for (const socket of open) socket.destroy();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const gateway = await gatewayOf({
    channels: [voices.messages.channel(url)],
    routing: { attempts: 1 },
    health: { failures: 1 },
  });
  for (let round = 0; round < 20; round += 1) {
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => call(gateway, 'messages', 'via-messages', false)),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => 200));
  }
  expect(answered).toBe(200);
  await eventually(() =>
    expect(gateway.lines.filter(({ msg }) => msg === 'a call was answered')).toHaveLength(200),
  );
  expect(JSON.stringify(gateway.lines)).not.toContain('staleConnection');
});
