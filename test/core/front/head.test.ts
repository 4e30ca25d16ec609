import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { addedHeaders, writeHead } from '../../../core/front/head.ts';
import { bytesHead, headersOf, type Answered } from '../../../core/front/reply-head.ts';
import { createLog } from '../../../core/log.ts';
import type { Codec, Framing, Operation } from '../../../core/sdk/format.ts';
import { replyHeaders } from '../../../core/sdk/reply-headers.ts';
import { testCall } from '../../support/call.ts';

function logged() {
  const lines: Record<string, unknown>[] = [];
  const log = createLog('debug', { write: (line: string) => void lines.push(JSON.parse(line) as never) });
  return { lines, log };
}

describe('what plugins add to the head of a reply', () => {
  const added = (headers?: Record<string, string>) => {
    const { lines, log } = logged();
    const { exchange } = testCall({ model: 'm' });
    if (headers !== undefined) exchange.values.set(replyHeaders, headers);
    return { lines, headers: addedHeaders(exchange, log) };
  };

  test('is sent as it is where a head can carry it', () => {
    const given = { 'x-a': 'b', 'retry-after': '5' };
    expect(added(given)).toEqual({ lines: [], headers: given });
    expect(added()).toEqual({ lines: [], headers: undefined });
  });

  test.each([
    'connection',
    'content-length',
    'keep-alive',
    'proxy-connection',
    'sec-websocket-accept',
    'sec-websocket-extensions',
    'Sec-WebSocket-Protocol',
    'trailer',
    'Transfer-Encoding',
    'upgrade',
  ])('is sent without %s, which belongs to the connection', (name) => {
    const { lines, headers } = added({ 'x-a': 'b', [name]: '1', 'x-c': 'd' });
    expect(headers).toEqual({ 'x-a': 'b', 'x-c': 'd' });
    expect(lines).toMatchObject([{ id: 'req_test', headers: [name] }]);
  });

  test('is named in the log without its values, twenty names of a hundred characters at most', () => {
    const bad = Object.fromEntries(
      Array.from({ length: 25 }, (_, index) => [`${index} ${'x'.repeat(200)}`, 'secret']),
    );
    const { lines, headers } = added(bad);
    expect(headers).toEqual({});
    expect(JSON.stringify(lines)).not.toContain('secret');
    const names = lines[0]?.['headers'] as string[];
    expect([names.length, names[0]?.length]).toEqual([20, 100]);
  });
});

describe('the head of an answer', () => {
  /** Sends response headers over a socket and returns the received ones. */
  async function sent(status: number, headers: Record<string, string>) {
    const { lines, log } = logged();
    const thrown: unknown[] = [];
    const server = createServer((_request, response: ServerResponse) => {
      writeHead(response, status, headers, 'req_1', log);
      response.write('x');
      try {
        writeHead(response, 200, {}, 'req_1', log);
      } catch (error) {
        thrown.push(error);
      }
      response.end();
    }).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, {
      headers: { connection: 'close' },
    });
    await response.text();
    return { status: response.status, headers: Object.fromEntries(response.headers), lines, thrown };
  }

  test('is sent once, and a second one is a defect', async () => {
    const { status, headers, lines, thrown } = await sent(201, { 'x-a': 'b' });
    expect([status, headers['x-a'], lines]).toEqual([201, 'b', []]);
    expect(thrown).toMatchObject([{ code: 'ERR_HTTP_HEADERS_SENT' }]);
  });

  test('goes out without what no head can carry, and with its status', async () => {
    const { status, headers, lines } = await sent(203, { 'x-a': 'b', 'x bad': 'c', 'x-price': '5 €' });
    expect([status, headers['x-a']]).toEqual([203, 'b']);
    expect(lines).toMatchObject([{ id: 'req_1', headers: ['x bad', 'x-price'] }]);
  });

  test.each([99, 1_000])('has the status 500 in place of %d', async (wrong) => {
    const { status, lines } = await sent(wrong, { 'x-a': 'b' });
    expect(status).toBe(500);
    expect(lines).toMatchObject([{ id: 'req_1', status: wrong }]);
  });
});

describe('the headers of a reply', () => {
  const exchangeOf = (operation: Operation = 'chat', codec: Partial<Codec> = {}) => {
    const { exchange } = testCall({ model: 'm', operation });
    Object.assign(exchange.codec, codec);
    Object.assign(exchange.format, { replyHeaders: (id: string) => ({ 'x-request-id': id }) });
    return exchange;
  };

  test.each([
    ['sse', 'text/event-stream', true],
    ['event-stream', 'application/vnd.amazon.eventstream', true],
    ['ndjson', 'application/x-ndjson', false],
    ['json-array', 'application/json', false],
    ['none', 'application/json', false],
  ] as const)(
    'in %s say what it is, and that nobody on the way may keep events back',
    (framing: Framing, type, events) => {
      expect(headersOf(exchangeOf(), framing, [], undefined)).toEqual({
        'content-type': type,
        'x-request-id': 'req_test',
        ...(events ? { 'cache-control': 'no-cache', 'x-accel-buffering': 'no' } : {}),
      });
    },
  );

  test('name what was lost, and what plugins add; the format has the last word', () => {
    const loss = { path: 'seed', kind: 'setting', from: 'a', to: 'b' } as const;
    const headers = headersOf(exchangeOf(), 'none', [loss], { 'x-a': 'b', 'x-request-id': 'mine' });
    expect(headers).toMatchObject({ 'x-a': 'b', 'x-request-id': 'req_test' });
    expect(headers['x-sluice-loss']).toContain('seed');
  });

  const answer = (headers: Answered['headers'], status = 206): Answered => ({
    type: 'answer',
    status,
    headers,
  });
  const sound = { replyKind: () => 'audio' } as unknown as Partial<Codec>;

  test.each([
    ['audio/mpeg', 'audio/mpeg'],
    ['video/mp4', 'video/mp4'],
    ['image/png', 'image/png'],
    ['IMAGE/WEBP', 'IMAGE/WEBP'],
    ['text/plain; charset=utf-8', 'text/plain; charset=utf-8'],
    ['text/vtt', 'text/vtt'],
    ['application/json', 'application/json'],
    ['image/svg+xml', 'application/octet-stream'],
    ['text/html', 'application/octet-stream'],
    ['text/javascript', 'application/octet-stream'],
    ['application/javascript', 'application/octet-stream'],
    ['x-audio/mpeg', 'application/octet-stream'],
    [undefined, 'application/octet-stream'],
  ])('of a medium have the provider’s %s as %s', (type, expected) => {
    const exchange = exchangeOf('speak', sound);
    const { status, headers } = bytesHead(
      exchange,
      { 'content-type': 'application/json' },
      answer({ 'content-type': type }),
    );
    expect([status, headers['content-type']]).toEqual([200, expected]);
    expect(bytesHead(exchange, {}, undefined).headers['content-type']).toBe('application/octet-stream');
  });

  test('of JSON have the provider’s length and compression, and nothing else of it', () => {
    const given = answer({
      'content-type': 'text/html',
      'content-length': '5',
      'content-encoding': 'zstd',
      'set-cookie': 'a=b',
      etag: 'x',
    });
    expect(bytesHead(exchangeOf(), { 'content-type': 'application/json' }, given)).toEqual({
      status: 200,
      headers: { 'content-type': 'application/json', 'content-length': '5', 'content-encoding': 'zstd' },
    });
    const several = answer({ 'content-length': ['5', '6'] });
    expect(bytesHead(exchangeOf(), { 'x-a': 'b' }, several).headers).toEqual({ 'x-a': 'b' });
  });

  test('of what is kept at a provider have those that a reader of its bytes needs, with its status', () => {
    const passed = {
      'content-type': 'text/csv',
      'content-length': '5',
      'content-encoding': 'gzip',
      'content-range': 'bytes 0-4/9',
      'accept-ranges': 'bytes',
      etag: 'x',
      'last-modified': 'then',
      location: '/there',
    };
    const given = answer({ ...passed, 'set-cookie': 'a=b', server: 'x', 'x-y': ['a', 'b'] });
    expect(bytesHead(exchangeOf('state'), { 'x-a': 'b' }, given)).toEqual({
      status: 206,
      headers: { 'x-a': 'b', ...passed },
    });
    expect(bytesHead(exchangeOf('state'), { 'x-a': 'b' }, undefined)).toEqual({
      status: 200,
      headers: { 'x-a': 'b' },
    });
  });
});
