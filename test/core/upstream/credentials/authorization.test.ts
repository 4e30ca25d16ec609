import { once } from 'node:events';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Readable } from 'node:stream';
import { NEVER } from 'rxjs';
import type { Call, Target } from '../../../../core/sdk/call.ts';
import type { ChannelTools } from '../../../../core/sdk/define.ts';
import type { UpstreamSocketRequest } from '../../../../core/sdk/http.ts';
import { withAuthorization, type Authorizing } from '../../../../core/upstream/credentials/authorization.ts';
import { createHttpClient } from '../../../../core/upstream/send.ts';
import { all } from '../../../support/answer.ts';
import { testCall } from '../../../support/call.ts';
import { startUpstream, type ScriptedUpstream } from '../../../support/upstream.ts';

const http = createHttpClient({ connectTimeout: 5_000, idleTimeout: 5_000 });
const sockets: UpstreamSocketRequest[] = [];
const tools = {
  keys: ['key-a', 'key-b'],
  http,
  sockets: {
    connect: (_call: Call, request: UpstreamSocketRequest) => {
      sockets.push(request);
      return Promise.resolve(NEVER);
    },
    close: () => Promise.resolve(),
  },
} as unknown as ChannelTools;

let provider: ScriptedUpstream;
/** Status of the provider for a request with this header. */
let status: (token: unknown) => number;
/** Bytes that the provider writes after a refusal, without an end. */
let isEndless = false;
const calls: { end(): void }[] = [];

beforeAll(async () => {
  provider = await startUpstream(({ headers }, response) => {
    const code = status(headers['x-token']);
    response.writeHead(code);
    if (code === 401 && isEndless) response.write('no');
    else response.end(`answer to ${String(headers['x-token'])}`);
  });
});
afterAll(async () => {
  await http.close();
  await provider.close();
});
beforeEach(() => {
  status = () => 200;
  isEndless = false;
  provider.requests.length = 0;
  sockets.length = 0;
});
afterEach(() => {
  for (const call of calls.splice(0)) call.end();
});

/** A call that goes with a key of the channel. */
function callWith(index: number | undefined): Call {
  const { call, exchange } = testCall();
  calls.push(exchange);
  if (index === undefined) return call;
  return Object.defineProperty(call, 'target', { value: { key: { index } } as unknown as Target });
}

/** Headers for a key; they count, and each is refused once it was forgotten. */
function counting(
  isRenewed = true,
): Authorizing & { readonly forgotten: unknown[]; readonly keys: string[] } {
  const keys: string[] = [];
  const forgotten: unknown[] = [];
  const headersOf = (_request: unknown, key: string) => {
    keys.push(key);
    return { 'x-token': `${key}-${keys.length}` };
  };
  return Object.assign(headersOf, {
    keys,
    forgotten,
    ...(isRenewed ? { forget: (headers: object) => void forgotten.push(headers) } : {}),
  });
}

const request = () => ({
  url: `${provider.url}/v1`,
  headers: { 'x-own': '1', 'x-token': 'old' },
  body: '{}',
});

describe('a request that is authorized', () => {
  test.each([
    [0, 'key-a'],
    [1, 'key-b'],
    [undefined, 'key-a'],
    [7, ''],
  ])('goes with the key of its call (%s), over its own headers', async (index, key) => {
    const headersOf = counting();
    await all(await withAuthorization(tools, headersOf).http.send(callWith(index), request()));
    expect(headersOf.keys).toEqual([key]);
    expect(provider.requests[0]?.headers).toMatchObject({ 'x-own': '1', 'x-token': `${key}-1` });
  });

  test('waits for headers that are on their way', async () => {
    const headersOf: Authorizing = () => Promise.resolve({ 'x-token': 'later' });
    const upstream = await withAuthorization(tools, headersOf).http.send(callWith(0), request());
    expect((await all(upstream)).toString()).toBe('answer to later');
  });

  test('outside of a call goes with the first key, or with none', async () => {
    const headersOf = counting();
    const read = await withAuthorization(tools, headersOf).http.read({
      url: `${provider.url}/list`,
      headers: {},
    });
    expect(read.toString()).toBe('answer to key-a-1');
    await withAuthorization({ ...tools, keys: [] }, headersOf).http.read({ url: provider.url, headers: {} });
    expect(headersOf.keys).toEqual(['key-a', '']);
  });

  test('for a socket is a GET with the key of the call', async () => {
    const received: unknown[] = [];
    const headersOf: Authorizing = (about, key) => {
      received.push(about, key);
      return { 'x-token': 'socket' };
    };
    await withAuthorization(tools, headersOf).sockets.connect(callWith(1), {
      url: 'wss://p/v1',
      headers: { a: 'b' },
    });
    expect(received).toEqual([{ url: 'wss://p/v1', method: 'GET' }, 'key-b']);
    expect(sockets).toEqual([{ url: 'wss://p/v1', headers: { a: 'b', 'x-token': 'socket' } }]);
    const { sockets: _, ...without } = tools;
    expect(withAuthorization(without, headersOf)).not.toHaveProperty('sockets');
  });
});

describe('an answer of 401', () => {
  test('makes the headers forgotten, and the request is sent once more with others', async () => {
    status = (token) => (token === 'key-a-1' ? 401 : 200);
    const headersOf = counting();
    const upstream = await withAuthorization(tools, headersOf).http.send(callWith(0), request());
    expect((await all(upstream)).toString()).toBe('answer to key-a-2');
    expect(headersOf.forgotten).toEqual([{ 'x-token': 'key-a-1' }]);
    expect(provider.requests.map(({ body }) => body.toString())).toEqual(['{}', '{}']);
  });

  test('to the second request as well is the answer', async () => {
    status = () => 401;
    const headersOf = counting();
    const upstream = await withAuthorization(tools, headersOf).http.send(callWith(0), request());
    expect(upstream.status).toBe(401);
    expect((await all(upstream)).toString()).toBe('answer to key-a-2');
    expect(provider.requests).toHaveLength(2);
    expect(headersOf.forgotten).toHaveLength(1);
  });

  test('that never ends is let go of', async () => {
    status = (token) => (token === 'key-a-1' ? 401 : 200);
    isEndless = true;
    const upstream = await withAuthorization(tools, counting()).http.send(callWith(0), request());
    expect(upstream.status).toBe(200);
    await provider.requests[0]?.closed;
  });

  test.each([403, 500])('is not taken for one when it is a %i', async (other) => {
    status = () => other;
    const headersOf = counting();
    expect((await withAuthorization(tools, headersOf).http.send(callWith(0), request())).status).toBe(other);
    expect(provider.requests).toHaveLength(1);
    expect(headersOf.forgotten).toEqual([]);
  });

  test('is the answer where the next headers would be the same', async () => {
    status = () => 401;
    const upstream = await withAuthorization(tools, counting(false)).http.send(callWith(0), request());
    expect((await all(upstream)).toString()).toBe('answer to key-a-1');
    expect(provider.requests).toHaveLength(1);
  });

  test('to an upload is the answer: its bytes are gone, and the next upload shows other headers', async () => {
    status = () => 401;
    const headersOf = counting();
    const bytes = Readable.from([Buffer.from('abc')], { objectMode: false });
    const { body: _, ...rest } = request();
    const upstream = await withAuthorization(tools, headersOf).http.send(callWith(0), {
      ...rest,
      upload: { bytes, length: 3 },
    });
    expect((await all(upstream)).toString()).toBe('answer to key-a-1');
    expect(headersOf.forgotten).toHaveLength(1);
    expect(provider.requests.map(({ body }) => body.toString())).toEqual(['abc']);
    if (!bytes.closed) await once(bytes, 'close');
  });
});
