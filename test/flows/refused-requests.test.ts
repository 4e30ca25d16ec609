/* oxlint-disable vitest/expect-expect, vitest/no-conditional-expect, vitest/valid-expect -- one test serves many cases: what is expected depends on the case, and the message says which it was. */
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { Bare, requestText, statuses } from './_socket.ts';
import {
  call,
  fetchRaw,
  formatNames,
  read,
  readError,
  voices,
  type Answer,
  type FormatName,
} from './_wire.ts';

const limit = 2 * 1024 * 1024;
let upstream: ScriptedUpstream;
let gateway: TestGateway;

beforeAll(async () => {
  upstream = await startUpstream((request, response) => {
    const voice =
      voices[
        request.url.includes('/chat/')
          ? 'chat-completions'
          : request.url.includes('/messages')
            ? 'messages'
            : 'generate-content'
      ];
    if (request.body.includes('for ever')) {
      response.writeHead(200).write(voice.frames(['a', 'b']).slice(0, 3).join(''));
      return;
    }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(voice.whole('fine')));
  });
  gateway = await startGateway({
    channels: formatNames.map((name) => voices[name].channel(upstream.url)),
    limits: { body: limit, values: 50_000, depth: 100, header: 16 * 1024 },
  });
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});
beforeEach(() => {
  upstream.requests.length = 0;
});

/** The gateway refused by itself: right status, the family's envelope, nothing reached the provider. */
function expectRefused(format: FormatName, answer: Answer, status: number): string {
  expect(answer.status, answer.text).toBe(status);
  expect(upstream.requests).toHaveLength(0);
  expect(answer.headers['x-request-id'] ?? answer.headers['request-id']).toMatch(/^req_/);
  return readError(format, answer).message;
}

describe.each(formatNames)('%s', (format) => {
  const voice = voices[format];
  const path = voice.path(voice.model, false);
  const good = voice.body(voice.model, false);
  const post = (body: string | Buffer, headers: Record<string, string | undefined> = {}): Promise<Answer> =>
    fetchRaw(gateway, path, { body, headers: { ...voice.headers, ...headers } });

  test.each([
    ['no body', ''],
    ['words', 'hello'],
    ['half an object', JSON.stringify(good).slice(0, -5)],
    ['a list', '[]'],
    ['null', 'null'],
    ['a number', '42'],
    ['broken UTF-8', Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0xff, 0xfe]), Buffer.from('"}')])],
    ['UTF-16', Buffer.from(JSON.stringify(good), 'utf16le')],
    ['very deep nesting', `{"a":${'['.repeat(5000)}${']'.repeat(5000)}}`],
    ['too many values', JSON.stringify({ ...good, extra: Array(60_000).fill(0) })],
  ])('%s instead of a request is a 400', async (_what, body) => {
    expectRefused(format, await post(body), 400);
  });

  test('a body behind a byte-order mark is understood, and the provider gets none', async () => {
    const answer = await post(`\ufeff${JSON.stringify(good)}`);
    expect(answer.status, answer.text).toBe(200);
    expect(upstream.requests[0]?.body.toString()).toMatch(/^\{/);
  });

  test.each(['text/plain', 'multipart/form-data; boundary=x', 'application/x-www-form-urlencoded'])(
    'the content type %s is a 415',
    async (type) => {
      expectRefused(format, await post(JSON.stringify(good), { 'content-type': type }), 415);
    },
  );

  test('no content type is taken for JSON', async () => {
    const answer = await post(JSON.stringify(good), { 'content-type': undefined });
    expect(answer.status, answer.text).toBe(200);
  });

  test.each([
    ['gzip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
    ['zstd', zstdCompressSync],
  ] as const)('a body in %s is understood and goes on plain', async (encoding, compress) => {
    const answer = await post(compress(JSON.stringify(good)), { 'content-encoding': encoding });
    expect(answer.status, answer.text).toBe(200);
    expect(read(format, false, answer).text).toBe('fine');
    expect(JSON.parse(upstream.requests[0]?.body.toString() ?? '')).toEqual(good);
    expect(upstream.requests[0]?.headers['content-encoding']).toBeUndefined();
  });

  test.each(['compress', 'constructor', '__proto__', 'gzip, br'])(
    'a body in %s is a 415',
    async (encoding) => {
      expectRefused(format, await post(JSON.stringify(good), { 'content-encoding': encoding }), 415);
    },
  );

  test('a damaged compressed body is a 400', async () => {
    const bytes = gzipSync(JSON.stringify(good));
    expectRefused(format, await post(bytes.subarray(0, -6), { 'content-encoding': 'gzip' }), 400);
    bytes[15] = 255 - (bytes[15] ?? 0);
    expectRefused(format, await post(bytes, { 'content-encoding': 'gzip' }), 400);
  });

  test('a body that is too large is a 413: announced, chunked or in a gzip bomb', async () => {
    const big = JSON.stringify({ ...good, extra: 'x'.repeat(limit) });
    expectRefused(format, await post(big), 413);
    expectRefused(format, await post(big, { 'transfer-encoding': 'chunked' }), 413);
    expectRefused(
      format,
      await post(gzipSync(Buffer.alloc(50 * limit, 0x20)), { 'content-encoding': 'gzip' }),
      413,
    );
  });

  test('a body of a thousand gigabytes is refused before it is sent', async () => {
    const bare = await Bare.to(gateway.url);
    bare.write(
      requestText('POST', path, {
        ...voice.headers,
        authorization: `Bearer ${gateway.key}`,
        'content-type': 'application/json',
        'content-length': '1000000000000',
      }),
    );
    expect(statuses(await bare.until(/\r\n\r\n\{.*\}$/s))).toEqual([413]);
    bare.socket.destroy();
  });

  test.each([
    ['no key', undefined],
    ['an unknown key', `Bearer sk-${'x'.repeat(48)}`],
    ['a key of nonsense', 'Bearer \u00fc\u00fc'],
    ['an empty key', 'Bearer '],
    ['a password', 'Basic dXNlcjpwYXNz'],
  ])('%s is a 401', async (_what, authorization) => {
    const answer = await post(JSON.stringify(good), { authorization });
    expect(expectRefused(format, answer, 401)).not.toContain('x'.repeat(20));
  });

  test('a bad key is refused while 20 MB are still being sent, drop by drop', async () => {
    const bare = await Bare.to(gateway.url);
    bare.write(
      requestText('POST', path, {
        ...voice.headers,
        authorization: 'Bearer sk-wrong',
        'content-type': 'application/json',
        'content-length': String(20 * 1024 * 1024),
      }),
    );
    let uploaded = 0;
    const drip = setInterval(() => {
      bare.write('x'.repeat(1024));
      uploaded += 1024;
    }, 5);
    const text = await bare.until(/\r\n\r\n\{.*\}$/s);
    clearInterval(drip);
    console.log(`${format}: 401 after ${uploaded} of 20971520 bytes`);
    expect(statuses(text)).toEqual([401]);
    expect(uploaded).toBeLessThan(1024 * 1024);
    bare.socket.destroy();
  });

  test('an upload that stops halfway reaches nobody and is nobody’s failure', async () => {
    await gateway.forgetLines();
    const bare = await Bare.to(gateway.url);
    bare.write(
      requestText(
        'POST',
        path,
        {
          ...voice.headers,
          authorization: `Bearer ${gateway.key}`,
          'content-type': 'application/json',
          'content-length': '1000',
        },
        '{"model":',
      ),
    );
    await new Promise((resolve) => setTimeout(resolve, 30));
    bare.socket.destroy();
    await expect.poll(() => gateway.lines.filter(({ plugin }) => plugin === 'logging').length).toBe(1);
    expect(gateway.lines.at(-1)).toMatchObject({ ended: 'left' });
    expect(gateway.lines.filter(({ level }) => level === 'error' || level === 'warn')).toEqual([]);
    expect(upstream.requests).toHaveLength(0);
  });

  test('a header that is too large is a 431', async () => {
    const answer = await post(JSON.stringify(good), { 'x-much': 'y'.repeat(20_000) });
    expect(answer.status).toBe(431);
    expect(JSON.parse(answer.text)).toMatchObject({ error: { message: expect.any(String) as string } });
  });

  test('an unknown model is a 503, said once and not worth trying again', async () => {
    const answer = await call(gateway, format, 'no-such-model', false);
    expect(expectRefused(format, answer, 503)).toContain('no-such-model');
  });
});

describe('what stands twice in a request', () => {
  test('two models in one body: what was checked is what is sent', async () => {
    for (const format of ['chat-completions', 'messages'] as const) {
      const voice = voices[format];
      const rest = JSON.stringify(voice.body(voice.model, false)).slice(1);
      for (const first of [
        '"model":"forbidden",',
        '"m\\u006fdel":"forbidden",',
        '"model":{"x":1},',
        '"model":5,',
      ]) {
        upstream.requests.length = 0;
        const answer = await fetchRaw(gateway, voice.path(voice.model, false), {
          body: `{${first}${rest}`,
          headers: voice.headers,
        });
        expect(answer.status, answer.text).toBe(200);
        const sent = upstream.requests[0]?.body.toString() ?? '';
        expect(sent).not.toContain('forbidden');
        expect(sent.match(/"(model|m\\u006fdel)"/g)).toHaveLength(1);
      }
    }
  });

  test('headers that stand twice are no way around the key', async () => {
    const voice = voices['chat-completions'];
    const body = voice.body(voice.model, false);
    const twice = await fetchRaw(gateway, '/v1/chat/completions', {
      body,
      headers: { authorization: undefined, 'x-api-key': ['sk-wrong', gateway.key] },
    });
    expect(twice.status).toBe(401);
    const same = await fetchRaw(gateway, '/v1/chat/completions', {
      body,
      headers: { 'x-api-key': gateway.key },
    });
    expect(same.status, same.text).toBe(200);
    const types = await fetchRaw(gateway, '/v1/chat/completions', {
      body,
      headers: { 'content-type': ['application/json', 'text/plain'] },
    });
    expect([200, 415]).toContain(types.status);
  });

  test('two lengths are refused before anything is read', async () => {
    const bare = await Bare.to(gateway.url);
    bare.write(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${gateway.key}\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n{}`,
    );
    expect(statuses(await bare.until(/HTTP\/1\.1/))).toEqual([400]);
    const other = await Bare.to(gateway.url);
    other.write(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
    );
    expect(statuses(await other.until(/HTTP\/1\.1/))).toEqual([400]);
  });
});

describe('the key and the version in either spelling', () => {
  const styles: [string, () => Record<string, string | undefined>][] = [
    ['Authorization', () => ({ authorization: `Bearer ${gateway.key}` })],
    [
      'authorization in capitals',
      () => ({ authorization: undefined, AUTHORIZATION: `BEARER  ${gateway.key} ` }),
    ],
    ['x-api-key', () => ({ authorization: undefined, 'x-api-key': gateway.key })],
    ['x-goog-api-key', () => ({ authorization: undefined, 'x-goog-api-key': gateway.key })],
    ['x-g-api-key', () => ({ authorization: undefined, 'X-G-Api-Key': gateway.key })],
  ];
  describe.each(formatNames)('%s', (format) => {
    test.each(styles)('%s opens the door, and the provider never sees it', async (_name, headers) => {
      const answer = await call(gateway, format, voices[format].model, false, { headers: headers() });
      expect(answer.status, answer.text).toBe(200);
      expect(JSON.stringify(upstream.requests[0]?.headers)).not.toContain(gateway.key);
      expect(upstream.requests[0]?.url).not.toContain(gateway.key);
    });

    test('?key= opens the door, and the provider never sees it', async () => {
      const voice = voices[format];
      const path = voice.path(voice.model, false);
      const answer = await fetchRaw(gateway, `${path}${path.includes('?') ? '&' : '?'}key=${gateway.key}`, {
        body: voice.body(voice.model, false),
        headers: { ...voice.headers, authorization: undefined },
      });
      expect(answer.status, answer.text).toBe(200);
      expect(upstream.requests[0]?.url).not.toContain(gateway.key);
      expect(JSON.stringify(gateway.lines)).not.toContain(gateway.key);
    });
  });

  test('a-version is anthropic-version; without either, or with no date, the request is a 400', async () => {
    const body = voices.messages.body(voices.messages.model, false);
    const post = (headers: Record<string, string>) => fetchRaw(gateway, '/v1/messages', { body, headers });
    expect((await post({ 'a-version': '2023-06-01' })).status).toBe(200);
    expect((await post({ 'Anthropic-Version': '2026-10-21' })).status).toBe(200);
    upstream.requests.length = 0;
    expectRefused('messages', await post({}), 400);
    expectRefused('messages', await post({ 'anthropic-version': '' }), 400);
    expectRefused('messages', await post({ 'anthropic-version': 'latest' }), 400);
    expectRefused('messages', await post({ 'anthropic-version': '2020-01-01' }), 400);
  });
});

describe('paths and methods', () => {
  const paths: [FormatName, string, string][] = [
    ['chat-completions', 'GET', '/v1/chat/completions'],
    ['chat-completions', 'DELETE', '/v1/chat/completions'],
    ['chat-completions', 'PATCH', '/v1/models'],
    ['messages', 'GET', '/v1/messages'],
    ['messages', 'PUT', '/v1/messages'],
    ['generate-content', 'GET', '/v1beta/models/m:generateContent/x'],
    ['generate-content', 'PUT', '/v1beta/models/m:generateContent'],
    ['chat-completions', 'POST', '/v1/assistants'],
    ['chat-completions', 'GET', '/'],
    ['chat-completions', 'GET', '/v1/unknown'],
    ['messages', 'POST', '/v1/messages/unknown'],
    ['generate-content', 'POST', '/v1beta/models/m:unknownMethod'],
    ['generate-content', 'POST', '/v1/models/m:unknownMethod'],
    ['generate-content', 'GET', '/v1beta/tunedModels'],
    ['chat-completions', 'OPTIONS', '/v1/chat/completions'],
  ];
  test.each(paths)('in the words of %s: %s %s is a 404 or a 405', async (format, method, path) => {
    const answer = await fetchRaw(gateway, path, { method });
    expect([404, 405], answer.text).toContain(answer.status);
    readError(format, answer);
    if (answer.status === 405) expect(answer.headers.allow).toMatch(/^[A-Z, ]+$/);
  });

  test('a wrong method on a real path is a 405 that names the right one', async () => {
    for (const format of formatNames) {
      const answer = await fetchRaw(gateway, voices[format].path('m', false), { method: 'PUT' });
      expect(answer.status).toBe(405);
      expect(answer.headers.allow).toContain('POST');
    }
  });

  test('HEAD answers have no body and a 405 or 404 where there is nothing to get', async () => {
    for (const [path, status] of [
      ['/v1/chat/completions', 405],
      ['/v1/messages', 405],
      ['/v1beta/models/m:generateContent', 404],
      ['/nothing', 404],
      ['/healthz', 200],
      ['/v1/models', 200],
    ] as const) {
      const answer = await fetchRaw(gateway, path, { method: 'HEAD' });
      expect([path, answer.status]).toEqual([path, status]);
      expect(answer.text).toBe('');
    }
  });

  test.each([
    '/v1beta/models/%E0%A4%A:generateContent',
    '/v1/models/%',
    '/v1/models/%ff',
    '//',
    '//v1/messages',
    '/v1/messages/%00',
    '/v1/chat/completions/%2e%2e',
    '/v1/models/..%2f..%2fetc',
    '*',
    '/?x=%ff',
    '/v1beta/models/:generateContent',
    '/v1beta/models/a%2Fb:generateContent',
  ])('the odd path %s is no server error', async (path) => {
    for (const method of ['GET', 'POST']) {
      const bare = await Bare.to(gateway.url);
      bare.write(
        requestText(
          method,
          path,
          {
            authorization: `Bearer ${gateway.key}`,
            'content-type': 'application/json',
            'content-length': '2',
            connection: 'close',
          },
          '{}',
        ),
      );
      await bare.closed;
      expect(
        statuses(bare.text).every((status) => status < 500),
        bare.text,
      ).toBe(true);
      expect(bare.text).toMatch(/content-type: application\/json\r\n/i);
      expect(bare.text).toMatch(/\{.*\}/s);
    }
  });

  test.each(['a b', 'x:y:z', '[::', '', '\u00fc', 'x/y', 'a@b'])(
    'the odd host %j is no server error',
    async (host) => {
      const bare = await Bare.to(gateway.url);
      const body = JSON.stringify(voices['chat-completions'].body('via-chat', false));
      bare.write(
        requestText(
          'POST',
          '/v1/chat/completions',
          {
            host,
            authorization: `Bearer ${gateway.key}`,
            'content-type': 'application/json',
            'content-length': String(body.length),
            connection: 'close',
          },
          body,
        ),
      );
      await bare.closed;
      expect(statuses(bare.text)[0], bare.text).toBeLessThan(500);
      const list = await Bare.to(gateway.url);
      list.write(requestText('GET', `/v1/models?key=${gateway.key}`, { host, connection: 'close' }));
      await list.closed;
      expect(statuses(list.text)[0], list.text).toBeLessThan(500);
    },
  );

  test('the content type of every error is plain application/json', async () => {
    for (const [method, path] of [
      ['GET', '/nothing'],
      ['PUT', '/v1/messages'],
      ['GET', '/v1beta/nothing'],
    ] as const) {
      expect((await fetchRaw(gateway, path, { method })).headers['content-type']).toBe('application/json');
    }
  });
});

describe('HTTP as such', () => {
  const body = JSON.stringify(voices['chat-completions'].body('via-chat', false));
  const head = (): Record<string, string> => ({
    authorization: `Bearer ${gateway.key}`,
    'content-type': 'application/json',
    'content-length': String(body.length),
  });

  test('three requests sent in one breath are answered in order', async () => {
    const bare = await Bare.to(gateway.url);
    const list = requestText('GET', '/v1/models', { authorization: `Bearer ${gateway.key}` });
    bare.write(
      requestText('POST', '/v1/chat/completions', head(), body) +
        list +
        requestText('GET', '/nothing', {}) +
        requestText('POST', '/v1/chat/completions', { ...head(), connection: 'close' }, body),
    );
    await bare.closed;
    expect(statuses(bare.text)).toEqual([200, 200, 404, 200]);
  });

  test('a connection is kept and used again after errors', async () => {
    const bare = await Bare.to(gateway.url);
    for (const [text, status] of [
      [
        requestText('POST', '/v1/chat/completions', { ...head(), authorization: 'Bearer sk-wrong' }, body),
        401,
      ],
      [requestText('POST', '/v1/chat/completions', { ...head(), 'content-length': '3' }, '{x}'), 400],
      [requestText('PUT', '/v1/messages', {}), 405],
      [requestText('POST', '/v1/chat/completions', head(), body), 200],
    ] as const) {
      const seen = statuses(bare.text).length;
      bare.write(text);
      await expect.poll(() => statuses(bare.text).length).toBe(seen + 1);
      expect(statuses(bare.text).at(-1)).toBe(status);
      await bare.until(/\}$|\}\r\n0\r\n\r\n$/);
    }
    bare.socket.destroy();
  });

  test('HTTP/1.0 is answered and closed', async () => {
    const bare = await Bare.to(gateway.url);
    bare.write(
      `POST /v1/chat/completions HTTP/1.0\r\nauthorization: Bearer ${gateway.key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    await bare.closed;
    expect(statuses(bare.text)).toEqual([200]);
    expect(bare.text).not.toMatch(/transfer-encoding/i);
    expect(bare.text).toContain('"fine"');
  });

  test('Expect: 100-continue is honoured', async () => {
    const bare = await Bare.to(gateway.url);
    bare.write(
      requestText('POST', '/v1/chat/completions', { ...head(), expect: '100-continue', connection: 'close' }),
    );
    await bare.until(/HTTP\/1\.1 100/);
    bare.write(body);
    await bare.closed;
    expect(statuses(bare.text)).toEqual([100, 200]);
  });

  test('with a bad key, Expect: 100-continue gets its 401 without the body', async () => {
    const bare = await Bare.to(gateway.url);
    bare.write(
      requestText('POST', '/v1/chat/completions', {
        ...head(),
        authorization: 'Bearer sk-wrong',
        expect: '100-continue',
      }),
    );
    const text = await bare.until(/HTTP\/1\.1 401/);
    expect(statuses(text).at(-1)).toBe(401);
    bare.socket.destroy();
  });

  test('nonsense sent behind a request is not answered in the middle of the stream that is running', async () => {
    const endless = JSON.stringify({
      ...voices['chat-completions'].body('via-chat', true),
      user: 'for ever',
    });
    const bare = await Bare.to(gateway.url);
    bare.write(
      requestText(
        'POST',
        '/v1/chat/completions',
        { ...head(), 'content-length': String(endless.length) },
        endless,
      ),
    );
    await bare.until(/chat\.completion\.chunk/);
    bare.write('this is no request\r\n\r\n');
    await bare.closed;
    expect(statuses(bare.text)).toEqual([200]);
    expect(bare.text).not.toContain('Bad Request');
  });

  test.each([
    ['no HTTP at all', 'hello\r\n\r\n'],
    [
      'a broken chunk',
      'POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n',
    ],
    ['a line of control characters', 'GET /\u0001 HTTP/1.1\r\nhost: x\r\n\r\n'],
    ['a request without a host', 'GET /healthz HTTP/1.1\r\n\r\n'],
    ['TLS on the plain port', Buffer.from('16030100a5010000a10303', 'hex')],
  ])('%s is a 400 and a closed connection', async (_what, data) => {
    const bare = await Bare.to(gateway.url);
    bare.write(data);
    await bare.closed;
    expect(statuses(bare.text).at(-1), bare.text).toSatisfy(
      (status: number) => status === 400 || status === 401,
    );
  });
});

test('none of this was the gateway’s own failure', () => {
  expect(
    gateway.lines.filter(
      ({ level, msg }) => level === 'error' || level === 'fatal' || /failed inside/.test(String(msg)),
    ),
  ).toEqual([]);
});
