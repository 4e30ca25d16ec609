import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import type { Format, SocketRoute } from '../../../core/sdk/format.ts';
import { GatewayError } from '../../../core/sdk/errors.ts';
import { eventually } from '../../support/eventually.ts';
import { refusedSocket, SocketClient } from '../../support/websocket.ts';
import { Bare, requestText } from '../../flows/_socket.ts';
import { format, isDone, isError, route, startSockets } from './_sockets.ts';

const handshake = (path: string, headers: Readonly<Record<string, string>> = {}, method = 'GET'): string =>
  requestText(method, path, {
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
    ...headers,
  });

/** The status with which a request over a bare connection is answered. */
async function statusOf(url: string, text: string): Promise<number> {
  const bare = await Bare.to(url);
  bare.write(text);
  const answer = await bare.until(/\r\n\r\n/);
  bare.socket.destroy();
  return Number(answer.slice(9, 12));
}

const chatFormat: Format = { ...format, name: 'chat-completions' };

describe('a request for a WebSocket', () => {
  test.each([
    ['the path', '/speak', {}, 'GET', 101],
    ['the path with a slash behind it', '/speak/', {}, 'GET', 101],
    ['the path with a query', '/speak?a=b', {}, 'GET', 101],
    ['the path, with Upgrade in capitals', '/speak', { upgrade: 'WebSocket' }, 'GET', 101],
    ['the path, by another method', '/speak', {}, 'POST', 404],
    ['another path', '/other', {}, 'GET', 404],
    ['another path with a slash behind it', '/speakx/', {}, 'GET', 404],
    ['no more than a slash', '/', {}, 'GET', 404],
    ['the path, for another protocol', '/speak', { upgrade: 'h2c' }, 'GET', 404],
  ])('at %s', async (_what, path, headers, method, status) => {
    const { url } = await startSockets();
    expect(await statusOf(url, handshake(path, headers, method))).toBe(status);
  });

  test('that no path serves is refused in the format of its client where the server asks nobody', async () => {
    const { url, server } = await startSockets({}, undefined, {}, { formats: [chatFormat] });
    // As Node before 22.21 and 24.9 behaves.
    (server as unknown as { shouldUpgradeCallback: () => boolean }).shouldUpgradeCallback = () => true;
    const refusal = await refusedSocket(url.replace('/speak', '/other'));
    expect(refusal).toMatchObject({ status: 400, body: { error: 'invalid_request' } });
    expect(refusal.headers.connection).toBe('close');
    expect(await statusOf(url, handshake('/speak'))).toBe(101);
  });

  test('that no path serves ends without a word where no format is served that its client speaks', async () => {
    const { url, server } = await startSockets();
    (server as unknown as { shouldUpgradeCallback: () => boolean }).shouldUpgradeCallback = () => true;
    const bare = await Bare.to(url);
    bare.write(handshake('/other'));
    await bare.closed;
    expect(bare.text).toBe('');
  });

  test('that a defect refuses is a 500 without the reason, which the log has', async () => {
    const { url, lines } = await startSockets({}, () => {
      throw new Error('the secret reason');
    });
    expect(await refusedSocket(url)).toMatchObject({ status: 500, body: { error: 'internal_error' } });
    expect(lines).toMatchObject([
      { id: 'req_1', msg: 'a call failed inside the gateway', error: { message: 'the secret reason' } },
    ]);
  });

  test('whose refusal cannot be encoded ends without a word, and the log says why', async () => {
    const errorReply = (): never => {
      throw new Error('no words');
    };
    const { url, lines } = await startSockets(
      {},
      () => {
        throw new GatewayError('invalid_api_key', 'Unknown key.');
      },
      {},
      { formats: [{ ...format, errorReply }] },
    );
    const bare = await Bare.to(url);
    bare.write(handshake('/speak'));
    await bare.closed;
    expect(bare.text).toBe('');
    expect(lines).toMatchObject([
      { msg: 'failed to send an error response', error: { message: 'no words' } },
    ]);
  });

  test('of a route without a stream ends the start', async () => {
    const codec = { ...format.codecs.chat, encodeStream: undefined };
    const broken = { ...format, codecs: { chat: codec } } as unknown as Format;
    await expect(startSockets({}, undefined, {}, { formats: [broken] })).rejects.toThrow(
      'plain has a socket at /speak, but no stream for chat.',
    );
  });
});

describe('a connection of a gateway that ends', () => {
  test('is closed when its handshake was admitted just before', async () => {
    let stop = (): void => {};
    const { url, sockets } = await startSockets({}, () => stop());
    stop = () => sockets.drain();
    const client = await SocketClient.open(url);
    expect(await client.closed).toEqual({ code: 1001, reason: 'server_is_overloaded' });
  });

  test('to make room for another process is closed when it was silent, and not while a call runs or the client talks', async () => {
    const { url, sockets, called, pass } = await startSockets();
    const idle = await SocketClient.open(url);
    const busy = await SocketClient.open(url);
    const talking = await SocketClient.open(url);
    busy.send({ type: 'create' });
    const { reply } = await called(1);
    sockets.settle();
    pass(2_000);
    for (let round = 0; round < 20; round += 1) await nextTurn();
    for (const client of [busy, talking]) {
      client.send({ type: 'nonsense' });
      await client.until(isError);
    }
    expect([idle, busy, talking].map(({ socket }) => socket.readyState)).toEqual([1, 1, 1]);
    pass(2_000);
    expect(await idle.closed).toEqual({ code: 1001, reason: 'server_is_overloaded' });
    expect([busy, talking].map(({ socket }) => socket.readyState)).toEqual([1, 1]);
    reply.complete();
    await busy.until(isDone);
    pass(4_000);
    expect((await busy.closed).code).toBe(1001);
  });

  test('is left open while no other process takes over, however long it is silent', async () => {
    const { url, pass, called } = await startSockets({ keepAlive: 3_600_000, socket: 36_000_000 });
    const client = await SocketClient.open(url);
    pass(1_800_000);
    client.send({ type: 'create' });
    (await called(1)).reply.complete();
    await client.until(isDone);
    expect(client.socket.readyState).toBe(1);
  });

  test('is cut when the client has not agreed to the close for five seconds, and not before', async () => {
    const { url, sockets, pass } = await startSockets();
    const bare = await Bare.to(url);
    bare.write(handshake('/speak'));
    await bare.until(/\r\n\r\n/);
    sockets.drain();
    const code = '\u0003\u00e9';
    await eventually(() => bare.text.includes(code), 2);
    sockets.tick(performance.now() + 4_000);
    expect(await statusOf(url, handshake('/other'))).toBe(404);
    expect(bare.socket.closed).toBe(false);
    pass(6_000);
    await bare.closed;
    expect(bare.text.endsWith('server_is_overloaded')).toBe(true);
  });
});

describe('a key that is refused', () => {
  test.each([
    ['by the gateway, closes the connection: no later call would be let in', 'client', true],
    ['by the provider, is the error of its call alone', 'upstream', false],
  ] as const)('%s', async (_what, origin, closes) => {
    const { url, called } = await startSockets();
    const client = await SocketClient.open(url);
    client.send({ type: 'create' });
    const { reply } = await called(1);
    reply.error(new GatewayError('invalid_api_key', 'No.', { status: 401, origin }));
    await client.until(isError);
    client.send({ type: 'nonsense' });
    await (closes ? client.closed : client.until(isError, 2));
    expect(client.messages.filter(isError)).toHaveLength(closes ? 1 : 2);
  });
});

describe('a client that sends calls ahead', () => {
  test('is read again when the gateway ends, so that it can cancel the call that runs', async () => {
    const { url, called, sockets, server } = await startSockets();
    let connection: Socket | undefined;
    server.once('connection', (socket: Socket) => (connection = socket));
    const client = await SocketClient.open(url);
    const padding = 'x'.repeat(1024 * 1024);
    client.send({ type: 'create', model: 'first' });
    const first = await called(1);
    for (let call = 0; call < 50; call += 1) client.send({ type: 'create', model: `${call}`, padding });
    // As much waits as may, so that the rest is not read.
    const most = 15 * padding.length;
    await expect
      .poll(() => (connection?.bytesRead ?? 0) > most && connection?.isPaused(), { interval: 20 })
      .toBe(true);
    expect(client.socket.bufferedAmount).toBeGreaterThan(0);
    sockets.drain();
    client.send({ type: 'cancel' });
    expect((await client.closed).code).toBe(1001);
    expect(first.ended).toBe(true);
    // Each call that waited or came later is refused, and the one that ran is cancelled.
    expect(client.messages.filter(isError)).toHaveLength(51);
  });

  test('is read no further beyond the bytes that may wait: none is refused, and all are served in turn', async () => {
    const { url, called, calls } = await startSockets();
    const client = await SocketClient.open(url);
    // Sixteen MiB may wait, which are fewer calls than the sixty-four of which the next is refused.
    const padding = 'x'.repeat(1024 * 1024);
    const count = 80;
    client.send({ type: 'create', model: 'first' });
    await called(1);
    for (let call = 0; call < count; call += 1) client.send({ type: 'create', model: `${call}`, padding });
    const other = await SocketClient.open(url);
    other.send({ type: 'nonsense' });
    await other.until(isError);
    for (let call = 1; call <= count + 1; call += 1) (await called(call)).reply.complete();
    await client.until(isDone, count + 1);
    expect(calls.map(({ name }) => name)).toEqual([
      'first',
      ...Array.from({ length: count }, (_, at) => `${at}`),
    ]);
    expect(client.messages.filter(isError)).toEqual([]);
  });
});

describe('what goes wrong inside the gateway', () => {
  test('with one message is told as such, the log has it, and the connection stays', async () => {
    const failing: SocketRoute = {
      ...route,
      read(message) {
        if (message.type === 'defect') throw new Error('the secret reason');
        return route.read(message);
      },
    };
    const { url, lines, called } = await startSockets(
      {},
      undefined,
      {},
      { formats: [{ ...format, sockets: [failing] }] },
    );
    const client = await SocketClient.open(url);
    client.send({ type: 'defect' });
    expect(await client.until(isError)).toMatchObject([{ code: 'internal_error', status: 500 }]);
    expect(lines).toMatchObject([
      { msg: 'a message failed inside the gateway', error: { message: 'the secret reason' } },
    ]);
    client.send({ type: 'wrong' });
    client.send({ type: 'create', model: 'wrong' });
    await client.until(isError, 3);
    expect(lines).toHaveLength(1);
    client.send({ type: 'create' });
    (await called(1)).reply.complete();
    await client.until(isDone);
  });

  test('with one call: a whole reply, where the client can only have a stream', async () => {
    const { url, called, lines } = await startSockets();
    const client = await SocketClient.open(url);
    client.send({ type: 'create' });
    const { reply } = await called(1);
    reply.next({ type: 'bytes', bytes: Buffer.from('{}') });
    expect(await client.until(isError)).toMatchObject([{ code: 'internal_error' }]);
    expect(lines).toMatchObject([{ msg: 'a call failed inside the gateway' }]);
  });

  test('with the pipeline of a client that has left is in the log, and its provider is let go of', async () => {
    let answer = (): void => {};
    const waits = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const { url, calls, lines } = await startSockets({}, undefined, {}, { before: () => waits });
    const client = await SocketClient.open(url);
    client.send({ type: 'create' });
    const other = await SocketClient.open(url);
    other.send({ type: 'nonsense' });
    await other.until(isError);
    client.vanish();
    await client.closed;
    answer();
    await eventually(() => calls.length === 1 && calls[0]?.ended === true, 2);
    expect(lines).toEqual([]);
  });

  test.each([
    ['a defect is in the log', new Error('nobody is there'), ['work at the end of a call failed']],
    ['a refusal is no news', new GatewayError('upstream_cut', 'It broke.'), []],
  ])('after the client has left: %s', async (_what, error, logged) => {
    const waits = Promise.withResolvers<void>();
    const { url, lines, sockets } = await startSockets({}, undefined, {}, { before: () => waits.promise });
    const client = await SocketClient.open(url);
    client.send({ type: 'create' });
    const other = await SocketClient.open(url);
    other.send({ type: 'nonsense' });
    await other.until(isError);
    sockets.endAll(new GatewayError('server_is_overloaded', 'The gateway is shutting down.'));
    await client.closed;
    waits.reject(error);
    await nextTurn();
    expect(lines.map(({ msg }) => msg)).toEqual(logged);
  });
});
