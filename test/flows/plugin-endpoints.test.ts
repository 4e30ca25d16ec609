import { request as send } from 'node:http';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { of, throwError } from 'rxjs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { definePlugin, GatewayError, type GatewayEvent } from 'sluice';
import demo from '../../channels/demo/index.ts';
import { requestBody } from '../../core/sdk/endpoint.ts';
import type { WholeEndpoint } from '../../core/sdk/endpoint.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';

const limit = 1_000;
const result = (value: unknown) => of<GatewayEvent[]>({ type: 'result', value: value as never });

/** Endpoints as plugins of this repository have them. */
const endpoints: readonly WholeEndpoint[] = [
  {
    method: 'POST',
    path: '/v1/kept',
    format: 'chat-completions',
    handle: async (call) => result({ body: call.body }),
  },
  {
    method: 'POST',
    path: '/v1/unread',
    format: 'chat-completions',
    readsBody: true,
    async handle(call) {
      const body = call.get(requestBody);
      if (body === undefined) throw new Error('There is no body.');
      const { type, length = null } = body;
      if (call.wire.query.has('json')) return result({ type, length, json: await body.json() });
      let bytes = 0;
      for await (const chunk of body.stream(limit)) bytes += (chunk as Buffer).length;
      return result({ type, length, bytes });
    },
  },
  {
    method: 'GET',
    path: '/v1/told',
    format: (headers, query) => (headers['x-api-key'] || query.has('messages') ? 'messages' : 'responses'),
    streams: (query) => query.get('stream') === 'yes',
    async handle(call) {
      if (!call.stream) throw new GatewayError('not_found', 'There is nothing.');
      const bytes = Buffer.from('event: first\ndata: {"a":1}\n\n');
      if (call.wire.query.has('silent')) return of<GatewayEvent[]>({ type: 'result', value: { a: 1 } });
      if (call.wire.query.has('fails'))
        return throwError(() => new GatewayError('upstream_cut', 'It broke off.'));
      return of<GatewayEvent[]>({ type: 'frames', format: 'messages', bytes });
    },
  },
];

let gateway: TestGateway;

beforeAll(async () => {
  const kept = definePlugin({
    name: 'kept',
    stage: 'shape',
    setup(_options, tools) {
      for (const endpoint of endpoints) tools.endpoint(endpoint as Parameters<typeof tools.endpoint>[0]);
      return (call, next) => next(call);
    },
  });
  gateway = await startGateway({
    plugins: [kept()],
    channels: [demo()],
    limits: { body: 10_000 },
  });
});
afterAll(() => gateway.close());

const key = () => ({ authorization: `Bearer ${gateway.key}` });
const post = async (
  path: string,
  body: string | Buffer | ReadableStream,
  headers: Record<string, string> = {},
): Promise<{ readonly status: number; readonly body: unknown }> => {
  const response = await fetch(gateway.url + path, {
    method: 'POST',
    headers: { ...key(), ...headers },
    body,
    duplex: 'half',
  } as RequestInit);
  return { status: response.status, body: await response.json() };
};
const errorOf = (message: RegExp): unknown => ({
  error: expect.objectContaining({ message: expect.stringMatching(message) as string }) as object,
});
const json = { 'content-type': 'application/json' };

describe('the body of an endpoint', () => {
  test('is JSON, with or without a byte-order mark or compression, and an empty object where nothing came', async () => {
    expect(await post('/v1/kept', '{"a":1}', json)).toEqual({ status: 200, body: { body: { a: 1 } } });
    expect(await post('/v1/kept', '\ufeff{"a":1}', json)).toEqual({ status: 200, body: { body: { a: 1 } } });
    const packed = { ...json, 'content-encoding': 'gzip' };
    expect(await post('/v1/kept', gzipSync('{"a":1}'), packed)).toEqual({
      status: 200,
      body: { body: { a: 1 } },
    });
    expect(await post('/v1/kept', '', { 'content-type': 'text/html' })).toEqual({
      status: 200,
      body: { body: {} },
    });
    expect(await post('/v1/kept', '\ufeff', json)).toEqual({ status: 200, body: { body: {} } });
  });

  test.each([
    ['of another type', '{"a":1}', { 'content-type': 'text/plain' }, 415, /application\/json/],
    ['that is no JSON', '{"a":', json, 400, /not valid JSON/],
    ['with another spelling of the model', '{"Model":"x"}', json, 400, /Unknown field "Model"/],
    ['beyond the limit', `{"a":"${'x'.repeat(10_000)}"}`, json, 413, /larger than 10000 bytes/],
  ])('%s is refused', async (_what, body, headers, status, message) => {
    expect(await post('/v1/kept', body, headers)).toEqual({ status, body: errorOf(message) });
  });

  test('that the plugin reads by itself has its type and its length, where that is known', async () => {
    const text = 'x'.repeat(limit);
    const csv = { 'content-type': 'text/csv' };
    expect(await post('/v1/unread', text, csv)).toEqual({
      status: 200,
      body: { type: 'text/csv', length: limit, bytes: limit },
    });
    const packed = { ...csv, 'content-encoding': 'br' };
    expect(await post('/v1/unread', brotliCompressSync(text), packed)).toEqual({
      status: 200,
      body: { type: 'text/csv', length: null, bytes: limit },
    });
    expect(await post('/v1/unread', text, { ...csv, 'content-encoding': 'identity' })).toEqual({
      status: 200,
      body: { type: 'text/csv', length: limit, bytes: limit },
    });
    expect(await post('/v1/unread', new Blob([text]).stream(), csv)).toEqual({
      status: 200,
      body: { type: 'text/csv', length: null, bytes: limit },
    });
  });

  test('that the plugin reads by itself is refused by its announced length, and may be JSON', async () => {
    expect(await post('/v1/unread', 'x'.repeat(limit + 1))).toEqual({
      status: 413,
      body: errorOf(/larger than 1000 bytes/),
    });
    expect(await post('/v1/unread?json', '{"a":[1]}', json)).toEqual({
      status: 200,
      body: { type: 'application/json', length: 9, json: { a: [1] } },
    });
  });

  test('is asked for only when the key is known: a stranger is refused before a byte of it is sent', async () => {
    const request = send(`${gateway.url}/v1/unread`, {
      method: 'POST',
      headers: { 'content-length': '500', authorization: 'Bearer sk-wrong' },
    });
    request.flushHeaders();
    const status = await new Promise((resolve) =>
      request.on('response', (response) => resolve(response.statusCode)),
    );
    expect(status).toBe(401);
    request.destroy();
  });
});

describe('the format of an endpoint', () => {
  const get = async (query: string, headers: Record<string, string> = key()): Promise<unknown[]> => {
    const response = await fetch(`${gateway.url}/v1/told${query}`, { headers });
    return [response.status, response.headers.get('content-type'), await response.text()];
  };

  test('is what its request says, by headers or by the query', async () => {
    const messages = [404, 'application/json', expect.stringContaining('"type":"error"')];
    expect(await get('', { 'x-api-key': gateway.key })).toEqual(messages);
    expect(await get('?messages')).toEqual(messages);
    const [status, , text] = await get('');
    expect(status).toBe(404);
    expect(JSON.parse(text as string)).not.toHaveProperty('type');
    expect(JSON.parse(text as string)).toMatchObject({ error: { message: 'There is nothing.' } });
  });

  test('of a stream is that of server-sent events, and an error before it is an ordinary one', async () => {
    expect(await get('?stream=yes')).toEqual([200, 'text/event-stream', 'event: first\ndata: {"a":1}\n\n']);
    expect(await get('?stream=yes&silent')).toEqual([200, 'text/event-stream', '']);
    expect(await get('?stream=yes&fails')).toEqual([
      502,
      'application/json',
      expect.stringContaining('It broke off.'),
    ]);
  });
});
