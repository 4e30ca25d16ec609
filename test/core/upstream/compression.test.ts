import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import type { ServerResponse } from 'node:http';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Exchange } from '../../../core/call/exchange.ts';
import type { Upstream } from '../../../core/sdk/channel.ts';
import type { Gate } from '../../../core/sdk/gate.ts';
import type { HttpClient } from '../../../core/sdk/http.ts';
import { createHttpClient } from '../../../core/upstream/send.ts';
import { all, outcome } from '../../support/answer.ts';
import { testCall } from '../../support/call.ts';
import { eventually } from '../../support/eventually.ts';
import { startUpstream, type ScriptedUpstream } from '../../support/upstream.ts';

let provider: ScriptedUpstream;
let http: HttpClient;
let answer: (response: ServerResponse) => void;
const exchanges: Exchange[] = [];

beforeAll(async () => {
  provider = await startUpstream((_request, response) => answer(response));
  http = createHttpClient({ connectTimeout: 5_000, idleTimeout: 30_000 });
});
afterAll(async () => {
  await http.close();
  await provider.close();
});
afterEach(() => {
  for (const exchange of exchanges.splice(0)) exchange.end();
  provider.requests.length = 0;
});

const says = (encoding: string, body: Buffer): void => {
  answer = (response) =>
    void response
      .writeHead(200, {
        'content-encoding': encoding,
        'content-length': body.length,
        etag: '"a"',
        'x-a': 'b',
      })
      .end(body);
};
async function send(): Promise<{ readonly upstream: Upstream; readonly gate: Gate }> {
  const { call, exchange } = testCall();
  exchanges.push(exchange);
  const upstream = await http.send(call, { url: provider.url, headers: {}, body: '{}' });
  return { upstream, gate: call.gate };
}

const words = Buffer.from('many words and more of them, '.repeat(2_000));

describe('a body that was packed although nobody asked for it', () => {
  it.each<[string, (bytes: Buffer) => Buffer]>([
    ['gzip', gzipSync],
    ['x-gzip', gzipSync],
    ['GZip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
    ['zstd', zstdCompressSync],
  ])('by %s comes as it was, without what described the packed bytes', async (encoding, pack) => {
    says(encoding, pack(words));
    const { upstream } = await send();
    expect((await all(upstream)).equals(words)).toBe(true);
    expect(upstream.headers).toMatchObject({ 'x-a': 'b' });
    for (const name of ['content-encoding', 'content-length', 'etag'])
      expect(upstream.headers).not.toHaveProperty(name);
  });

  it.each(['identity', 'x-own', 'constructor', 'gzip, br'])('by %s stays as it is', async (encoding) => {
    says(encoding, words);
    const { upstream } = await send();
    expect((await all(upstream)).equals(words)).toBe(true);
    expect(upstream.headers).toMatchObject({
      'content-encoding': encoding,
      'content-length': String(words.length),
      etag: '"a"',
    });
  });

  it.each([
    ['is damaged', (packed: Buffer) => Buffer.concat([packed.subarray(0, 20), Buffer.alloc(60, 0xff)])],
    ['is cut short', (packed: Buffer) => packed.subarray(0, -9)],
    ['is none', () => Buffer.from('plain words')],
  ])('that %s ends with an error', async (_, spoil) => {
    says('gzip', spoil(gzipSync(words)));
    const { error } = await outcome((await send()).upstream);
    expect(error).toMatchObject({
      code: 'upstream_cut',
      origin: 'upstream',
      cause: expect.any(Error) as Error,
    });
  });

  it('whose connection breaks ends with that error', async () => {
    const packed = gzipSync(words);
    answer = (response) => {
      response.writeHead(200, { 'content-encoding': 'gzip', 'content-length': packed.length });
      response.write(packed.subarray(0, 60), () => response.destroy());
    };
    const { error } = await outcome((await send()).upstream);
    expect(error).toMatchObject({
      message: 'The upstream closed the connection before the response was complete.',
    });
  });

  it('unpacks no faster than the client takes it, and then to its end', async () => {
    const zeros = 64 * 1024 * 1024;
    says('gzip', gzipSync(Buffer.alloc(zeros)));
    const { upstream, gate } = await send();
    let taken = 0;
    let pieces = 0;
    let isSlow = true;
    let isOver = false;
    upstream.bytes.subscribe({
      next({ length }) {
        taken += length;
        pieces += 1;
        if (isSlow) gate.close();
      },
      complete: () => (isOver = true),
    });
    for (let expected = 1; expected <= 5; expected += 1) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      await eventually(() => gate.closed);
      // oxlint-disable-next-line no-await-in-loop -- whatever would follow has its time
      await new Promise((resolve) => setTimeout(resolve, 20));
      expect(pieces).toBe(expected);
      isSlow = expected < 5;
      gate.open();
    }
    await eventually(() => isOver);
    expect(taken).toBe(zeros);
  });

  it('is let go of when the client leaves', async () => {
    answer = (response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' });
      response.write(gzipSync(words));
    };
    const { upstream } = await send();
    await new Promise<void>((resolve) => {
      const subscription = upstream.bytes.subscribe(() => {
        setImmediate(() => subscription.unsubscribe());
        resolve();
      });
    });
    await provider.requests[0]?.closed;
    expect(provider.requests).toHaveLength(1);
  });
});
