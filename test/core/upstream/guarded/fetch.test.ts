import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { createServer as createSocketServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, test } from 'vitest';
import { GatewayError } from '../../../../core/sdk/errors.ts';
import { fetchSchema, type FetchSettings } from '../../../../core/settings/fetch.ts';
import type { GuardedParts } from '../../../../core/upstream/guarded/connection.ts';
import { createGuardedFetch } from '../../../../core/upstream/guarded/fetch.ts';
import {
  createFetchMedia,
  forgetMedia,
  type FetchMedia,
  type Media,
  type MediaRequirements,
} from '../../../../core/upstream/guarded/media.ts';
import type { CallKey } from '../../../../core/sdk/call-key.ts';
import { certificate } from '../_certificate.ts';

const at = 'messages[0].content[1].image_url.url';
const nothingFetched = `${at}: the file at this URL could not be fetched.`;
const png = Buffer.concat([Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'), Buffer.alloc(200, 7)]);

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

/** Resolves when a connection has ended, however it did. */
function ended(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    if (socket.destroyed) resolve();
    else socket.once('close', () => resolve());
  });
}

function listen(server: Server, host: string): Promise<number> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
  });
  closers.push(async () => {
    const closed = once(server, 'close');
    server.close();
    for (const socket of sockets) socket.destroy();
    await closed;
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, host, () => resolve((server.address() as AddressInfo).port));
  });
}

interface Seen {
  readonly port: number;
  readonly url: string;
  readonly requests: IncomingMessage[];
}

/** A web server that remembers what it was asked. */
async function serve(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  host = '127.0.0.1',
): Promise<Seen> {
  const requests: IncomingMessage[] = [];
  const port = await listen(
    createServer((request, response) => {
      response.on('error', () => {});
      requests.push(request);
      answer(request, response);
    }),
    host,
  );
  return { port, url: `http://${host}:${port}/file`, requests };
}

/** A server that writes these bytes, and whatever `then` does. */
async function serveRaw(
  text: string,
  then: (socket: Socket) => void = (socket) => socket.end(),
): Promise<string> {
  const port = await listen(
    createSocketServer((socket) => {
      socket.once('data', () => {
        socket.write(text, 'latin1');
        then(socket);
      });
    }),
    '127.0.0.1',
  );
  return `http://127.0.0.1:${port}/file`;
}

const asPng = (response: ServerResponse): void =>
  void response.writeHead(200, { 'content-type': 'image/png' }).end(png);

/** As much of a call as a fetch needs, and its end. */
function callOf(): Parameters<FetchMedia>[0] & { end(): void; readonly waiting: number } {
  const jobs = new Set<() => void>();
  const values = new Map<CallKey<unknown>, unknown>();
  let over = false;
  return {
    onEnd(job) {
      if (over) job();
      else jobs.add(job);
      return () => void jobs.delete(job);
    },
    get: <T>(key: CallKey<T>) => values.get(key) as T | undefined,
    set: (key, value) => void values.set(key, value),
    end() {
      over = true;
      for (const job of jobs) job();
    },
    get waiting() {
      return jobs.size;
    },
  };
}

/** Fetches as the gateway does; 127.0.0.1 is open unless a test says otherwise. */
function fetcher(given: Partial<FetchSettings> = {}, parts: GuardedParts = {}): FetchMedia {
  const settings = fetchSchema.parse({ allow: ['127.0.0.1/32'], timeout: 5000, ...given });
  return createFetchMedia(settings, createGuardedFetch(settings, parts));
}

const image: MediaRequirements = { kinds: ['image'], at };

function fetchImage(
  url: string,
  given: Partial<FetchSettings> = {},
  parts: GuardedParts = {},
): Promise<Media> {
  return fetcher(given, parts)(callOf(), url, image);
}

async function refusal(fetching: Promise<unknown>): Promise<GatewayError> {
  const error: unknown = await fetching.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(GatewayError);
  return error as GatewayError;
}

/** Name servers of a test: each question takes the next answer, the last one again and again. */
function names(answers: Readonly<Record<string, readonly (readonly string[])[]>>): GuardedParts & {
  readonly resolved: string[];
} {
  const resolved: string[] = [];
  return {
    resolved,
    resolve(name) {
      const given = answers[name] ?? [];
      const index = resolved.filter((one) => one === name).length;
      resolved.push(name);
      return { addresses: Promise.resolve(given[Math.min(index, given.length - 1)] ?? []), cancel: () => {} };
    },
  };
}

describe('what is fetched', () => {
  test('a picture comes byte for byte, with the type that its bytes show', async () => {
    const server = await serve((_request, response) => asPng(response));
    const { bytes, mimeType } = await fetchImage(server.url);
    expect(bytes.equals(png)).toBe(true);
    expect(mimeType).toBe('image/png');
  });

  test('the server is told nothing of the caller', async () => {
    const server = await serve((_request, response) => asPng(response));
    await fetchImage(`${server.url}?a=b#fragment`);
    const [request] = server.requests;
    expect(request?.method).toBe('GET');
    expect(request?.url).toBe('/file?a=b');
    expect(request?.headers).toEqual({
      host: `127.0.0.1:${server.port}`,
      accept: '*/*',
      'accept-encoding': 'identity',
      'user-agent': 'sluice',
      connection: 'close',
    });
  });

  test('a cookie is not carried from one hop to the next', async () => {
    const server = await serve((request, response) => {
      if (request.url === '/file')
        response.writeHead(302, { location: '/next', 'set-cookie': 'id=1; Path=/' }).end();
      else asPng(response);
    });
    await fetchImage(server.url);
    expect(server.requests.map(({ url }) => url)).toEqual(['/file', '/next']);
    expect(server.requests[1]?.headers.cookie).toBeUndefined();
  });

  test('nothing is left behind: no listener of the call, no connection', async () => {
    const server = await serve((_request, response) => asPng(response));
    const call = callOf();
    await fetcher()(call, server.url, image);
    expect(call.waiting).toBe(0);
    const [request] = server.requests;
    expect(request).toBeDefined();
    if (request !== undefined) await ended(request.socket);
  });

  test('one call fetches a file once, and another call anew', async () => {
    const server = await serve((_request, response) => asPng(response));
    const fetchMedia = fetcher();
    const call = callOf();
    const [one, two] = await Promise.all([
      fetchMedia(call, server.url, image),
      fetchMedia(call, server.url, image),
    ]);
    expect(one).toBe(two);
    expect(server.requests).toHaveLength(1);
    forgetMedia(call);
    await fetchMedia(call, server.url, image);
    expect(server.requests).toHaveLength(2);
    await fetchMedia(callOf(), server.url, image);
    expect(server.requests).toHaveLength(3);
  });

  test('over TLS the server is asked by its name, and must prove it', async () => {
    const hosts: unknown[] = [];
    const server = createTlsServer(certificate, (request, response) => {
      hosts.push(request.headers.host, Reflect.get(request.socket, 'servername'));
      asPng(response);
    });
    const port = await listen(server, '127.0.0.1');
    const known = {
      authority: certificate.cert,
      ...names({ 'files.test': [['127.0.0.1']], 'other.test': [['127.0.0.1']] }),
    };
    await fetchImage(`https://files.test:${port}/a.png`, {}, known);
    expect(hosts).toEqual([`files.test:${port}`, 'files.test']);
    const { message } = await refusal(fetchImage(`https://other.test:${port}/a.png`, {}, known));
    expect(message).toBe(nothingFetched);
    const unknown = names({ 'files.test': [['127.0.0.1']] });
    expect((await refusal(fetchImage(`https://files.test:${port}/a.png`, {}, unknown))).message).toBe(
      nothingFetched,
    );
    expect(hosts).toHaveLength(2);
  });
});

describe('private space', () => {
  test('is not connected to, and is told as if nothing were there', async () => {
    const server = await serve((_request, response) => asPng(response));
    const closedPort = new URL(server.url);
    closedPort.port = '1';
    const refusals = await Promise.all([
      refusal(fetchImage(server.url, { allow: [] })),
      refusal(fetchImage(`http://localhost:${server.port}/file`, { allow: [] })),
      refusal(fetchImage(`http://[::ffff:127.0.0.1]:${server.port}/file`, { allow: [] })),
      refusal(fetchImage(`http://2130706433:${server.port}/file`, { allow: [] })),
      refusal(fetchImage('http://nowhere.test/', {}, names({}))),
      refusal(fetchImage('http://inside.test/', {}, names({ 'inside.test': [['10.0.0.7']] }))),
      refusal(fetchImage('http://127.0.0.1:9/')),
    ]);
    expect(server.requests).toHaveLength(0);
    for (const { message, code, status, param } of refusals)
      expect({ message, code, status, param }).toEqual({
        message: nothingFetched,
        code: 'invalid_value',
        status: 400,
        param: at,
      });
  });

  test('a port where nobody listens is told the same', async () => {
    const server = await serve((_request, response) => asPng(response));
    for (const close of closers.splice(0)) await close();
    expect((await refusal(fetchImage(server.url))).message).toBe(nothingFetched);
  });

  test('a name is resolved once, and what it resolves to later is not connected to', async () => {
    const open = await serve((_request, response) => asPng(response));
    let intrusions = 0;
    const inside = createServer(() => (intrusions += 1));
    // The same port on the address that the name moves to.
    await new Promise<void>((resolve) => inside.listen(open.port, '127.0.0.2', resolve));
    inside.on('connection', () => (intrusions += 1));
    closers.push(async () => {
      inside.closeAllConnections();
      inside.close();
      await once(inside, 'close');
    });
    const rebinding = names({ 'rebind.test': [['127.0.0.1'], ['127.0.0.2']] });
    const fetchMedia = fetcher({}, rebinding);
    const url = `http://rebind.test:${open.port}/file`;
    const { mimeType } = await fetchMedia(callOf(), url, image);
    expect(mimeType).toBe('image/png');
    expect(rebinding.resolved).toEqual(['rebind.test']);
    expect(open.requests[0]?.headers.host).toBe(`rebind.test:${open.port}`);
    expect((await refusal(fetchMedia(callOf(), url, image))).message).toBe(nothingFetched);
    expect(rebinding.resolved).toEqual(['rebind.test', 'rebind.test']);
    expect(intrusions).toBe(0);
  });

  test('a name with one private address among public ones is not connected to at all', async () => {
    const server = await serve((_request, response) => asPng(response));
    for (const hidden of ['10.0.0.7', '::1', '::ffff:169.254.169.254', 'fe80::1', '127.0.0.2']) {
      const both = names({ 'both.test': [['127.0.0.1', hidden]] });
      expect((await refusal(fetchImage(`http://both.test:${server.port}/`, {}, both))).message).toBe(
        nothingFetched,
      );
    }
    expect(server.requests).toHaveLength(0);
  });

  test.each([
    'http://127.0.0.2/',
    'http://10.0.0.1/',
    'http://169.254.169.254/latest/meta-data/',
    'http://[::1]/',
    'http://0x7f000002/',
    '//127.0.0.2/',
    'http://inside.test/',
    'http://localhost/',
    'http://user:secret@127.0.0.1/',
    'file:///etc/passwd',
    'gopher://127.0.0.1/',
    'data:image/png;base64,iVBORw0KGgo=',
    'http://',
    '',
  ])('a redirect to %j is not followed', async (location) => {
    const server = await serve((_request, response) => response.writeHead(302, { location }).end());
    const { message } = await refusal(
      fetchImage(server.url, {}, names({ 'inside.test': [['192.168.1.1']] })),
    );
    expect(message).toBe(nothingFetched);
    expect(server.requests).toHaveLength(1);
  });

  test('a name that has moved between two hops is checked again', async () => {
    const server = await serve((_request, response) => response.writeHead(307, { location: '/again' }).end());
    const moving = names({ 'moving.test': [['127.0.0.1'], ['127.0.0.2']] });
    const { message } = await refusal(fetchImage(`http://moving.test:${server.port}/`, {}, moving));
    expect(message).toBe(nothingFetched);
    expect(moving.resolved).toHaveLength(2);
    expect(server.requests).toHaveLength(1);
  });

  test('no redirect leads from https to http', async () => {
    const plain = await serve((_request, response) => asPng(response));
    const secure = createTlsServer(certificate, (_request, response) => {
      response.writeHead(302, { location: plain.url }).end();
    });
    const port = await listen(secure, '127.0.0.1');
    const parts = { authority: certificate.cert, ...names({ 'files.test': [['127.0.0.1']] }) };
    expect((await refusal(fetchImage(`https://files.test:${port}/`, {}, parts))).message).toBe(
      nothingFetched,
    );
    expect(plain.requests).toHaveLength(0);
  });

  test('redirects end: as many are followed as the settings say', async () => {
    const server = await serve((request, response) => {
      const step = Number(request.url?.slice(1) || 0);
      if (step === 3) asPng(response);
      else response.writeHead(301, { location: `/${step + 1}` }).end();
    });
    const start = `http://127.0.0.1:${server.port}/0`;
    expect((await fetchImage(start, { redirects: 3 })).mimeType).toBe('image/png');
    expect((await refusal(fetchImage(start, { redirects: 2 }))).message).toBe(nothingFetched);
    const loop = await serve((_request, response) => response.writeHead(308, { location: '/' }).end());
    expect((await refusal(fetchImage(loop.url))).message).toBe(nothingFetched);
    expect(loop.requests).toHaveLength(4);
  });
});

describe('servers that misbehave', () => {
  test('a redirect whose page never ends is let go of', async () => {
    const server = await serve((request, response) => {
      if (request.url === '/next') asPng(response);
      else response.writeHead(302, { location: '/next' }).write('This page has moved');
    });
    expect((await fetchImage(server.url)).mimeType).toBe('image/png');
    const [request] = server.requests;
    expect(request).toBeDefined();
    if (request !== undefined) await ended(request.socket);
  });

  test('a file that announces too much is not read', async () => {
    const server = await serve((_request, response) => {
      response.writeHead(200, { 'content-type': 'image/png', 'content-length': '5000' });
      response.write(png);
    });
    const { message, code } = await refusal(fetchImage(server.url, { size: 2000 }));
    expect(message).toBe(`${at}: the file is larger than 2000 bytes.`);
    expect(code).toBe('invalid_value');
  });

  test('an endless file is cut off at the limit', async () => {
    let written = 0;
    const server = await serve((_request, response) => {
      response.writeHead(200, { 'content-type': 'image/png' });
      response.write(png);
      const flood = (): void => {
        while (!response.destroyed && response.write(Buffer.alloc(64 * 1024))) written += 64 * 1024;
      };
      response.on('drain', flood);
      flood();
    });
    const { message } = await refusal(fetchImage(server.url, { size: 500_000 }));
    expect(message).toBe(`${at}: the file is larger than 500000 bytes.`);
    const [request] = server.requests;
    if (request !== undefined) await ended(request.socket);
    // What lies in the buffers of both sockets was written as well.
    expect(written).toBeLessThan(64 * 1024 * 1024);
  });

  test('a length that promises more than comes is a file that was cut', async () => {
    const url = await serveRaw(
      `HTTP/1.1 200 OK\r\ncontent-type: image/png\r\ncontent-length: 900\r\n\r\n${png.toString('latin1')}`,
    );
    expect((await refusal(fetchImage(url))).message).toBe(`${at}: the file ended before it was complete.`);
  });

  test('a length that promises less than comes ends the file there', async () => {
    const url = await serveRaw(
      `HTTP/1.1 200 OK\r\ncontent-type: image/png\r\ncontent-length: 100\r\n\r\n${png.toString('latin1')}`,
    );
    expect((await fetchImage(url)).bytes).toHaveLength(100);
  });

  test.each([
    ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello'],
    [
      'a length and chunks',
      'HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
    ['a header without an end', `HTTP/1.1 200 OK\r\nx: ${'a'.repeat(20_000)}\r\n\r\n`],
    ['no HTTP', 'SSH-2.0-OpenSSH_9.9\r\n'],
    ['nothing', ''],
    [
      'another protocol',
      'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\nhello',
    ],
  ])('an answer with %s is none', async (_name, text) => {
    expect((await refusal(fetchImage(await serveRaw(text)))).message).toBe(nothingFetched);
  });

  test('a server that never answers is given up, in the words for one that is not there', async () => {
    const url = await serveRaw('', () => {});
    expect((await refusal(fetchImage(url, { timeout: 150 }))).message).toBe(nothingFetched);
  });

  test('news without end that an answer will come do not keep it alive', async () => {
    const url = await serveRaw('', (socket) => {
      const timer = setInterval(() => socket.write('HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'), 10);
      socket.on('close', () => clearInterval(timer));
    });
    expect((await refusal(fetchImage(url, { timeout: 200 }))).message).toBe(nothingFetched);
  });

  test('a file that trickles is given up when its time is over', async () => {
    let closed: Promise<unknown> = Promise.resolve();
    const url = await serveRaw(
      'HTTP/1.1 200 OK\r\ncontent-type: image/png\r\n\r\n\x89PNG\r\n\x1a\n',
      (socket) => {
        closed = ended(socket);
        const timer = setInterval(() => socket.write('a'), 10);
        socket.on('close', () => clearInterval(timer));
      },
    );
    const { message } = await refusal(fetchImage(url, { timeout: 250 }));
    expect(message).toBe(`${at}: the file did not arrive within 250 ms.`);
    await closed;
  });

  test('a name server that never answers is given up too', async () => {
    let cancelled = 0;
    const silent = {
      resolve: () => ({ addresses: new Promise<never>(() => {}), cancel: () => void (cancelled += 1) }),
    };
    expect((await refusal(fetchImage('http://slow.test/', { timeout: 120 }, silent))).message).toBe(
      nothingFetched,
    );
    expect(cancelled).toBe(1);
  });

  test('a name that nobody has is told as all the others', async () => {
    const { message } = await refusal(fetchImage('http://nobody.invalid/a.png', { timeout: 2000 }));
    expect(message).toBe(nothingFetched);
  });

  test('the time is for all hops together', async () => {
    const server = await serve((request, response) => {
      setTimeout(() => response.writeHead(302, { location: `${request.url}x` }).end(), 120);
    });
    expect((await refusal(fetchImage(server.url, { timeout: 300, redirects: 10 }))).message).toBe(
      nothingFetched,
    );
    expect(server.requests.length).toBeLessThan(5);
  });

  test('a compressed file is not unpacked', async () => {
    const bomb = gzipSync(Buffer.concat([png, Buffer.alloc(64 * 1024 * 1024)]));
    const server = await serve((_request, response) => {
      response.writeHead(200, { 'content-type': 'image/png', 'content-encoding': 'gzip' }).end(bomb);
    });
    const { message } = await refusal(fetchImage(server.url));
    expect(message).toBe(`${at}: the file came compressed, which was not asked for.`);
  });

  test.each([204, 206, 300, 304, 401, 403, 404, 407, 500, 503])('status %i is told', async (status) => {
    const server = await serve((_request, response) =>
      response.writeHead(status, { 'content-type': 'image/png' }).end(),
    );
    expect((await refusal(fetchImage(server.url))).message).toBe(
      `${at}: the server of this URL answered ${status}.`,
    );
  });
});

describe('the type of a file', () => {
  const jpeg = Buffer.from('ffd8ffe000104a464946', 'hex');
  const pdf = Buffer.from('%PDF-1.7\n…');
  const wav = Buffer.concat([Buffer.from('RIFF\0\0\0\0WAVEfmt ', 'latin1'), Buffer.alloc(50)]);
  const mp4 = Buffer.from('\0\0\0\x18ftypisom\0\0\0\0isommp42', 'latin1');
  const html = Buffer.from('<!doctype html><p>Please log in.');
  const zip = Buffer.from('PK\x03\x04rest', 'latin1');
  const docx = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document';

  const fetchAs = async (
    kinds: MediaRequirements['kinds'],
    bytes: Buffer,
    type: string | undefined,
  ): Promise<string> => {
    const server = await serve((_request, response) => {
      response.writeHead(200, type === undefined ? {} : { 'content-type': type }).end(bytes);
    });
    return (await fetcher()(callOf(), server.url, { kinds, at })).mimeType;
  };

  test.each<[MediaRequirements['kinds'][number], string, Buffer, string | undefined, string]>([
    ['image', 'jpeg called png', jpeg, 'image/png', 'image/jpeg'],
    ['image', 'png called a stream', png, 'application/octet-stream', 'image/png'],
    ['image', 'png without a type', png, undefined, 'image/png'],
    ['image', 'png with parameters', png, 'IMAGE/PNG ; charset=binary', 'image/png'],
    ['audio', 'wav', wav, 'audio/x-wav', 'audio/wav'],
    ['audio', 'sound in mp4', mp4, 'audio/mp4', 'audio/mp4'],
    ['video', 'mp4', mp4, 'video/mp4', 'video/mp4'],
    ['file', 'pdf', pdf, 'application/pdf', 'application/pdf'],
    ['file', 'csv', Buffer.from('a,b\n1,ü\n'), 'text/csv; charset=utf-8', 'text/csv'],
    ['file', 'json', Buffer.from('{}'), 'application/ld+json', 'application/ld+json'],
    ['file', 'text without a type', Buffer.from('hello'), undefined, 'text/plain'],
    ['file', 'docx', zip, docx, docx],
    ['file', 'png', png, 'image/png', 'image/png'],
  ])('%s: %s is taken', async (kind, _name, bytes, type, shown) => {
    expect(await fetchAs([kind], bytes, type)).toBe(shown);
  });

  test.each<[MediaRequirements['kinds'][number], string, Buffer, string | undefined]>([
    ['image', 'a page', html, 'text/html'],
    ['image', 'a page called png', html, 'image/png'],
    ['image', 'a picture called a page', png, 'text/html'],
    ['image', 'svg', Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>'), 'image/svg+xml'],
    ['image', 'pdf', pdf, 'application/pdf'],
    ['image', 'nothing', Buffer.alloc(0), 'image/png'],
    ['image', 'json', Buffer.from('{"secret":1}'), 'application/json'],
    ['audio', 'a picture', png, 'image/png'],
    ['audio', 'a picture called a sound', png, 'audio/wav'],
    ['audio', 'a film', Buffer.from('\0\0\x01\xba', 'latin1'), 'video/mpeg'],
    ['video', 'a sound', wav, 'audio/wav'],
    ['file', 'a program', Buffer.from('\x7fELF\x02\x01\x01\0', 'latin1'), 'application/octet-stream'],
    ['file', 'an archive', zip, 'application/zip'],
    ['file', 'text that is none', Buffer.from([0x61, 0xff, 0xfe, 0x62]), 'text/plain'],
    ['file', 'pdf called a page', pdf, 'text/html'],
  ])('%s: %s is refused', async (kind, _name, bytes, type) => {
    const { code, status, param } = await refusal(fetchAs([kind], bytes, type));
    expect({ code, status, param }).toEqual({ code: 'unsupported_content', status: 400, param: at });
  });

  test('is told by as many bytes as it takes, also where they come one by one', async () => {
    let finish: (() => void) | undefined;
    const server = await serve((_request, response) => {
      response.writeHead(200, { 'content-type': 'image/png' });
      response.write(png.subarray(0, 3));
      finish = (): void => void response.end(png.subarray(3));
    });
    const fetching = fetchImage(server.url, { timeout: 60_000 });
    await expect.poll(() => finish !== undefined).toBe(true);
    // The first bytes are read before the others come.
    await new Promise((resolve) => setTimeout(resolve, 50));
    finish?.();
    expect((await fetching).mimeType).toBe('image/png');
  });

  test('a page is refused before it has arrived', async () => {
    const server = await serve((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/html' });
      response.write(Buffer.concat([html, Buffer.alloc(8192, 0x20)]));
    });
    const { message } = await refusal(fetchImage(server.url, { timeout: 60_000 }));
    expect(message).toBe(`${at}: the file at this URL is not an image.`);
  });
});

describe('limits of a call and of the gateway', () => {
  test('the end of the call ends the fetch and closes its connection', async () => {
    let closed: Promise<unknown> = Promise.resolve();
    const server = await serve((request, response) => {
      closed = ended(request.socket);
      response.writeHead(200, { 'content-type': 'image/png' });
      response.write(png);
    });
    const call = callOf();
    const fetching = refusal(fetcher({ timeout: 60_000 })(call, server.url, image));
    await expect.poll(() => server.requests.length).toBe(1);
    call.end();
    expect((await fetching).code).toBe('client_closed_request');
    await closed;
  });

  test('a try that is given up takes no file from the one that runs beside it', async () => {
    const held: ServerResponse[] = [];
    const server = await serve((_request, response) => void held.push(response));
    const call = callOf();
    const other = callOf();
    // Two tries of one call know the same things, and end by themselves.
    const beside = { ...other, get: call.get, set: call.set };
    const fetchMedia = fetcher({ timeout: 60_000 });
    const first = refusal(fetchMedia(call, server.url, image));
    const second = fetchMedia(beside, server.url, image);
    await expect.poll(() => held.length).toBe(1);
    call.end();
    expect((await first).code).toBe('client_closed_request');
    await expect.poll(() => held.length).toBe(2);
    const response = held[1];
    if (response !== undefined) asPng(response);
    expect((await second).bytes.equals(png)).toBe(true);
  });

  test('a call that ends while a connection is being made leaves none', async () => {
    const call = callOf();
    let onResolve: (() => void) | undefined;
    const resolving = new Promise<void>((resolve) => (onResolve = resolve));
    const silent = {
      resolve: () => {
        onResolve?.();
        return { addresses: new Promise<never>(() => {}), cancel: () => {} };
      },
    };
    const fetching = refusal(fetcher({ timeout: 60_000 }, silent)(call, 'http://slow.test/', image));
    await resolving;
    call.end();
    expect((await fetching).code).toBe('client_closed_request');
  });

  test('a call fetches so many files and no more', async () => {
    const server = await serve((_request, response) => asPng(response));
    const fetchMedia = fetcher({ most: 2 });
    const call = callOf();
    await fetchMedia(call, `${server.url}1`, image);
    await fetchMedia(call, `${server.url}2`, image);
    const { message, status } = await refusal(fetchMedia(call, `${server.url}3`, image));
    expect(message).toBe(`${at}: a request can have at most 2 files by URL.`);
    expect(status).toBe(400);
    expect(server.requests).toHaveLength(2);
  });

  test('the files of a call are limited together, announced or not', async () => {
    const big = Buffer.concat([png, Buffer.alloc(1000)]);
    for (const announce of [true, false]) {
      const server = await serve((_request, response) => {
        response.writeHead(200, {
          'content-type': 'image/png',
          ...(announce ? { 'content-length': String(big.length) } : { 'transfer-encoding': 'chunked' }),
        });
        response.end(big);
      });
      const fetchMedia = fetcher({ total: 2000 });
      const call = callOf();
      await fetchMedia(call, `${server.url}1`, image);
      const { message } = await refusal(fetchMedia(call, `${server.url}2`, image));
      expect(message).toBe(`${at}: with this file, those of the request are too large together.`);
    }
  });

  test('a fetch that failed takes no room from the next one', async () => {
    let cut = true;
    const server = await serve((_request, response) => {
      if (!cut) return asPng(response);
      response.writeHead(200, { 'content-type': 'image/png', 'content-length': '1500' });
      response.write(Buffer.concat([png, Buffer.alloc(1000)]), () => response.destroy());
    });
    const fetchMedia = fetcher({ total: 1600 });
    const call = callOf();
    expect((await refusal(fetchMedia(call, server.url, image))).message).toBe(
      `${at}: the file ended before it was complete.`,
    );
    cut = false;
    expect((await fetchMedia(call, server.url, image)).bytes).toHaveLength(png.length);
    expect((await fetchMedia(call, `${server.url}2`, image)).bytes).toHaveLength(png.length);
  });

  test('all calls together fetch so many at a time; the others wait, and are told when it takes too long', async () => {
    let open = 0;
    let most = 0;
    const held: ServerResponse[] = [];
    const server = await serve((_request, response) => {
      open += 1;
      most = Math.max(most, open);
      response.on('close', () => (open -= 1));
      held.push(response);
    });
    const fetchMedia = fetcher({ concurrency: 2, timeout: 60_000 });
    const fetches = [1, 2, 3, 4, 5].map((number) => fetchMedia(callOf(), `${server.url}${number}`, image));
    await expect.poll(() => held.length).toBe(2);
    for (let answered = 0; answered < 5; answered += 1) {
      await expect.poll(() => held.length).toBeGreaterThan(0);
      const response = held.shift();
      if (response !== undefined) asPng(response);
      await Promise.race(fetches);
    }
    await Promise.all(fetches);
    expect(most).toBe(2);

    const hasty = fetcher({ concurrency: 1, timeout: 200 });
    const slow = [1, 2].map((number) => refusal(hasty(callOf(), `${server.url}${number}`, image)));
    const { code, status } = await refusal(hasty(callOf(), `${server.url}3`, image));
    expect({ code, status }).toEqual({ code: 'server_is_overloaded', status: 503 });
    // The second may still have had its turn.
    const [first] = await Promise.all(slow);
    expect(first?.message).toBe(nothingFetched);
  });

  test('a call that leaves while it waits takes no place', async () => {
    const held: ServerResponse[] = [];
    const server = await serve((_request, response) => void held.push(response));
    const fetchMedia = fetcher({ concurrency: 1, timeout: 60_000 });
    const first = fetchMedia(callOf(), server.url, image);
    await expect.poll(() => held.length).toBe(1);
    const leaving = callOf();
    const second = refusal(fetchMedia(leaving, `${server.url}2`, image));
    const third = fetchMedia(callOf(), `${server.url}3`, image);
    leaving.end();
    expect((await second).code).toBe('client_closed_request');
    for (const fetching of [first, third]) {
      await expect.poll(() => held.length).toBe(1);
      const response = held.shift();
      if (response !== undefined) asPng(response);
      await fetching;
    }
    expect(server.requests.map(({ url }) => url)).toEqual(['/file', '/file3']);
  });

  test('nothing is fetched where the operator switched it off', async () => {
    const server = await serve((_request, response) => asPng(response));
    const { code, status } = await refusal(fetchImage(server.url, { enabled: false }));
    expect({ code, status }).toEqual({ code: 'unsupported_content', status: 400 });
    expect(server.requests).toHaveLength(0);
  });
});
