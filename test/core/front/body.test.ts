import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, request as send, type IncomingMessage } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { brotliCompressSync, createGzip, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { GatewayError } from '../../../core/sdk/errors.ts';
import { checkJsonType, readBytes } from '../../../core/front/body.ts';
import { parseJsonBody, withoutMark } from '../../../core/front/json-body.ts';
import { tries } from '../../support/tries.ts';
import { anyCharacter } from '../../support/characters.ts';

const limits = { body: 1024 * 1024, depth: 16, values: 1000, members: 200 };
const seed = 20_261_120;

function codeOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    return error instanceof GatewayError ? `${error.status} ${error.code}` : String(error);
  }
  return 'accepted';
}

describe('the JSON of a body', () => {
  const parse = (text: string | Buffer) => () => parseJsonBody(Buffer.from(text), limits);

  test.each([
    ['nothing', ''],
    ['white space', ' \n'],
    ['words', 'hello'],
    ['a cut object', '{"a":'],
    ['a cut string', '{"a":"'],
    ['a comma too many', '{"a":1,}'],
    ['two objects', '{}{}'],
    ['single quotes', "{'a':1}"],
    ['NaN', '{"a":NaN}'],
    ['a bare control character', '{"a":"\n"}'],
    ['more closed than opened', '{}]}]'],
    ['a broken escape', '{"a":"\\u12"}'],
    ['a backslash at the end', '{"a":"\\'],
  ])('%s is told to be no JSON', (_name, text) => {
    expect(codeOf(parse(text))).toBe('400 invalid_json');
  });

  test.each(['[]', '[{}]', '"text"', '1', 'null', 'true'])('%s is told to be no object', (text) => {
    expect(codeOf(parse(text))).toBe('400 invalid_type');
  });

  test.each([
    ['a lone continuation byte', [0x80]],
    ['an overlong slash', [0xc0, 0xaf]],
    ['a surrogate half', [0xed, 0xa0, 0x80]],
    ['a cut emoji', [0xf0, 0x9f, 0x98]],
    ['Latin-1', [0xfc]],
  ])('%s is told to be broken UTF-8', (_name, bytes) => {
    const body = Buffer.concat([Buffer.from('{"a":"'), Buffer.from(bytes), Buffer.from('"}')]);
    expect(() => parseJsonBody(body, limits)).toThrow('The body is not valid UTF-8.');
  });

  test('a byte-order mark is passed over', () => {
    expect(withoutMark(Buffer.from('\ufeff{"a":"ü"}')).toString()).toBe('{"a":"ü"}');
    expect(withoutMark(Buffer.from('{"a":"ü"}')).toString()).toBe('{"a":"ü"}');
    expect(withoutMark(Buffer.from('\ufeff'))).toHaveLength(0);
  });

  test('nesting up to the limit is accepted, beyond it refused, arrays and objects alike', () => {
    const arrays = (depth: number) => `{"a":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`;
    const objects = (depth: number) => `${'{"a":'.repeat(depth - 1)}{}${'}'.repeat(depth - 1)}`;
    for (const make of [arrays, objects]) {
      expect(codeOf(parse(make(limits.depth)))).toBe('accepted');
      expect(codeOf(parse(make(limits.depth + 1)))).toBe('400 invalid_value');
    }
    expect(codeOf(parse('['.repeat(1_000_000)))).toBe('400 invalid_value');
  });

  test('brackets inside strings count for nothing', () => {
    const text = JSON.stringify({ a: '[{'.repeat(5000), '\\"[[[[[[[[[[[[[[[[[[[[': '\\', b: '\\\\"[,,,' });
    expect(codeOf(parse(text))).toBe('accepted');
  });

  test('more values than the limit are refused before they are built', () => {
    expect(codeOf(parse(JSON.stringify({ a: Array(990).fill(0) })))).toBe('accepted');
    expect(codeOf(parse(JSON.stringify({ a: Array(1010).fill(0) })))).toBe('400 invalid_value');
    expect(codeOf(parse(`{"a":[${'{},'.repeat(600)}{}]}`))).toBe('400 invalid_value');
  });

  test('whatever comes, it is what JSON.parse says or a 400', () => {
    const text = fc.oneof(
      fc.json({ maxDepth: 6 }),
      fc
        .json({ maxDepth: 6 })
        .chain((json) => fc.integer({ min: 0, max: json.length }).map((at) => json.slice(0, at))),
      fc.string({ unit: anyCharacter }),
    );
    fc.assert(
      fc.property(text, (json) => {
        let expected: unknown;
        try {
          expected = JSON.parse(json);
        } catch {
          expected = undefined;
        }
        const isObject = typeof expected === 'object' && expected !== null && !Array.isArray(expected);
        const code = codeOf(() => expect(parseJsonBody(Buffer.from(json), limits)).toEqual(expected));
        expect(code).toMatch(isObject ? /accepted|invalid_value/ : /400/);
      }),
      { seed, numRuns: tries(2000) },
    );
  });
});

describe('the bytes of a body over a socket', () => {
  const read = async (request: IncomingMessage): Promise<string> => {
    try {
      checkJsonType(request);
      return `read ${(await readBytes(request, limits.body)).toString()}`;
    } catch (error) {
      return error instanceof GatewayError
        ? `${error.status} ${error.code}: ${error.message}`
        : `raw ${String(error)}`;
    }
  };
  const outcomes: string[] = [];
  const server = createServer((request, response) => {
    void (async () => {
      const outcome = await read(request);
      outcomes.push(outcome);
      response.end(outcome);
      request.resume();
    })();
  });
  let port = 0;
  beforeAll(async () => {
    await promisify((done: () => void) => server.listen(0, '127.0.0.1', done))();
    port = (server.address() as AddressInfo).port;
  });
  afterAll(() => server.close());

  const post = async (
    body: Buffer | string,
    headers: Record<string, string | string[]> = {},
  ): Promise<string> => {
    const request = send({ port, host: '127.0.0.1', method: 'POST', headers });
    request.on('error', () => {});
    request.end(body);
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(chunk as Buffer);
    return Buffer.concat(chunks).toString();
  };

  const json = '{"text":"grüße 😀"}';

  test.each(['with its length announced', 'without'])(
    'of a large body are what was sent, %s',
    async (how) => {
      const large = randomBytes(400_000).toString('hex');
      const headers = how === 'without' ? { 'transfer-encoding': 'chunked' } : { 'content-length': '800000' };
      expect(await post(large, headers)).toBe(`read ${large}`);
    },
  );

  test.each([
    ['gzip', gzipSync],
    ['x-gzip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
    ['zstd', zstdCompressSync],
    [' GZip ', gzipSync],
    ['identity', (bytes: Buffer) => bytes],
  ] as const)('is undone from %s', async (encoding, compress) => {
    expect(await post(compress(Buffer.from(json)), { 'content-encoding': encoding })).toBe(`read ${json}`);
  });

  test.each(['compress', 'gzip, gzip', 'x-unknown', 'constructor', '__proto__'])(
    'in the unknown coding %s is refused',
    async (encoding) => {
      expect(await post(json, { 'content-encoding': encoding })).toMatch(/^415 unsupported_media_type/);
    },
  );

  test.each([
    ['gzip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
    ['zstd', zstdCompressSync],
  ] as const)('in damaged or cut %s is refused', async (encoding, compress) => {
    const whole = compress(Buffer.from(json.repeat(100)));
    const headers = { 'content-encoding': encoding };
    expect(await post(whole.subarray(0, whole.length - 8), headers)).toMatch(/^400 invalid_request/);
    expect(await post('this is not compressed at all', headers)).toMatch(/^400 invalid_request/);
    expect(await post('', headers)).toMatch(/^(400|read $)/);
  });

  test('that grows beyond the limit when it is decompressed is refused, in bounded memory', async () => {
    const mega = Buffer.alloc(1024 * 1024);
    // Not made of one piece: this process is the one whose memory is measured.
    const bomb = await buffer(Readable.from(Array<Buffer>(512).fill(mega)).pipe(createGzip()));
    const before = process.memoryUsage().rss;
    expect(await post(bomb, { 'content-encoding': 'gzip' })).toMatch(/^413 request_too_large/);
    const grown = (process.memoryUsage().rss - before) / 1024 / 1024;
    console.log(
      `512 MiB in ${(bomb.length / 1024).toFixed(0)} KiB of gzip: refused, RSS ${grown.toFixed(1)} MiB more`,
    );
    expect(grown).toBeLessThan(256);
  });

  test('that is announced or turns out too large is refused', async () => {
    expect(await post(Buffer.alloc(limits.body + 1, 0x20))).toMatch(/^413 request_too_large/);
    expect(await post(Buffer.alloc(limits.body + 1, 0x20), { 'transfer-encoding': 'chunked' })).toMatch(
      /^413/,
    );
    expect(await post(Buffer.alloc(limits.body, 0x20))).toMatch(/^read /);
  });

  test.each([
    'application/json',
    'application/json; charset=utf-8',
    'Application/JSON;charset=UTF-8',
    'application/vnd.api+json',
    '',
  ])('may be called %s', async (type) => {
    expect(await post(json, { 'content-type': type })).toBe(`read ${json}`);
  });

  test.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/jsonp',
    'json',
    'text/application/json',
    'application/json, text/html',
    'application/json+x',
  ])('called %s is refused', async (type) => {
    expect(await post(json, { 'content-type': type })).toMatch(/^415 unsupported_media_type/);
  });

  test.each([
    ['plain', '{"a":'],
    ['compressed', gzipSync('{"a":1}').subarray(0, 12)],
  ])(
    'that stops in the middle because the client left (%s) is no fault of the gateway',
    async (kind, part) => {
      outcomes.length = 0;
      const socket = connect(port, '127.0.0.1');
      await once(socket, 'connect');
      const coding = kind === 'plain' ? '' : 'content-encoding: gzip\r\n';
      socket.write(`POST / HTTP/1.1\r\nhost: x\r\n${coding}content-length: 100\r\n\r\n`);
      socket.write(part);
      await new Promise((resolve) => setTimeout(resolve, 50));
      socket.destroy();
      await expect.poll(() => outcomes.length).toBe(1);
      expect(outcomes[0]).toMatch(/^499 client_closed_request/);
    },
  );
});

test('pieces that share their memory with others leave it as it is', async () => {
  const memory = new ArrayBuffer(256 * 1024);
  const all = Buffer.from(memory).fill('a');
  const pieces = [all.subarray(0, 64 * 1024), all.subarray(64 * 1024, 128 * 1024)];
  const request = Object.assign(Readable.from(pieces), { headers: { 'content-length': String(128 * 1024) } });
  const read = await readBytes(request as unknown as IncomingMessage, 1024 * 1024);
  expect(read.equals(Buffer.alloc(128 * 1024, 'a'))).toBe(true);
  expect([all.length, all.at(-1)]).toEqual([256 * 1024, 'a'.charCodeAt(0)]);
});

test('more fields at the top than the limit are refused before they are parsed, and so many one level down are not', () => {
  const fields = (count: number): string =>
    Array.from({ length: count }, (_, index) => `"f${index}":1`).join(',');
  const parse = (body: string): unknown => parseJsonBody(Buffer.from(body), limits);
  expect(() => parse(`{${fields(201)}}`)).toThrow('The body has more than 200 fields.');
  expect(parse(`{${fields(200)}}`)).toBeTypeOf('object');
  expect(parse(`{"metadata":{${fields(300)}}}`)).toBeTypeOf('object');
});
