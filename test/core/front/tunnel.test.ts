import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Observable, Subject } from 'rxjs';
import { describe, expect, onTestFinished, test } from 'vitest';
import { WebSocketServer } from 'ws';
import type { Exchange } from '../../../core/call/exchange.ts';
import { closeCodeOf } from '../../../core/front/tunnel-close.ts';
import { Tunnel } from '../../../core/front/tunnel.ts';
import { createLog } from '../../../core/log.ts';
import type { GatewayEvent } from '../../../core/model/event.ts';
import type { SocketMessage } from '../../../core/model/realtime.ts';
import { GatewayError, type ErrorCode } from '../../../core/sdk/errors.ts';
import type { TunnelRoute } from '../../../core/sdk/format.ts';
import { makeCall } from '../../../core/sdk/testing/call.ts';
import { tunnelWatch } from '../../../core/sdk/tunnel-watch.ts';
import { settingsSchema } from '../../../core/settings/index.ts';
import { eventually } from '../../support/eventually.ts';
import { Bare, requestText } from '../../flows/_socket.ts';

interface Stage {
  readonly tunnel: Tunnel;
  readonly exchange: Exchange;
  /** A client that answers nothing by itself, neither pings nor a close. */
  readonly client: Bare;
  readonly events: Subject<GatewayEvent>;
  /** Messages of the client that the provider received. */
  readonly got: SocketMessage[];
  readonly done: () => number;
  readonly lines: Record<string, unknown>[];
  readonly late: unknown[];
}

const minute = 60_000;
const settings = settingsSchema.parse({
  realtime: { ping: 10 * minute, idle: 20 * minute, lifetime: 30 * minute, stalled: minute },
}).realtime;

const route = {
  failure: (error: GatewayError, id: string) => JSON.stringify({ code: error.code, id }),
} as unknown as TunnelRoute;

/** A session whose client and provider are the test's. `takes`: the provider takes messages at once. */
async function stage(takes = true): Promise<Stage> {
  const { exchange } = await makeCall();
  const lines: Record<string, unknown>[] = [];
  const late: unknown[] = [];
  exchange.endErrors = (error) => void late.push(error);
  const log = createLog('debug', {
    write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>),
  });
  let done = 0;
  const tunnel = new Tunnel(exchange, { route, settings, log, done: () => (done += 1) });
  const events = new Subject<GatewayEvent>();
  const got: SocketMessage[] = [];
  tunnel.carry(events);
  const http = createServer();
  const sockets = new WebSocketServer({ noServer: true, autoPong: false });
  http.on('upgrade', (request, raw, head) =>
    sockets.handleUpgrade(request, raw, head, (socket) => tunnel.accept(socket)),
  );
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  const client = await Bare.to(`http://127.0.0.1:${(http.address() as AddressInfo).port}`);
  onTestFinished(async () => {
    client.socket.destroy();
    for (const socket of sockets.clients) socket.terminate();
    http.close();
    await once(http, 'close');
  });
  client.write(
    requestText('GET', '/', {
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
    }),
  );
  await client.until(/\r\n\r\n/);
  await eventually(() => tunnel.accepted, 2);
  if (takes) exchange.input?.subscribe((message) => got.push(message));
  return { tunnel, exchange, client, events, got, done: () => done, lines, late };
}

/** A masked frame of the client. The mask is zero. */
function frame(opcode: number, payload: string | Buffer): Buffer {
  const bytes = Buffer.from(payload);
  return Buffer.concat([Buffer.from([0x80 | opcode, 0x80 | bytes.length, 0, 0, 0, 0]), bytes]);
}
const text = 1;
const closing = 8;
const closeFrame = (code: number, reason = ''): Buffer =>
  frame(closing, Buffer.concat([Buffer.from([code >> 8, code & 0xff]), Buffer.from(reason)]));

/** Returns the bytes that the client received after the headers of the handshake, in hexadecimal and as text. */
const received = ({ client }: Stage): string => client.text.slice(client.text.indexOf('\r\n\r\n') + 4);
const hasClose = (one: Stage, code: number): boolean =>
  received(one).includes(String.fromCharCode(code >> 8, code & 0xff));

const error = (code: ErrorCode, origin?: 'gateway' | 'upstream'): GatewayError =>
  new GatewayError(code, 'A sentence.', origin === undefined ? {} : { origin });

describe('a close that the client does not agree to', () => {
  test('is waited for five seconds, and then the connection is cut', async () => {
    const one = await stage();
    one.tunnel.fail(error('upstream_cut'));
    await eventually(() => hasClose(one, 1011), 2);
    expect(received(one)).toContain(JSON.stringify({ code: 'upstream_cut', id: one.exchange.id }));
    one.tunnel.tick(performance.now() + 4_000);
    // Another connection is opened meanwhile, so that the end of this one would have been seen.
    await stage();
    expect([one.client.socket.closed, one.done(), one.exchange.hasEnded]).toEqual([false, 0, true]);
    one.tunnel.tick(performance.now() + 6_000);
    await one.client.closed;
    await eventually(() => one.done() === 1, 2);
  });

  test('is not waited for where the gateway ends: the connection is cut', async () => {
    const one = await stage();
    one.tunnel.cut(error('server_is_overloaded', 'gateway'));
    await one.client.closed;
    expect(hasClose(one, 1001)).toBe(true);
    await eventually(() => one.done() === 1, 2);
  });

  test('ends the session of a provider that has closed too', async () => {
    const one = await stage();
    one.events.complete();
    await eventually(() => hasClose(one, 1000), 2);
    expect([one.exchange.hasEnded, one.done()]).toEqual([true, 0]);
    one.client.write(closeFrame(1000));
    await one.client.closed;
    await eventually(() => one.done() === 1, 2);
  });
});

describe('the time of a session', () => {
  test('is its whole life, however much is said', async () => {
    const one = await stage();
    const start = performance.now();
    one.client.write(frame(text, '{}'));
    await eventually(() => one.got.length === 1, 2);
    one.tunnel.tick(start + 29 * minute);
    expect(one.exchange.hasEnded).toBe(false);
    one.client.write(frame(text, '{}'));
    await eventually(() => one.got.length === 2, 2);
    one.tunnel.tick(start + 31 * minute);
    expect(one.exchange.failure?.message).toBe('A session may last 30 minutes. Open a new one to continue.');
    await eventually(() => hasClose(one, 1000), 2);
  });

  test('is over when neither side has said anything for as long as it may be silent', async () => {
    const one = await stage();
    const start = performance.now();
    one.tunnel.tick(start);
    one.events.next({ type: 'message', data: Buffer.from('word'), binary: false });
    one.tunnel.tick(start + 9 * minute);
    one.tunnel.tick(start + 28 * minute);
    expect(one.exchange.failure).toBeUndefined();
    const quiet = await stage();
    quiet.tunnel.tick(start);
    // A pong is no word of the client's.
    quiet.client.write(frame(10, ''));
    quiet.tunnel.tick(start + 21 * minute);
    expect(quiet.exchange.failure?.message).toBe(
      'A session may be silent for 20 minutes. Open a new one to continue.',
    );
  });

  test('is not counted before the client has its socket', async () => {
    const { exchange } = await makeCall();
    const tunnel = new Tunnel(exchange, { route, settings, log: createLog('silent'), done: () => {} });
    tunnel.tick(performance.now() + 60 * minute);
    expect([tunnel.accepted, exchange.hasEnded]).toEqual([false, false]);
  });
});

describe('what the client sends', () => {
  test('before the provider takes anything is given to it in order', async () => {
    const one = await stage(false);
    one.tunnel.resume();
    one.client.write(frame(text, '1'));
    const got: string[] = [];
    one.exchange.input?.subscribe((message) => got.push(message.data.toString()));
    one.client.write(Buffer.concat([frame(text, '2'), frame(text, '3')]));
    await eventually(() => got.length === 3, 2);
    expect(got).toEqual(['1', '2', '3']);
  });

  test('is given to the first who takes it, and to nobody else', async () => {
    const one = await stage();
    const second: unknown[] = [];
    one.exchange.input?.subscribe((message) => second.push(message)).unsubscribe();
    one.client.write(frame(text, 'x'));
    await eventually(() => one.got.length === 1, 2);
    expect(second).toEqual([]);
  });

  test('as its close is told to the provider with its code and reason, and ends by the provider', async () => {
    const one = await stage();
    one.client.write(closeFrame(1000, 'bye'));
    await eventually(() => one.got.length === 1, 2);
    expect([one.got[0]?.close, one.got[0]?.data.toString(), one.exchange.hasEnded]).toEqual([
      1000,
      'bye',
      false,
    ]);
    one.events.complete();
    await eventually(() => one.done() === 1, 2);
    expect(one.exchange.hasEnded).toBe(true);
  });

  test('as its close ends the session where no provider takes it', async () => {
    const one = await stage(false);
    one.exchange.input?.subscribe().unsubscribe();
    one.client.socket.destroy();
    await eventually(() => one.done() > 0, 2);
    expect(one.exchange.hasEnded).toBe(true);
  });

  test('as a ping is answered until it is closed', async () => {
    const one = await stage();
    one.client.write(frame(9, 'now'));
    await eventually(() => received(one).includes('\u008a\u0003now'), 2);
    one.tunnel.fail(error('upstream_cut'));
    await eventually(() => hasClose(one, 1011), 2);
    one.client.write(frame(9, 'later'));
    one.client.write(closeFrame(1011));
    await one.client.closed;
    expect(received(one)).not.toContain('later');
  });
});

describe('an error', () => {
  test('inside the gateway is in the log with its session, and the client is told without the reason', async () => {
    const one = await stage();
    one.events.error(new Error('the secret reason'));
    await eventually(() => hasClose(one, 1011), 2);
    expect(received(one)).toContain('internal_error');
    expect(received(one)).not.toContain('secret');
    expect(one.lines).toMatchObject([{ id: one.exchange.id, error: { message: 'the secret reason' } }]);
  });

  test('after the end is reported where it is a defect, and nothing is sent twice', async () => {
    const one = await stage();
    one.tunnel.fail(error('upstream_cut'));
    const before = received(one);
    const defect = new Error('too late');
    one.tunnel.fail(defect);
    one.tunnel.fail(error('upstream_cut'));
    expect([one.late, one.lines]).toEqual([[defect], []]);
    await eventually(() => hasClose(one, 1011), 2);
    expect(
      received(one)
        .slice(before.length)
        .match(/upstream_cut"/g),
    ).toHaveLength(1);
  });

  test('before the client has its socket ends the session, and is told to nobody', async () => {
    const { exchange } = await makeCall();
    const tunnel = new Tunnel(exchange, { route, settings, log: createLog('silent'), done: () => {} });
    tunnel.fail(error('upstream_cut'));
    expect([exchange.hasEnded, exchange.failure?.code]).toEqual([true, 'upstream_cut']);
  });

  test('of the pipeline before the client has its socket closes that socket at once', async () => {
    const { exchange } = await makeCall();
    let subscriptions = 0;
    const tunnel = new Tunnel(exchange, { route, settings, log: createLog('silent'), done: () => {} });
    tunnel.carry(
      new Observable(() => {
        subscriptions += 1;
        return () => (subscriptions -= 1);
      }),
    );
    tunnel.leave();
    tunnel.leave();
    expect([exchange.hasEnded, subscriptions, tunnel.accepted]).toEqual([true, 0, false]);
  });

  test.each([
    ['server_is_overloaded', 'gateway', 1001],
    ['server_is_overloaded', 'upstream', 1013],
    ['rate_limit_exceeded', 'gateway', 1008],
    ['insufficient_quota', undefined, 1008],
    ['invalid_api_key', undefined, 1008],
    ['expired_api_key', undefined, 1008],
    ['disabled_api_key', undefined, 1008],
    ['forbidden', undefined, 1008],
    ['model_not_allowed', undefined, 1008],
    ['websocket_connection_limit_reached', undefined, 1000],
    ['upstream_cut', 'gateway', 1011],
    ['internal_error', undefined, 1011],
  ] as const)('%s of %s closes with %i', (code, origin, expected) => {
    expect(closeCodeOf(error(code, origin))).toBe(expected);
  });
});

describe('a session that is to end after its answer', () => {
  test('ends at once where none is given, and else with the first tick behind it', async () => {
    const idle = await stage();
    idle.tunnel.retire(error('server_is_overloaded', 'gateway'));
    await eventually(() => hasClose(idle, 1001), 2);
    const busy = await stage();
    const watch = { unfinished: 'resp_1' as string | undefined };
    busy.exchange.values.set(tunnelWatch, watch as never);
    busy.tunnel.retire(error('server_is_overloaded', 'gateway'));
    busy.tunnel.tick(performance.now());
    expect(busy.exchange.hasEnded).toBe(false);
    watch.unfinished = undefined;
    busy.tunnel.tick(performance.now());
    await eventually(() => hasClose(busy, 1001), 2);
  });
});
