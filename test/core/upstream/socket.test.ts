import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { Subject } from 'rxjs';
import { afterEach, describe, expect, test } from 'vitest';
import type { WebSocket } from 'ws';
import type { Exchange } from '../../../core/call/exchange.ts';
import type { GatewayEvent } from '../../../core/model/event.ts';
import type { SocketMessage } from '../../../core/model/realtime.ts';
import type { Call } from '../../../core/sdk/call.ts';
import type { UpstreamSocketOptions } from '../../../core/upstream/socket.ts';
import { createUpstreamSockets } from '../../../core/upstream/sockets.ts';
import { testCall } from '../../support/call.ts';
import { eventually } from '../../support/eventually.ts';
import { startRealtimeUpstream, type RealtimeUpstream } from '../../support/realtime-upstream.ts';

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

interface Session {
  readonly call: Call;
  readonly exchange: Exchange;
  /** Messages of the client. */
  readonly input: Subject<SocketMessage>;
  /** Reads the socket; what came, and how it ended. */
  read(): Reading;
}
interface Reading {
  readonly messages: SocketMessage[];
  readonly ended: Promise<unknown>;
  stop(): void;
}

type Connecting = Promise<Session>;

/** Asks for a socket. The exchange is there at once, the session when the socket is open. */
function connect(
  url: string,
  options: Partial<UpstreamSocketOptions> = {},
): { readonly exchange: Exchange; readonly session: Connecting } {
  const channel = createUpstreamSockets({
    frame: 1e6,
    queue: 1e6,
    ping: 60_000,
    stalled: 60_000,
    compress: { clients: false, providers: false },
    connectTimeout: 5_000,
    ...options,
  });
  const { call, exchange } = testCall();
  const input = new Subject<SocketMessage>();
  exchange.input = input;
  closers.push(
    () => channel.close(),
    () => exchange.end(),
  );
  const session = channel
    .connect(call, { url: url.replace(/^http/, 'ws'), headers: {} })
    .then((events) => ({ call, exchange, input, read: () => reading(events) }));
  return { exchange, session };
}

function reading(events: { subscribe(observer: object): { unsubscribe(): void } }): Reading {
  const messages: SocketMessage[] = [];
  const { promise, resolve } = Promise.withResolvers<unknown>();
  const subscription = events.subscribe({
    next: (event: GatewayEvent) => {
      if (event.type === 'message') messages.push(event);
    },
    error: resolve,
    complete: () => resolve('complete'),
  });
  return { messages, ended: promise, stop: () => subscription.unsubscribe() };
}

async function sessions(
  script: Parameters<typeof startRealtimeUpstream>[0] = () => {},
  options: Parameters<typeof startRealtimeUpstream>[1] = {},
): Promise<RealtimeUpstream> {
  const provider = await startRealtimeUpstream(script, options);
  closers.push(() => provider.close());
  return provider;
}

/** A provider that answers handshakes by writing bytes, and does what a test says with the connection. */
async function raw(
  accepted: (socket: Socket, accept: string, request: IncomingMessage) => void,
): Promise<string> {
  const open = new Set<Socket>();
  const server = createServer();
  server.on('upgrade', (request, duplex) => {
    const socket = duplex as Socket;
    open.add(socket);
    // The sockets of Node's server stay half open.
    socket.on('error', () => {}).on('end', () => socket.destroy());
    const key = `${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
    const accept = createHash('sha1').update(key).digest('base64');
    accepted(
      socket,
      `HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: ${accept}\r\n\r\n`,
      request,
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(() => {
    for (const socket of open) socket.destroy();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const frame = (text: string): Buffer => Buffer.concat([Buffer.from([0x81, text.length]), Buffer.from(text)]);
const texts = (messages: readonly SocketMessage[]): string[] => messages.map(({ data }) => data.toString());
const failure = (session: Connecting): Promise<unknown> =>
  session.then(
    () => 'opened',
    (error: unknown) => error,
  );

describe('a handshake that the provider refuses', () => {
  const refusing = async (answer: (response: ServerResponse, request: IncomingMessage) => void) =>
    sessions(() => {}, {
      refuse: (request, response) => {
        answer(response, request);
        return true;
      },
    });
  const body = (message: string): string => JSON.stringify({ error: { message } });

  test.each([
    [400, {}, { code: 'invalid_request', status: 400, message: 'told' }],
    [
      401,
      {},
      {
        code: 'upstream_error',
        status: 502,
        message: 'The upstream refused the credentials of the channel.',
      },
    ],
    [
      429,
      { 'retry-after': '7' },
      { code: 'rate_limit_exceeded', status: 429, message: 'told', retryAfter: 7 },
    ],
    [500, {}, { code: 'server_is_overloaded', status: 503, message: 'told', retryAfter: undefined }],
    [502, { 'retry-after': '7' }, { code: 'server_is_overloaded', status: 503, retryAfter: undefined }],
    [503, { 'retry-after': '7' }, { code: 'server_is_overloaded', status: 503, retryAfter: 7 }],
    [504, { 'retry-after': '7' }, { code: 'server_is_overloaded', status: 503, retryAfter: 7 }],
  ])('with %i is told by its status and its words', async (status, headers, expected) => {
    const { url } = await refusing((response) => void response.writeHead(status, headers).end(body('told')));
    const error = await failure(connect(url).session);
    expect(error).toMatchObject({ ...expected, origin: 'upstream', cause: { status } });
  });

  test('by sending us elsewhere is told, and nobody is asked there', async () => {
    const elsewhere = await sessions();
    const { url } = await refusing(
      (response) => void response.writeHead(302, { location: elsewhere.url }).end(),
    );
    expect(await failure(connect(url).session)).toMatchObject({ origin: 'upstream' });
    expect(elsewhere.sessions).toEqual([]);
  });

  test('without an end is told by what has come, and its connection is closed', async () => {
    const closed = Promise.withResolvers<void>();
    const { url } = await refusing((response) => {
      response.on('close', () => closed.resolve());
      response.writeHead(429).write('too many, '.repeat(20_000));
    });
    expect(await failure(connect(url).session)).toMatchObject({ code: 'rate_limit_exceeded' });
    await closed.promise;
  });

  test('and then says nothing more is told all the same', async () => {
    const { url } = await refusing((response) => void response.writeHead(429).write('wait'));
    expect(await failure(connect(url).session)).toMatchObject({ message: 'wait', status: 429 });
  });

  test('with words that break off is told by what has come', async () => {
    const { url } = await refusing((response) => {
      response.writeHead(429, { 'content-length': '90' });
      response.write('slow down', () => response.destroy());
    });
    expect(await failure(connect(url).session)).toMatchObject({ message: 'slow down', status: 429 });
  });

  test('is nobody’s business once the client has left', async () => {
    const received = Promise.withResolvers<ServerResponse>();
    const { url } = await refusing((response) => received.resolve(response));
    const { exchange, session } = connect(url);
    const error = failure(session);
    const response = await received.promise;
    exchange.end();
    expect(await error).toMatchObject({ code: 'client_closed_request' });
    response.end(body('late'));
  });
});

describe('a provider that does not answer the handshake', () => {
  test('is given up in time', async () => {
    const url = await raw(() => {});
    expect(await failure(connect(url, { connectTimeout: 200 }).session)).toMatchObject({
      code: 'upstream_timeout',
      message: 'The upstream could not be reached in time.',
      origin: 'upstream',
      cause: expect.any(Error) as Error,
    });
  });

  test('or closes the connection could not be reached', async () => {
    const url = await raw((socket) => void socket.destroy());
    expect(await failure(connect(url).session)).toMatchObject({
      code: 'upstream_error',
      message: 'The upstream could not be reached.',
      origin: 'upstream',
      cause: expect.any(Error) as Error,
    });
  });

  test('is let go of when the client leaves, and is not asked by one that has left', async () => {
    const received = Promise.withResolvers<Socket>();
    const url = await raw((socket) => received.resolve(socket));
    const { exchange, session } = connect(url);
    const error = failure(session);
    const socket = await received.promise;
    const closed = new Promise((resolve) => socket.on('close', resolve).resume());
    exchange.end();
    expect(await error).toMatchObject({ code: 'client_closed_request' });
    await closed;
  });
});

describe('what the provider sends', () => {
  test('before anybody reads is kept, in its order, until somebody does', async () => {
    const url = await raw((socket, accept) => {
      socket.write(Buffer.concat([Buffer.from(accept), frame('one'), frame('two'), frame('three')]));
    });
    const session = await connect(url).session;
    await new Promise((resolve) => setTimeout(resolve, 50));
    const { messages } = session.read();
    await eventually(() => messages.length === 3);
    expect(texts(messages)).toEqual(['one', 'two', 'three']);
  });

  test('is not read while the client takes nothing, and read when it does', async () => {
    const provider = await sessions();
    const { call, read } = await connect(provider.url).session;
    call.gate.close();
    const { messages } = read();
    provider.sessions[0]?.send('early');
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(messages).toEqual([]);
    call.gate.open();
    await eventually(() => messages.length === 1);
    call.gate.close();
    provider.sessions[0]?.send('later');
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(messages).toHaveLength(1);
    call.gate.open();
    await eventually(() => messages.length === 2);
  });

  test('is text and bytes, each as it is', async () => {
    const provider = await sessions(({ socket }) => {
      socket.send('text', { binary: false });
      socket.send(Buffer.from([1, 2]), { binary: true });
    });
    const { messages } = (await connect(provider.url).session).read();
    await eventually(() => messages.length === 2);
    expect(messages).toMatchObject([
      { data: Buffer.from('text'), binary: false },
      { data: Buffer.from([1, 2]), binary: true },
    ]);
  });
});

describe('the end of a socket', () => {
  test.each<[string, (socket: WebSocket) => void, object]>([
    [
      'a close is passed on',
      (socket) => socket.close(4001, 'bye'),
      { close: 4001, data: Buffer.from('bye') },
    ],
    ['a close without a code is 1011', (socket) => socket.close(), { close: 1011, data: Buffer.from('') }],
    [
      'a reason is passed on without keys',
      (socket) => socket.close(1008, 'no key sk-abcdefgh12345678'),
      { close: 1008, data: Buffer.from('no key [key]') },
    ],
  ])('%s', async (_, end, last) => {
    const provider = await sessions();
    const { messages, ended } = (await connect(provider.url).session).read();
    const { socket } = provider.sessions[0] ?? {};
    if (socket !== undefined) end(socket);
    expect(await ended).toBe('complete');
    expect(messages).toMatchObject([{ ...last, binary: false }]);
  });

  test('a connection that breaks is an error', async () => {
    const provider = await sessions();
    const { messages, ended } = (await connect(provider.url).session).read();
    provider.sessions[0]?.socket.terminate();
    expect(await ended).toMatchObject({ code: 'upstream_cut', origin: 'upstream' });
    expect(messages).toEqual([]);
  });

  test('a message that is none is a close with the code for it', async () => {
    // A frame with a reserved bit, which nobody has asked for.
    const url = await raw((socket, accept) => {
      // It does not agree to the close that follows.
      socket.resume();
      socket.write(Buffer.concat([Buffer.from(accept), Buffer.from([0xc1, 0x01, 0x61])]));
    });
    const { messages, ended } = (await connect(url).session).read();
    expect(await ended).toBe('complete');
    expect(messages).toMatchObject([
      { close: 1002, data: Buffer.from('The upstream sent a message that cannot be forwarded.') },
    ]);
  });

  test('that comes before anybody reads is told to the one that does, behind what came before', async () => {
    const url = await raw((socket, accept) => {
      socket.end(
        Buffer.concat([Buffer.from(accept), frame('last words'), Buffer.from([0x88, 2, 0x0f, 0xa1])]),
      );
    });
    const session = await connect(url).session;
    await new Promise((resolve) => setTimeout(resolve, 50));
    const { messages, ended } = session.read();
    expect(await ended).toBe('complete');
    expect(messages).toMatchObject([{ data: Buffer.from('last words') }, { close: 4001 }]);
  });

  test('is a close of 1000 for the provider when nobody reads any more, or the call is over', async () => {
    const provider = await sessions();
    const reader = await connect(provider.url).session;
    reader.read().stop();
    expect(await provider.sessions[0]?.closed).toMatchObject({ code: 1000, reason: '' });
    const caller = await connect(provider.url).session;
    const { messages } = caller.read();
    caller.exchange.end();
    expect(await provider.sessions[1]?.closed).toMatchObject({ code: 1000 });
    expect(messages).toEqual([]);
  });

  test('does not depend on the provider, which may not agree to it', async () => {
    const closed = Promise.withResolvers<void>();
    const url = await raw((socket, accept) => {
      socket.on('close', () => closed.resolve()).resume();
      socket.write(accept);
    });
    const { messages, stop } = (await connect(url).session).read();
    stop();
    await closed.promise;
    expect(messages).toEqual([]);
  });
});

describe('what the client sends', () => {
  test('reaches the provider, and its close with code and reason, behind which nothing follows', async () => {
    const provider = await sessions();
    const { input, read } = await connect(provider.url).session;
    const { messages, ended } = read();
    input.next({ data: Buffer.from('text'), binary: false });
    input.next({ data: Buffer.from([1, 2]), binary: true });
    input.next({ data: Buffer.from('done'), binary: false, close: 4002 });
    input.next({ data: Buffer.from('too late'), binary: false });
    input.next({ data: Buffer.from('again'), binary: false, close: 4003 });
    const [seen] = provider.sessions;
    expect(await seen?.closed).toEqual({ code: 4002, reason: 'done' });
    expect(seen?.messages).toEqual([
      { data: Buffer.from('text'), binary: false },
      { data: Buffer.from([1, 2]), binary: true },
    ]);
    expect(await ended).toBe('complete');
    expect(messages).toMatchObject([{ close: 4002 }]);
  });

  test('is not listened to once nobody reads the answers', async () => {
    const provider = await sessions();
    const { input, read } = await connect(provider.url).session;
    expect(input.observed).toBe(false);
    const { stop } = read();
    expect(input.observed).toBe(true);
    stop();
    expect(input.observed).toBe(false);
  });

  test('goes out before a close, whose answer is read although the client takes nothing', async () => {
    const provider = await sessions();
    const { call, input, read } = await connect(provider.url).session;
    const { ended } = read();
    call.gate.close();
    input.next({ data: Buffer.from('last'), binary: false });
    input.next({ data: Buffer.from(''), binary: false, close: 1000 });
    expect(await provider.sessions[0]?.closed).toMatchObject({ code: 1000 });
    expect(texts(provider.sessions[0]?.messages ?? [])).toEqual(['last']);
    expect(await ended).toBe('complete');
  });
});

describe('a provider that is not there any more', () => {
  test('is asked by a ping after a silence, and given up after two that it does not answer', async () => {
    const pings: number[] = [];
    const provider = await sessions(({ socket }) => void socket.on('ping', () => pings.push(1)), {
      autoPong: false,
    });
    const { messages, ended } = (await connect(provider.url, { ping: 60 }).session).read();
    expect(await ended).toMatchObject({
      code: 'upstream_timeout',
      message: 'The upstream stopped responding.',
      origin: 'upstream',
    });
    expect(pings).toHaveLength(2);
    expect(messages).toEqual([]);
  });

  test('is there as long as it answers pings, sends pings of its own or sends anything', async () => {
    for (const sign of ['pong', 'ping', 'message'] as const) {
      let timer: NodeJS.Timeout | undefined;
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      const provider = await sessions(
        ({ socket }, message) => {
          if (message !== undefined || sign === 'pong') return;
          timer = setInterval(() => (sign === 'ping' ? socket.ping() : socket.send('here')), 20);
        },
        { autoPong: sign === 'pong' },
      );
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      const { call, exchange, read } = await connect(provider.url, { ping: 2_000 }).session;
      const { ended } = read();
      const end = await Promise.race([
        ended,
        new Promise((resolve) => setTimeout(() => resolve('still there'), 100)),
      ]);
      clearInterval(timer);
      expect([sign, end]).toEqual([sign, 'still there']);
      expect(call.gate.closed).toBe(false);
      exchange.end();
    }
  });

  test('that takes no message is given up, and the client is held back meanwhile', async () => {
    const url = await raw((socket, accept) => {
      socket.write(accept);
      socket.pause();
    });
    const { call, input, read } = await connect(url, { queue: 64 * 1024, stalled: 150 }).session;
    const { ended } = read();
    const piece = Buffer.alloc(1024 * 1024);
    while (!call.inputGate.closed) {
      input.next({ data: piece, binary: true });
      // oxlint-disable-next-line no-await-in-loop -- the socket takes what it can
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(await ended).toMatchObject({
      code: 'upstream_timeout',
      message: 'The upstream does not accept more messages.',
    });
    expect(call.inputGate.closed).toBe(false);
  });
});
