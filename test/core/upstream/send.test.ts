import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import type { Upstream } from '../../../core/sdk/channel.ts';
import { GatewayError } from '../../../core/sdk/errors.ts';
import { createHttpClient, type HttpClientOptions } from '../../../core/upstream/send.ts';
import { type HttpClient } from '../../../core/sdk/http.ts';
import { all, outcome } from '../../support/answer.ts';
import { testCall } from '../../support/call.ts';
import { startUpstream, type ScriptedUpstream } from '../../support/upstream.ts';
import { eventually } from '../../support/eventually.ts';

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

function client(options: Partial<HttpClientOptions> = {}): HttpClient {
  const http = createHttpClient({ connectTimeout: 2000, idleTimeout: 5000, ...options });
  closers.push(() => http.close());
  return http;
}

async function upstream(script: Parameters<typeof startUpstream>[0]): Promise<ScriptedUpstream> {
  const started = await startUpstream(script);
  closers.push(() => started.close());
  return started;
}

/** A provider that is nothing but sockets; gives its address, and every connection to the script. */
async function sockets(script: (socket: Socket, count: number) => void): Promise<string> {
  const open = new Set<Socket>();
  let count = 0;
  const server: Server = createServer((socket) => {
    open.add(socket);
    socket.on('close', () => open.delete(socket));
    socket.on('error', () => {});
    count += 1;
    script(socket, count);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(() => {
    for (const socket of open) socket.destroy();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Calls back with the number of each request that begins on a connection. */
function onRequest(socket: Socket, begun: (count: number) => void): void {
  let count = 0;
  socket.on('data', (chunk) => {
    if (/^(POST|GET) /.test(chunk.toString('latin1', 0, 5))) begun((count += 1));
  });
}

function call(): ReturnType<typeof testCall> {
  const made = testCall();
  closers.push(() => made.exchange.end());
  return made;
}

const send = (http: HttpClient, url: string, body: Buffer | string = '{}') =>
  http.send(call().call, { url, headers: {}, body });

/** Reads an answer and waits until its connection may carry the next request. */
async function carried(reply: Promise<Upstream>): Promise<void> {
  await all(await reply);
  await new Promise((resolve) => setTimeout(resolve, 20));
}

const failure = async (promise: Promise<unknown>): Promise<GatewayError> => {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof GatewayError)) throw new Error('It did not fail as it should.', { cause: error });
  return error;
};

const answer = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}';

describe('the operator’s headers', () => {
  it('stand over those of the channel, whatever their case', async () => {
    const provider = await upstream((_, response) => void response.end('{}'));
    const http = client({
      headers: { set: { 'X-Team': 'blue', AUTHORIZATION: 'Bearer other' }, remove: ['User-Agent', 'X-Gone'] },
    });
    const headers = { authorization: 'Bearer mine', 'user-agent': 'sluice/1', 'x-kept': 'yes' };
    await all(await http.send(call().call, { url: `${provider.url}/v1/x`, headers, body: '{}' }));
    const [seen] = provider.requests;
    expect(seen?.headers).toMatchObject({
      'x-team': 'blue',
      authorization: 'Bearer other',
      'x-kept': 'yes',
    });
    expect(seen?.headers).not.toHaveProperty('user-agent');
  });
});

describe('a connection that was kept open', () => {
  it('is said to be stale when it is closed before anything was heard of the request', async () => {
    const url = await sockets((socket) => {
      onRequest(socket, (count) => {
        if (count === 1) socket.write(answer);
        else socket.destroy();
      });
    });
    const http = client();
    await carried(send(http, `${url}/first`));
    const error = await failure(send(http, `${url}/second`));
    expect(error).toMatchObject({ code: 'upstream_error', origin: 'upstream', staleConnection: true });
    expect(error.details).toBeUndefined();
    // Another connection may serve it.
    await all(await send(http, `${url}/third`));
  });

  it('leads to a new one for the call that met it, also where others are as stale', async () => {
    const ports = new Set<number | undefined>();
    const url = await sockets((socket) => {
      onRequest(socket, (count) => {
        if (count > 1) socket.destroy();
        else {
          ports.add(socket.remotePort);
          setTimeout(() => socket.write(answer), 50);
        }
      });
    });
    const http = client();
    // Three connections are kept.
    await Promise.all([1, 2, 3].map(() => carried(send(http, url))));
    expect(ports.size).toBe(3);
    const { call: meeting } = call();
    const again = () => http.send(meeting, { url, headers: {}, body: '{}' });
    expect((await failure(again())).staleConnection).toBe(true);
    expect((await all(await again())).toString()).toBe('{}');
    expect(ports.size).toBe(4);
  });

  it('is not, when it is the first request of the connection that fails', async () => {
    const url = await sockets((socket) => onRequest(socket, () => socket.destroy()));
    const http = client();
    expect((await failure(send(http, url))).staleConnection).toBe(false);
    expect((await failure(send(http, url))).staleConnection).toBe(false);
  });

  it.each([
    ['half a status line', 'HTTP/1.1 2'],
    ['an answer that stops in the middle', 'HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{'],
  ])('is not, once %s was heard', async (_, beginning) => {
    const url = await sockets((socket) => {
      onRequest(socket, (count) => {
        if (count === 1) socket.write(answer);
        else socket.end(beginning);
      });
    });
    const http = client();
    await carried(send(http, url));
    const error = await failure(send(http, url).then((reply) => all(reply)));
    expect(error.origin).toBe('upstream');
    expect(error.staleConnection).toBe(false);
  });

  it('is not, when the provider had time to work on the request', async () => {
    const url = await sockets((socket) => {
      onRequest(socket, (count) => {
        if (count === 1) socket.write(answer);
        else setTimeout(() => socket.destroy(), 2200);
      });
    });
    const http = client();
    await carried(send(http, url));
    const error = await failure(send(http, url));
    expect(error).toMatchObject({ code: 'upstream_error', staleConnection: false });
  });

  it('is not, when nobody waits any more', async () => {
    const url = await sockets((socket) => {
      onRequest(socket, (count) => {
        if (count === 1) socket.write(answer);
      });
    });
    const http = client();
    await carried(send(http, url));
    const second = call();
    const sent = failure(http.send(second.call, { url, headers: {}, body: '{}' }));
    setImmediate(() => second.exchange.end());
    expect(await sent).toMatchObject({ code: 'client_closed_request', staleConnection: false });
  });
});

describe('a large body', () => {
  const large = Buffer.alloc(6 * 1024 * 1024, 'x');

  it.each([
    ['bytes', large],
    ['a text', large.toString()],
  ])('of %s arrives whole, with its length', async (_, body) => {
    const provider = await upstream((_request, response) => void response.end('{}'));
    await all(await send(client(), provider.url, body));
    const [seen] = provider.requests;
    expect(seen?.body.equals(large)).toBe(true);
    expect(seen?.headers['content-length']).toBe(String(large.length));
    expect(seen?.headers).not.toHaveProperty('transfer-encoding');
  });

  it('may take longer to arrive than a provider may be silent', async () => {
    const larger = Buffer.alloc(32 * 1024 * 1024, 'x');
    let received = 0;
    const url = await sockets((socket) => {
      // About 5 MB a second; what the system holds for the socket is a few of them.
      socket.on('data', (chunk) => {
        received += chunk.length;
        socket.pause();
        setTimeout(() => socket.resume(), Math.ceil(chunk.length / 5000));
        if (received > larger.length) socket.write(answer);
      });
    });
    const began = performance.now();
    const reply = await all(await send(client({ idleTimeout: 5000 }), url, larger));
    expect(reply.toString()).toBe('{}');
    // Else the test shows nothing.
    expect(performance.now() - began).toBeGreaterThan(6000);
  });

  it('that the provider does not take is given up in time', async () => {
    const url = await sockets((socket) => void socket.pause());
    const error = await failure(send(client({ idleTimeout: 500 }), url, Buffer.alloc(32 * 1024 * 1024)));
    expect(error).toMatchObject({ code: 'upstream_timeout', status: 504 });
  });

  it('stops when the client leaves', async () => {
    const ended = Promise.withResolvers<void>();
    let received = 0;
    let reading: (() => void) | undefined;
    const url = await sockets((socket) => {
      socket.on('data', (chunk) => {
        received += chunk.length;
        socket.pause();
      });
      socket.on('close', () => ended.resolve());
      reading = () => void socket.on('data', () => socket.resume()).resume();
    });
    const leaving = call();
    const sent = failure(
      client().send(leaving.call, { url, headers: {}, body: Buffer.alloc(64 * 1024 * 1024) }),
    );
    await eventually(() => expect(received).toBeGreaterThan(0));
    leaving.exchange.end();
    expect((await sent).code).toBe('client_closed_request');
    reading?.();
    await ended.promise;
    expect(received).toBeLessThan(64 * 1024 * 1024);
  });
});

describe('what is told of a provider that cannot be read', () => {
  it('names no address', async () => {
    const error = await failure(send(client(), 'http://127.0.0.1:9/secret-path'));
    expect(error).toMatchObject({ code: 'upstream_error', status: 502, origin: 'upstream' });
    expect(error.message).not.toMatch(/127|:9|secret/);
  });

  it('is a cut when the answer had begun', async () => {
    const url = await sockets((socket) =>
      socket.on('data', () => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{"a"')),
    );
    const { bytes, error } = await outcome(await send(client(), url));
    expect(bytes.toString()).toBe('{"a"');
    expect(error).toMatchObject({ code: 'upstream_cut', origin: 'upstream' });
  });
});

describe('the chunks of an answer', () => {
  const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;
  const head = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n';
  const words = Array.from({ length: 50 }, (_, index) => `word ${index} `);

  /** Returns the forwarded pieces of a response whose rest arrives in one piece after the first chunk, and the error at its end. */
  async function handedOn(rest: string): Promise<{ pieces: string[]; error?: unknown }> {
    const provider = Promise.withResolvers<Socket>();
    const url = await sockets((socket) => {
      onRequest(socket, () => {
        provider.resolve(socket);
        socket.write(head + chunk('first '));
      });
    });
    const { bytes } = await send(client(), url);
    const pieces: string[] = [];
    const ended = Promise.withResolvers<{ error?: unknown }>();
    bytes.subscribe({
      next: (piece) => {
        pieces.push(piece.toString());
        if (pieces.length === 1) void provider.promise.then((socket) => socket.end(rest));
      },
      error: (error: unknown) => ended.resolve({ error }),
      complete: () => ended.resolve({}),
    });
    return { pieces, ...(await ended.promise) };
  }

  it('that come at once are handed on as one', async () => {
    const { pieces, error } = await handedOn(`${words.map(chunk).join('')}0\r\n\r\n`);
    expect(error).toBeUndefined();
    expect(pieces).toEqual(['first ', words.join('')]);
  });

  it('are all handed on before the news that the connection broke', async () => {
    const { pieces, error } = await handedOn(words.map(chunk).join(''));
    expect(pieces.join('')).toBe(`first ${words.join('')}`);
    expect(error).toMatchObject({ code: 'upstream_cut' });
  });
});
