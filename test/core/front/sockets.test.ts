import { once } from 'node:events';
import { request as send, type IncomingMessage } from 'node:http';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { callKey } from '../../../core/sdk/call-key.ts';
import { connection } from '../../../core/sdk/connection.ts';
import { GatewayError } from '../../../core/sdk/errors.ts';
import type { GatewayEvent } from '../../../core/model/event.ts';
import { refusedSocket, SocketClient } from '../../support/websocket.ts';
import { tries } from '../../support/tries.ts';
import { isDone, isError, startSockets } from './_sockets.ts';

describe('lanes', () => {
  test('calls of one lane run one after the other, lanes side by side', async () => {
    const { url, called, calls } = await startSockets();
    const client = await SocketClient.open(url);
    client.send({ type: 'create', model: 'first', lane: 'a' });
    client.send({ type: 'create', model: 'second', lane: 'a' });
    client.send({ type: 'create', model: 'other', lane: 'b' });
    await called(2);
    expect(calls.map(({ name }) => name)).toEqual(['first', 'other']);
    calls[1]?.sendText('from b');
    calls[0]?.sendText('from a');
    calls[0]?.reply.complete();
    const second = await called(3);
    expect(second.name).toBe('second');
    second.reply.complete();
    await client.until(isDone, 2);
    expect(client.messages).toEqual([
      { type: 'text', text: 'from b', lane: 'b' },
      { type: 'text', text: 'from a', lane: 'a' },
      { type: 'done', lane: 'a' },
      { type: 'done', lane: 'a' },
    ]);
  });

  test('the seventeenth lane and the sixty-fifth call that waits are refused, and the rest goes on', async () => {
    const { url, called, calls } = await startSockets();
    const client = await SocketClient.open(url);
    for (let lane = 0; lane < 17; lane += 1) client.send({ type: 'create', lane: String(lane) });
    expect(await client.until(isError)).toEqual([
      { type: 'error', code: 'rate_limit_exceeded', status: 429, lane: '16', begun: false },
    ]);
    for (let call = 0; call < 65; call += 1) client.send({ type: 'create', lane: '3' });
    await client.until(isError, 2);
    expect(client.messages.at(-1)).toMatchObject({ code: 'rate_limit_exceeded', lane: '3' });
    await called(16);
    for (let count = 0; count < 80; count += 1) (await called(count + 1)).reply.complete();
    await client.until(isDone, 80);
    expect(calls).toHaveLength(80);
    client.send({ type: 'create', lane: 'fresh' });
    (await called(81)).reply.complete();
    await client.until(isDone, 81);
  });

  test('a cancelled call ends at once, is let go of, and makes room for the next of its lane', async () => {
    const { url, called } = await startSockets();
    const client = await SocketClient.open(url);
    client.send({ type: 'create', model: 'long' });
    client.send({ type: 'create', model: 'next' });
    const long = await called(1);
    long.sendText('begun');
    client.send({ type: 'cancel' });
    const next = await called(2);
    expect(long.ended).toBe(true);
    expect(long.call.signal.aborted).toBe(true);
    next.reply.complete();
    await client.until(isDone);
    expect(client.messages.map(({ type, code }) => code ?? type)).toEqual([
      'text',
      'client_closed_request',
      'done',
    ]);
    client.send({ type: 'cancel', lane: 'idle' });
    expect((await client.until(({ code }) => code === 'not_found'))[0]).toMatchObject({ lane: 'idle' });
  });
});

describe('what goes wrong in one call', () => {
  test('a refusal has its status, a reply that breaks its error event, and the connection stays', async () => {
    const { url, called } = await startSockets();
    const client = await SocketClient.open(url);
    client.send({ type: 'create', model: 'wrong' });
    await client.until(isError);
    client.send({ type: 'create' });
    const broken = await called(1);
    broken.sendText('half');
    broken.reply.error(new GatewayError('upstream_cut', 'It broke.'));
    await client.until(isError, 2);
    client.send({ type: 'create' });
    const odd = await called(2);
    odd.sendText('unsayable');
    expect(odd.ended).toBe(true);
    await client.until(isError, 3);
    expect(client.messages).toEqual([
      { type: 'error', code: 'invalid_value', status: 400, lane: '', begun: false },
      { type: 'text', text: 'half', lane: '' },
      { type: 'error', code: 'upstream_cut', status: 502, lane: '', begun: true },
      { type: 'error', code: 'internal_error', status: 500, lane: '', begun: false },
    ]);
    client.send({ type: 'create' });
    (await called(3)).reply.complete();
    await client.until(isDone);
  });

  test('frames that pass through come as one message each, without the end of the byte stream', async () => {
    const { url, called } = await startSockets();
    const client = await SocketClient.open(url);
    client.send({ type: 'create', lane: 'x' });
    const { reply } = await called(1);
    // What happened before the first byte is for the log.
    reply.next({ type: 'attempt' } as GatewayEvent);
    reply.next({ type: 'request' } as GatewayEvent);
    reply.next({ type: 'answer', status: 200, headers: {} });
    const bytes = Buffer.from(
      ': ping\n\nevent: a\ndata: {"type":"one"}\n\ndata: {"type":\ndata: "two"}\n\ndata: [DONE]\n\n',
    );
    reply.next({ type: 'frames', format: 'plain', bytes });
    reply.next({ type: 'usage', usage: { input: 1 } } as GatewayEvent);
    reply.complete();
    await client.until(({ type }) => type === 'two');
    expect(client.messages).toEqual([
      { type: 'one', lane: 'x' },
      { type: 'two', lane: 'x' },
    ]);
  });

  test('no message, however odd, ends the connection or goes without an answer', async () => {
    const { url } = await startSockets();
    const client = await SocketClient.open(url);
    let answers = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          fc.string({ maxLength: 200 }),
          fc.json(),
          fc.uint8Array({ maxLength: 200 }),
          fc.constant('['.repeat(5000)),
        ),
        async (message) => {
          client.socket.send(message);
          answers += 1;
          await client.until(isError, answers);
        },
      ),
      { numRuns: tries(200) },
    );
    expect(client.messages).toHaveLength(answers);
    expect(client.socket.readyState).toBe(client.socket.OPEN);
  });
});

describe('who opens a connection', () => {
  test('is asked before it opens, and refused like any request', async () => {
    const { url } = await startSockets({}, () => {
      throw new GatewayError('invalid_api_key', 'Unknown key.');
    });
    const refusal = await refusedSocket(url);
    expect(refusal).toMatchObject({ status: 401, body: { error: 'invalid_api_key' } });
    expect(refusal.headers).toMatchObject({ 'content-type': 'application/json', connection: 'close' });
  });

  test('is asked again with each call, with all that the first request said', async () => {
    const seen: unknown[] = [];
    let open = true;
    const { url, called } = await startSockets({}, ({ wire }) => {
      seen.push([wire.method, wire.path, wire.query.get('key'), wire.headers.authorization]);
      wire.headers.authorization = undefined;
      wire.query.delete('key');
      if (!open) throw new GatewayError('invalid_api_key', 'Unknown key.');
    });
    const client = await SocketClient.open(`${url}?key=k`, { headers: { authorization: 'Bearer secret' } });
    client.send({ type: 'create' });
    (await called(1)).reply.complete();
    await client.until(isDone);
    open = false;
    client.send({ type: 'create' });
    expect(await client.until(isError)).toMatchObject([{ code: 'invalid_api_key', status: 401 }]);
    expect(seen).toEqual([
      ['GET', '/speak', 'k', 'Bearer secret'],
      ['WS', '/speak', 'k', 'Bearer secret'],
      ['WS', '/speak', 'k', 'Bearer secret'],
    ]);
  });

  test('gets the subprotocol that the format knows, and never one that holds a key', async () => {
    const { url } = await startSockets();
    const client = await SocketClient.open(url, {}, ['key.secret', 'plain']);
    expect(client.socket.protocol).toBe('plain');
    await expect(SocketClient.open(url, {}, ['key.secret'])).rejects.toThrow(/subprotocol/);
  });

  test('is told in the format what is wrong with its handshake, and served as usual when it wants another protocol', async () => {
    const { url } = await startSockets();
    const upgrade = async (headers: Record<string, string>): Promise<unknown> => {
      const request = send(url, { headers: { connection: 'Upgrade', ...headers } }).end();
      const [response] = (await once(request, 'response')) as [IncomingMessage];
      const chunks: Buffer[] = [];
      for await (const chunk of response) chunks.push(chunk as Buffer);
      return [response.statusCode, JSON.parse(Buffer.concat(chunks).toString())];
    };
    expect(await upgrade({ upgrade: 'websocket' })).toEqual([400, { error: 'invalid_request' }]);
    expect(await upgrade({ upgrade: 'h2c' })).toEqual([404, {}]);
  });

  test('finds on each call what was kept with the connection, and nothing of another one', async () => {
    const note = callKey<string>('note');
    const { url, called } = await startSockets();
    const one = await SocketClient.open(url);
    const other = await SocketClient.open(url);
    one.send({ type: 'create' });
    const first = await called(1);
    first.call.get(connection)?.set(note, 'kept');
    first.reply.complete();
    one.send({ type: 'create' });
    expect((await called(2)).call.get(connection)?.get(note)).toBe('kept');
    other.send({ type: 'create' });
    const stranger = await called(3);
    expect(stranger.call.get(connection)).toBeDefined();
    expect(stranger.call.get(connection)?.get(note)).toBeUndefined();
  });
});

describe('a client that', () => {
  test('leaves ends all its calls at once', async () => {
    const { url, calls, called } = await startSockets();
    const client = await SocketClient.open(url);
    for (const lane of ['a', 'b', 'a']) client.send({ type: 'create', lane });
    await called(2);
    client.vanish();
    await expect.poll(() => calls.every(({ ended }) => ended), { interval: 2 }).toBe(true);
    expect(calls).toHaveLength(2);
    expect(calls.every(({ call }) => call.signal.aborted)).toBe(true);
  });

  test('does not read shuts the gates of all its calls, and opens them when it reads on', async () => {
    const { url, called } = await startSockets();
    const client = await SocketClient.open(url);
    client.send({ type: 'create', lane: 'loud' });
    client.send({ type: 'create', lane: 'quiet' });
    const loud = await called(1);
    const quiet = await called(2);
    client.socket.pause();
    const text = 'x'.repeat(64 * 1024);
    let sent = 0;
    for (let shut = 0; shut < 20; shut = loud.call.gate.closed ? shut + 1 : 0) {
      if (loud.call.gate.closed) {
        await new Promise((resolve) => setTimeout(resolve, 2));
        continue;
      }
      loud.sendText(text);
      sent += 1;
    }
    expect(sent).toBeLessThan(1000);
    expect(quiet.call.gate.closed).toBe(true);
    client.send({ type: 'create', lane: 'late' });
    const late = await called(3);
    expect(late.call.gate.closed).toBe(true);
    client.socket.resume();
    await expect
      .poll(() => [loud, quiet, late].some(({ call }) => call.gate.closed), { interval: 2 })
      .toBe(false);
    loud.reply.complete();
    await client.until(isDone);
    expect(client.messages.filter(({ type }) => type === 'text')).toHaveLength(sent);
  });

  test('reads nothing for too long is cut off', async () => {
    const { url, called } = await startSockets({ stalled: 60 });
    const client = await SocketClient.open(url);
    client.send({ type: 'create' });
    const { sendText, call } = await called(1);
    client.socket.pause();
    while (!call.gate.closed) {
      sendText('x'.repeat(64 * 1024));
      await new Promise((resolve) => setImmediate(resolve));
    }
    await expect.poll(() => call.signal.aborted, { interval: 5 }).toBe(true);
  });

  test('sends nonsense and reads none of the answers is not read either', async () => {
    const { url } = await startSockets();
    const client = await SocketClient.open(url);
    client.socket.pause();
    // Enough for every buffer between the two, so that what does not fit stays with the sender.
    const nonsense = JSON.stringify({ type: 'nonsense', echo: 'x'.repeat(64 * 1024) });
    for (let count = 0; count < 500; count += 1) {
      client.socket.send(nonsense);
      await new Promise((resolve) => setImmediate(resolve));
    }
    // What was on its way arrives, and then no more is taken; if all were read there would be nothing left.
    let before = Infinity;
    for (let quiet = 0; quiet < 4;) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      quiet = client.socket.bufferedAmount === before ? quiet + 1 : 0;
      before = client.socket.bufferedAmount;
    }
    expect(before).toBeGreaterThan(1024 * 1024);
    client.vanish();
  });

  test('answers no ping is cut off, and one that does stays', async () => {
    const { url, called } = await startSockets({ keepAlive: 30, stalled: 2_000 });
    const dead = await SocketClient.open(url, { autoPong: false });
    const alive = await SocketClient.open(url);
    dead.send({ type: 'create' });
    const { call } = await called(1);
    expect((await dead.closed).code).toBe(1006);
    await expect.poll(() => call.signal.aborted, { interval: 2 }).toBe(true);
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(alive.socket.readyState).toBe(alive.socket.OPEN);
  });

  test('sends more than a request may hold is told so by the close', async () => {
    const { url, called } = await startSockets({}, () => {}, { body: 4096 });
    const client = await SocketClient.open(url);
    client.send({ type: 'create' });
    const { call } = await called(1);
    client.send('x'.repeat(5000));
    expect((await client.closed).code).toBe(1009);
    await expect.poll(() => call.signal.aborted, { interval: 2 }).toBe(true);
  });
});

describe('the end of a connection', () => {
  test('comes after its time: at once when it is idle', async () => {
    const { url } = await startSockets({ socket: 80 });
    const client = await SocketClient.open(url);
    expect(await client.closed).toEqual({ code: 1000, reason: 'websocket_connection_limit_reached' });
    expect(client.messages).toMatchObject([{ code: 'websocket_connection_limit_reached', status: 400 }]);
  });

  test('comes after the calls that run; those that wait, and new ones, are refused', async () => {
    const { url, called, calls, pass } = await startSockets({ socket: 3_600_000 });
    const client = await SocketClient.open(url);
    client.send({ type: 'create', lane: 'a' });
    client.send({ type: 'create', lane: 'a' });
    const running = await called(1);
    pass(3_600_000);
    await client.until(isError);
    client.send({ type: 'create', lane: 'b' });
    await client.until(isError, 2);
    running.sendText('still here');
    running.reply.complete();
    await client.closed;
    expect(client.messages.map(({ type, code, lane }) => [code ?? type, lane])).toEqual([
      ['websocket_connection_limit_reached', 'a'],
      ['websocket_connection_limit_reached', 'b'],
      ['text', 'a'],
      ['done', 'a'],
      ['websocket_connection_limit_reached', ''],
    ]);
    expect(calls).toHaveLength(1);
  });

  test('comes with the end of the gateway: idle ones at once, the others after their calls', async () => {
    const { url, sockets, called } = await startSockets();
    const idle = await SocketClient.open(url);
    const busy = await SocketClient.open(url);
    busy.send({ type: 'create' });
    const { reply } = await called(1);
    sockets.drain();
    expect(await idle.closed).toEqual({ code: 1001, reason: 'server_is_overloaded' });
    busy.send({ type: 'create', lane: 'b' });
    await busy.until(isError);
    expect(await refusedSocket(url)).toMatchObject({ status: 503 });
    reply.complete();
    expect((await busy.closed).code).toBe(1001);
    expect(busy.messages.map(({ type }) => type)).toEqual(['error', 'done']);
  });

  test('waits for a client that is still fetching its last reply', async () => {
    const { url, sockets, called } = await startSockets();
    const client = await SocketClient.open(url);
    client.send({ type: 'create' });
    const { sendText, call, reply } = await called(1);
    client.socket.pause();
    let sent = 0;
    for (let shut = 0; shut < 20; shut = call.gate.closed ? shut + 1 : 0) {
      if (call.gate.closed) {
        await new Promise((resolve) => setTimeout(resolve, 2));
        continue;
      }
      sendText('x'.repeat(64 * 1024));
      sent += 1;
    }
    reply.complete();
    sockets.drain();
    await new Promise((resolve) => setTimeout(resolve, 50));
    client.socket.resume();
    expect((await client.closed).code).toBe(1001);
    expect(client.messages.at(-1)?.type).toBe('done');
    expect(client.messages.filter(({ type }) => type === 'text')).toHaveLength(sent);
  });

  test('is forced when the gateway has waited long enough', async () => {
    const { url, sockets, called } = await startSockets();
    const client = await SocketClient.open(url);
    client.send({ type: 'create' });
    const { sendText, call } = await called(1);
    sendText('half');
    sockets.endAll(new GatewayError('server_is_overloaded', 'The gateway is shutting down.'));
    expect((await client.closed).code).toBe(1001);
    expect(client.messages.map(({ type, code }) => code ?? type)).toEqual(['text', 'server_is_overloaded']);
    expect(call.signal.aborted).toBe(true);
  });
});
