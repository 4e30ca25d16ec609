import { once } from 'node:events';
import { randomBytes } from 'node:crypto';
import { afterEach, describe, expect, test } from 'vitest';
import type { ServerOptions, WebSocket } from 'ws';
import type { GatewayConfig } from '../../core/sdk/config.ts';
import openai from '../../channels/openai.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import {
  startRealtimeUpstream,
  type RealtimeUpstream,
  type SeenSession,
} from '../support/realtime-upstream.ts';
import { SocketClient } from '../support/websocket.ts';
import { Bare, requestText, statuses } from './_socket.ts';

const KiB = 1024;
const MiB = 1024 * KiB;

const ends: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

async function pair(
  realtime: GatewayConfig['realtime'],
  script: Parameters<typeof startRealtimeUpstream>[0] = () => {},
  options: ServerOptions = {},
): Promise<{ gateway: TestGateway; provider: RealtimeUpstream; open(): Promise<SocketClient> }> {
  const provider = await startRealtimeUpstream(script, options);
  ends.push(() => provider.close());
  const gateway = await startGateway({
    channels: [openai({ key: 'k', baseUrl: provider.url, models: ['talk'] })],
    ...(realtime === undefined ? {} : { realtime }),
    timeouts: { drain: 3000 },
  });
  ends.push(() => gateway.close());
  const open = (): Promise<SocketClient> =>
    SocketClient.open(`${gateway.url}/v1/realtime?model=talk`, {
      headers: { authorization: `Bearer ${gateway.key}` },
    });
  return { gateway, provider, open };
}

/** Sends as fast as the socket takes it; gives how much it took until it took no more for half a second. */
async function flood(socket: WebSocket, data: Buffer, most: number): Promise<number> {
  let sent = 0;
  while (sent < most) {
    if (socket.bufferedAmount < 4 * MiB) {
      socket.send(data, { binary: true });
      sent += data.length;
      if (sent % (4 * MiB) === 0) await new Promise((resolve) => setImmediate(resolve));
      continue;
    }
    const before = socket.bufferedAmount;
    await new Promise((resolve) => setTimeout(resolve, 500));
    if (socket.bufferedAmount === before) break;
  }
  return sent;
}

describe('backpressure', () => {
  test('a client that does not read holds its provider up, and gets every message when it goes on', async () => {
    let session: SeenSession | undefined;
    const { open } = await pair({ queue: 256 * KiB }, (one) => (session = one));
    const client = await open();
    client.socket.removeAllListeners('message');
    let got = 0;
    client.socket.on('message', (data: Buffer) => (got += data.length));
    client.socket.pause();
    const sent = await flood(session!.socket, randomBytes(64 * KiB), 256 * MiB);
    expect(sent).toBeLessThan(64 * MiB);
    client.socket.resume();
    await expect.poll(() => got).toBe(sent);
    client.vanish();
  });

  test('a provider that does not read holds the client up, and gets every message when it goes on', async () => {
    let session: SeenSession | undefined;
    let got = 0;
    const { open } = await pair({ queue: 256 * KiB }, (one, message) => {
      session = one;
      got += message?.data.length ?? 0;
    });
    const client = await open();
    session?.socket.pause();
    const sent = await flood(client.socket, randomBytes(64 * KiB), 256 * MiB);
    expect(sent).toBeLessThan(64 * MiB);
    session?.socket.resume();
    await expect.poll(() => got).toBe(sent);
    client.vanish();
  });

  test('a client that does not read its refusals is not read either', async () => {
    const { open } = await pair({ queue: 64 * KiB });
    const client = await open();
    client.socket.pause();
    const refused = JSON.stringify({
      type: 'session.update',
      session: { model: 'another' },
      more: 'x'.repeat(100),
    });
    for (let count = 0; count < 100_000; count += 1) {
      client.socket.send(refused);
      if (count % 1000 === 0) await new Promise((resolve) => setTimeout(resolve, 2));
    }
    let waiting = 0;
    await expect
      .poll(
        () => {
          const before = waiting;
          waiting = client.socket.bufferedAmount;
          return waiting === before;
        },
        { interval: 500 },
      )
      .toBe(true);
    expect(waiting).toBeGreaterThan(MiB);
    client.socket.resume();
    await expect.poll(() => client.messages.length).toBe(100_000);
    client.vanish();
  });

  test('a client that reads nothing for too long is let go of, with its provider', async () => {
    let session: SeenSession | undefined;
    const { open } = await pair({ queue: 64 * KiB, stalled: 300 }, (one) => (session = one));
    const client = await open();
    client.socket.removeAllListeners('message');
    client.socket.pause();
    await flood(session!.socket, randomBytes(64 * KiB), 64 * MiB);
    client.socket.resume();
    expect((await client.closed).code).toBe(1006);
    expect((await session?.closed)?.code).toBeGreaterThan(1000);
  });

  test('a provider that takes nothing for too long ends the session with 1011', async () => {
    let session: SeenSession | undefined;
    const { open } = await pair({ queue: 64 * KiB, stalled: 300 }, (one) => (session = one));
    const client = await open();
    session?.socket.pause();
    await flood(client.socket, randomBytes(64 * KiB), 64 * MiB);
    expect((await client.closed).code).toBe(1011);
    expect(client.messages.at(-1)).toMatchObject({ type: 'error', error: { code: 'upstream_timeout' } });
    session?.socket.resume();
  });
});

describe('who is gone, and for how long one may stay', () => {
  test('a client that answers no ping is let go of', async () => {
    const { open, provider } = await pair({ ping: 50 });
    const client = await open();
    client.socket.pause();
    expect((await provider.sessions[0]?.closed)?.code).toBe(1011);
    client.vanish();
  });

  test('a provider that answers no ping ends the session', async () => {
    const { open } = await pair({ ping: 50 }, () => {}, { autoPong: false });
    const client = await open();
    expect((await client.closed).code).toBe(1011);
    expect(client.messages.at(-1)).toMatchObject({ error: { code: 'upstream_timeout' } });
  });

  test('both sides that answer pings stay', async () => {
    const { open } = await pair({ ping: 30 }, (session, message) => {
      if (message !== undefined) session.socket.send(message.data, { binary: false });
    });
    const client = await open();
    await once(client.socket, 'ping');
    await new Promise((resolve) => setTimeout(resolve, 300));
    client.send({ type: 'here' });
    expect(await client.until(({ type }) => type === 'here')).toHaveLength(1);
    client.vanish();
  });

  test('silence, and too long a session, end it with an error event and 1000', async () => {
    for (const limit of [{ idle: 100 }, { lifetime: 100 }]) {
      const { open, provider } = await pair(limit);
      const client = await open();
      expect((await client.closed).code).toBe(1000);
      expect(client.messages.at(-1)).toMatchObject({
        type: 'error',
        error: { code: 'websocket_connection_limit_reached' },
      });
      expect((await provider.sessions[0]?.closed)?.code).toBe(1000);
    }
  });

  test('a stopping gateway closes what is idle with 1001, and lets an answer end that is being given', async () => {
    let busy: SeenSession | undefined;
    const { open, gateway } = await pair({}, (session, message) => {
      if (message === undefined) return;
      busy = session;
      session.send({ type: 'response.created', response: { id: 'r' } });
    });
    const idle = await open();
    const speaking = await open();
    speaking.send({ type: 'response.create' });
    await speaking.until(({ type }) => type === 'response.created');
    const closing = gateway.close();
    expect((await idle.closed).code).toBe(1001);
    expect(speaking.socket.readyState).toBe(speaking.socket.OPEN);
    busy?.send({ type: 'response.done', response: { id: 'r', status: 'completed', usage: null } });
    expect((await speaking.closed).code).toBe(1001);
    expect(speaking.messages.map(({ type }) => type)).toEqual(['response.created', 'response.done', 'error']);
    await closing;
  });

  test('pings are not answered while the client reads no answers', async () => {
    const { open, provider } = await pair({ queue: 64 * KiB }, (session, message) => {
      if (message === undefined) return;
      session.socket.send(Buffer.alloc(16 * MiB));
      session.send({ type: 'behind it' });
    });
    const client = await open();
    client.socket.removeAllListeners('message');
    let pongs = 0;
    let last = '';
    client.socket.on('pong', () => (pongs += 1));
    client.socket.on('message', (data: Buffer, binary) => (last = binary ? '' : data.toString()));
    client.send({ type: 'go' });
    client.socket.pause();
    const session = provider.sessions[0];
    await expect.poll(() => session?.messages.length).toBe(1);
    await expect.poll(() => session?.socket.bufferedAmount).toBe(0);
    await new Promise((resolve) => setTimeout(resolve, 200));
    for (let count = 0; count < 20_000; count += 1) {
      client.socket.ping();
      if (count % 1000 === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    }
    await expect.poll(() => client.socket.bufferedAmount).toBe(0);
    client.socket.resume();
    await expect.poll(() => last).toContain('behind it');
    expect(pongs).toBeLessThan(1000);
    client.vanish();
  });
});

describe('compression and size', () => {
  test('each side agrees to permessage-deflate by itself', async () => {
    for (const [clients, providers] of [
      [true, false],
      [false, true],
      [true, true],
    ] as const) {
      const { open, provider } = await pair(
        { compress: { clients, providers } },
        (session, message) => {
          if (message !== undefined) session.socket.send(message.data, { binary: message.binary });
        },
        { perMessageDeflate: true },
      );
      const client = await open();
      expect(client.socket.extensions !== '').toBe(clients);
      expect(provider.sessions[0]?.socket.extensions !== '').toBe(providers);
      const text = 'words that repeat '.repeat(20_000);
      client.send({ type: 'echo', text });
      expect(await client.until(({ type }) => type === 'echo')).toMatchObject([{ text }]);
      client.vanish();
    }
  });

  test('what unpacks to too much is 1009', async () => {
    const { open } = await pair({ frame: 64 * KiB, compress: { clients: true } });
    const client = await open();
    client.socket.send(Buffer.alloc(10 * MiB), { compress: true, binary: true });
    expect((await client.closed).code).toBe(1009);
  });

  test('a message of the provider that is too large is 1009 for the client, and bad text 1007', async () => {
    for (const [bytes, code] of [
      [Buffer.alloc(200 * KiB, 'x'), 1009],
      [Buffer.from([0xc3, 0x28]), 1007],
    ] as const) {
      const { open } = await pair({ frame: 64 * KiB }, (session) =>
        session.socket.send(bytes, { binary: false }),
      );
      expect((await (await open()).closed).code).toBe(code);
    }
  });
});

test('a handshake that cannot be accepted asks no provider', async () => {
  const { gateway, provider } = await pair({});
  const bare = await Bare.to(gateway.url);
  const upgrade = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' };
  const headers = { ...upgrade, authorization: `Bearer ${gateway.key}`, 'sec-websocket-key': 'nonsense' };
  bare.write(requestText('GET', '/v1/realtime?model=talk', headers));
  await bare.closed;
  expect(statuses(bare.text)).toEqual([400]);
  expect(provider.sessions).toHaveLength(0);
});
