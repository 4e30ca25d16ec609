import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import demo from '../../channels/demo/index.ts';
import openai from '../../channels/openai.ts';
import { adminPassword, logIn } from '../plugins/admin/_client.ts';
import { eventually } from '../support/eventually.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream } from '../support/upstream.ts';
import { Bare, requestText } from './_socket.ts';

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway({ adminPassword, channels: [demo({ id: 'secret-channel' })] });
});
afterAll(() => gateway.close());

const chat = JSON.stringify({ model: 'demo', messages: [{ role: 'user', content: 'hi' }] });

/** The head of a request that waits for a word before its body is sent. */
const asking = (path: string, headers: Readonly<Record<string, string>>, length: number): string =>
  requestText('POST', path, {
    'content-type': 'application/json',
    'content-length': String(length),
    expect: '100-continue',
    ...headers,
  });

describe('a client that asks before it sends its body', () => {
  const paths = [
    ['/v1/chat/completions', {}],
    ['/v1/messages', { 'anthropic-version': '2023-06-01' }],
    ['/v1beta/models/demo:generateContent', {}],
    ['/v1/images/edits', { 'content-type': 'multipart/form-data; boundary=x' }],
    ['/v1/responses/input_tokens', {}],
  ] as const;

  test.each(paths)('is refused without a word to go on when its key is wrong: %s', async (path, headers) => {
    const bare = await Bare.to(gateway.url);
    bare.write(asking(path, { ...headers, authorization: 'Bearer sk-wrong-wrong-wrong-wrong' }, 1_000_000));
    const answer = await bare.until(/\r\n\r\n\{.*\}/s);
    expect(answer).toMatch(/^HTTP\/1.1 401 /);
    expect(answer).not.toContain('100 Continue');
    expect(answer).toMatch(/connection: close/i);
    await bare.closed;
  });

  test('is told to go on when its key is good, and its connection lives on', async () => {
    const bare = await Bare.to(gateway.url);
    const head = asking(
      '/v1/chat/completions',
      { authorization: `Bearer ${gateway.key}` },
      Buffer.byteLength(chat),
    );
    for (let round = 1; round <= 2; round += 1) {
      bare.write(head);
      // oxlint-disable no-await-in-loop
      await bare.until(new RegExp(`(HTTP/1.1 100 Continue[^]*){${round}}`));
      bare.write(chat);
      const answer = await bare.until(new RegExp(`(You said: hi[^]*){${round}}`));
      // oxlint-enable no-await-in-loop
      expect(answer).toContain('HTTP/1.1 200 OK');
      expect(answer).not.toMatch(/connection: close/i);
    }
    bare.socket.destroy();
  });

  test('is refused without a word where the body is too large, or of no known kind', async () => {
    for (const [headers, status] of [
      [{ 'content-length': String(10 ** 12) }, 413],
      [{ 'content-type': 'text/html' }, 415],
    ] as const) {
      // oxlint-disable no-await-in-loop
      const bare = await Bare.to(gateway.url);
      const key = { authorization: `Bearer ${gateway.key}` };
      bare.write(asking('/v1/chat/completions', { ...key, ...headers }, 10));
      const answer = await bare.until(/\r\n\r\n\{.*\}/s);
      // oxlint-enable no-await-in-loop
      expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
      bare.socket.destroy();
    }
  });

  test('is answered at once where nobody reads a body', async () => {
    const bare = await Bare.to(gateway.url);
    bare.write(requestText('GET', '/healthz', { expect: '100-continue', 'content-length': '5' }));
    expect(await bare.until(/\r\n\r\n\{/)).toMatch(/^HTTP\/1.1 200 /);
    bare.socket.destroy();
  });
});

test('a call whose gateway stops before its provider has answered is told to come again', async () => {
  const provider = await startUpstream(() => {});
  const stopping = await startGateway({
    channels: [openai({ key: 'k', baseUrl: `${provider.url}/v1`, models: ['m'] })],
    timeouts: { drain: 20 },
  });
  const answer = fetch(`${stopping.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${stopping.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] }),
  });
  await eventually(() => provider.requests.length === 1);
  const stopped = stopping.close();
  const { status, headers } = await answer;
  expect([status, headers.get('retry-after'), headers.get('connection')]).toEqual([503, '1', 'close']);
  await stopped;
  await provider.close();
});

test('a client that is refused and never sends the rest of its body is disconnected', async () => {
  const bare = await Bare.to(gateway.url);
  const headers = { 'content-type': 'application/json', 'content-length': '1000000' };
  bare.write(
    requestText('POST', '/v1/chat/completions', { ...headers, authorization: 'Bearer sk-wrong' }, '{'),
  );
  expect(await bare.until(/\r\n\r\n\{/)).toMatch(/^HTTP\/1\.1 401 /);
  await bare.closed;
});

describe('a first line that is no request of HTTP/1', () => {
  const headers = `host: gateway.test\r\n`;
  test.each([
    ['without a version', 'GET /healthz\r\n\r\n', 505],
    ['without a version, with a key', `GET /v1/models?key=KEY\r\n\r\n`, 505],
    ['of HTTP/0.9', 'GET /healthz HTTP/0.9\r\n\r\n', 505],
    ['of HTTP/2.0', `GET /healthz HTTP/2.0\r\n${headers}\r\n`, 505],
    [
      'of HTTP/2.0, for a socket',
      `GET /v1/responses HTTP/2.0\r\n${headers}upgrade: websocket\r\nconnection: upgrade\r\n\r\n`,
      505,
    ],
    ['of a later HTTP/1', `GET /healthz HTTP/1.2\r\n${headers}\r\n`, 400],
    ['in lower case', `get /healthz HTTP/1.1\r\n${headers}\r\n`, 400],
    ['with a method that nobody knows', `FETCH /healthz HTTP/1.1\r\n${headers}\r\n`, 400],
    ['with a space before it', ` GET /healthz HTTP/1.1\r\n${headers}\r\n`, 400],
    ['with a space in its path', `GET /health z HTTP/1.1\r\n${headers}\r\n`, 400],
    ['with a tab in its path', `GET /health\tz HTTP/1.1\r\n${headers}\r\n`, 400],
    ['without a slash', `GET healthz HTTP/1.1\r\n${headers}\r\n`, 400],
    ['with a fragment', `GET /healthz#x HTTP/1.1\r\n${headers}\r\n`, 400],
    ['with words behind it', `GET /healthz HTTP/1.1 now\r\n${headers}\r\n`, 400],
    ['without a host', 'GET /healthz HTTP/1.1\r\n\r\n', 400],
    ['of bytes', '\u0000\u0001\u0002\u0003\r\n\r\n', 400],
    ['of TLS', '\u0016\u0003\u0001\u0002\u0000\u0001\u0000', 400],
  ])('%s is refused, and the connection closed', async (_what, text, status) => {
    const bare = await Bare.to(gateway.url);
    bare.write(Buffer.from(text.replace('KEY', gateway.key), 'latin1'));
    const answer = await bare.until(/\r\n\r\n/);
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    await bare.closed;
    expect(answer).not.toContain('"ok"');
  });

  test('may be one of HTTP/1.0, or name the whole address as proxies are asked', async () => {
    for (const text of [
      'GET /healthz HTTP/1.0\r\n\r\n',
      `GET http://gateway.test/healthz HTTP/1.1\r\n${headers}\r\n`,
    ]) {
      // oxlint-disable no-await-in-loop
      const bare = await Bare.to(gateway.url);
      bare.write(text);
      expect(await bare.until(/"ok"/)).toMatch(/^HTTP\/1.1 200 /);
      // oxlint-enable no-await-in-loop
      bare.socket.destroy();
    }
  });
});

describe('whether the gateway is ready', () => {
  const ready = async (headers: Readonly<Record<string, string>>, query = '') => {
    const response = await fetch(`${gateway.url}/readyz${query}`, { headers });
    return { status: response.status, text: await response.text() };
  };

  test('strangers learn, and nothing of its channels', async () => {
    for (const headers of [
      {},
      { authorization: 'Bearer sk-wrong-wrong-wrong' },
      { cookie: 'sluice-session=x' },
    ]) {
      // oxlint-disable-next-line no-await-in-loop
      const { status, text } = await ready(headers as Record<string, string>);
      expect([status, JSON.parse(text)]).toEqual([200, { status: 'ready', database: 'ok', shared: 'ok' }]);
      expect(text).not.toContain('secret-channel');
    }
  });

  test('callers with a key, and whoever is logged in, learn how its channels stand', async () => {
    const page = await logIn(gateway.url);
    const expectedReply = { status: 200, text: expect.stringContaining('secret-channel') as string };
    expect(await ready({ authorization: `Bearer ${gateway.key}` })).toEqual(expectedReply);
    expect(await ready({ 'x-api-key': gateway.key })).toEqual(expectedReply);
    expect(await ready({}, `?key=${gateway.key}`)).toEqual(expectedReply);
    expect(await ready({ cookie: page.cookie })).toEqual(expectedReply);
  });
});
