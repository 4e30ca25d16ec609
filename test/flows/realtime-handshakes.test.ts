import { afterEach, describe, expect, test } from 'vitest';
import type { ServerOptions } from 'ws';
import { definePlugin, GatewayError } from 'sluice';
import openai from '../../channels/openai.ts';
import type { GatewayConfig } from '../../core/sdk/config.ts';
import { eventually } from '../support/eventually.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startRealtimeUpstream, type RealtimeUpstream } from '../support/realtime-upstream.ts';
import { SocketClient } from '../support/websocket.ts';
import { Bare, requestText } from './_socket.ts';

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

interface Pair {
  readonly gateway: TestGateway;
  readonly provider: RealtimeUpstream;
  /** Ids of calls that have come and not ended. */
  readonly running: Set<string>;
}

/** A gateway before a provider of sessions. */
async function pair(
  config: GatewayConfig = {},
  script: Parameters<typeof startRealtimeUpstream>[0] = () => {},
  options: ServerOptions = {},
): Promise<Pair> {
  const running = new Set<string>();
  const watch = definePlugin({
    name: 'watch',
    stage: 'admit',
    setup: () => (call, next) => {
      running.add(call.id);
      call.onEnd(() => running.delete(call.id));
      if (call.wire.headers['x-refuse'] === 'yes') throw new GatewayError('forbidden', 'Not you.');
      if (call.wire.headers['x-refuse'] === 'defect') throw new Error('the secret reason');
      return next(call);
    },
  });
  const provider = await startRealtimeUpstream(script, options);
  closers.push(() => provider.close());
  const gateway = await startGateway({
    channels: [openai({ key: 'k', baseUrl: provider.url, models: ['talk'] })],
    plugins: [watch()],
    ...config,
  });
  closers.push(() => gateway.close());
  return { gateway, provider, running };
}

/** Headers of a sound handshake. */
const upgradeOf = ({ gateway }: Pair): Record<string, string> => ({
  connection: 'Upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
  authorization: `Bearer ${gateway.key}`,
});

/** Returns the response to a handshake. The headers of `changes` replace the defaults; empty ones are omitted. */
async function answered(
  both: Pair,
  changes: Readonly<Record<string, string>> = {},
  path = '/v1/realtime?model=talk',
): Promise<string> {
  const headers = Object.entries({ ...upgradeOf(both), ...changes }).filter(([, value]) => value !== '');
  const bare = await Bare.to(both.gateway.url);
  bare.write(requestText('GET', path, Object.fromEntries(headers)));
  const text = await bare.until(/\r\n\r\n/);
  if (text.startsWith('HTTP/1.1 101')) bare.socket.destroy();
  else await bare.closed;
  return bare.text;
}

describe('the handshake of a session', () => {
  test.each([
    ['of version 13', {}, undefined],
    ['of version 8', { 'sec-websocket-version': '8', 'sec-websocket-origin': 'http://x' }, undefined],
    ['with a slash behind the path', {}, '/v1/realtime/?model=talk'],
    ['that offers no subprotocol the gateway knows', { 'sec-websocket-protocol': 'chat' }, undefined],
  ])('%s is accepted, and told the id of its session', async (_what, changes, path) => {
    const both = await pair();
    const text = await answered(both, changes as Record<string, string>, path);
    expect(text).toMatch(/^HTTP\/1\.1 101 /);
    expect(text).toMatch(/\r\nx-request-id: req_/i);
    expect(text).not.toMatch(/sec-websocket-protocol/i);
    await eventually(() => both.running.size === 0);
  });

  test.each([
    ['without a version', { 'sec-websocket-version': '' }],
    ['of version 12', { 'sec-websocket-version': '12' }],
    ['of version 7', { 'sec-websocket-version': '7' }],
  ])('%s is refused with the versions there are, and no provider is asked', async (_what, changes) => {
    const both = await pair();
    const text = await answered(both, changes as Record<string, string>);
    expect(text).toMatch(/^HTTP\/1\.1 400 [^]*"type":\s*"invalid_request_error"/);
    expect(text).toMatch(/\r\nsec-websocket-version: 13, 8\r\n/i);
    expect(both.provider.sessions).toHaveLength(0);
  });

  test.each([
    ['without a key', ''],
    ['with a key that is too short', 'dGhlIHNhbXBsZSBub25jZQ='],
    ['with a key that is too long', 'xdGhlIHNhbXBsZSBub25jZQ=='],
    ['with a key of other letters', 'dGhlIHNhbXBsZSBub25j_Q=='],
  ])('%s is refused, and no provider is asked', async (_what, key) => {
    const both = await pair();
    const text = await answered(both, { 'sec-websocket-key': key });
    expect(text).toMatch(/^HTTP\/1\.1 400 [^]*Sec-WebSocket-Key/);
    expect(text).not.toMatch(/sec-websocket-version: 13, 8/i);
    expect(both.provider.sessions).toHaveLength(0);
  });

  test('whose subprotocols make no sense is refused in the format, and the provider is let go of', async () => {
    const both = await pair();
    const text = await answered(both, { 'sec-websocket-protocol': ',,' });
    expect(text).toMatch(/^HTTP\/1\.1 400 [^]*"type":\s*"invalid_request_error"/);
    for (const { closed } of both.provider.sessions) await closed;
    await eventually(() => both.running.size === 0);
  });

  test('that a plugin refuses has ended, and so has one that a defect refuses, which the log has', async () => {
    const both = await pair();
    expect(await answered(both, { 'x-refuse': 'yes' })).toMatch(/^HTTP\/1\.1 403 [^]*Not you\./);
    expect(both.running.size).toBe(0);
    await both.gateway.forgetLines();
    const text = await answered(both, { 'x-refuse': 'defect' });
    expect(text).toMatch(/^HTTP\/1\.1 500 /);
    expect(text).not.toContain('secret');
    expect(both.running.size).toBe(0);
    expect(both.gateway.lines).toContainEqual(
      expect.objectContaining({
        msg: 'a call failed inside the gateway',
        id: expect.stringMatching(/^req_/) as string,
        error: expect.objectContaining({ message: 'the secret reason' }) as object,
      }),
    );
  });

  describe('while the provider thinks', () => {
    const thinking = async () => {
      const received = Promise.withResolvers<void>();
      const verdict = Promise.withResolvers<boolean>();
      const verifyClient: ServerOptions['verifyClient'] = (_info, answer) => {
        received.resolve();
        void verdict.promise.then(answer);
      };
      const both = await pair({ timeouts: { connect: 3_600_000 } }, undefined, { verifyClient });
      const client = await Bare.to(both.gateway.url);
      client.write(requestText('GET', '/v1/realtime?model=talk', upgradeOf(both)));
      await received.promise;
      expect(both.running.size).toBe(1);
      return { both, client, accept: () => verdict.resolve(true) };
    };

    test.each(['leaves', 'closes its sending half'])(
      'and the client %s, everything up to the provider is let go of',
      async (how) => {
        const { both, client, accept } = await thinking();
        if (how === 'leaves') client.socket.destroy();
        else client.socket.end();
        await eventually(() => both.running.size === 0);
        accept();
        await client.closed;
        expect(client.text).not.toContain('101');
      },
    );

    test('and the client sends its first message early, the provider gets it', async () => {
      const { both, client, accept } = await thinking();
      // A masked text frame of two bytes: the mask is zero.
      client.write(Buffer.from([0x81, 0x82, 0, 0, 0, 0, 0x7b, 0x7d]));
      accept();
      await client.until(/^HTTP\/1\.1 101 /);
      await eventually(() => both.provider.sessions[0]?.messages.length === 1);
      expect(both.provider.sessions[0]?.messages[0]?.data.toString()).toBe('{}');
      client.socket.destroy();
      await eventually(() => both.running.size === 0);
    });
  });
});

describe('a session', () => {
  const open = ({ gateway }: Pair): Promise<SocketClient> =>
    SocketClient.open(`${gateway.url}/v1/realtime?model=talk`, {
      headers: { authorization: `Bearer ${gateway.key}` },
    });

  test('answers each ping with its own bytes', async () => {
    const client = await open(await pair());
    const pongs: string[] = [];
    client.socket.on('pong', (data) => pongs.push(data.toString()));
    client.socket.ping('one');
    client.socket.ping('two');
    await eventually(() => pongs.length === 2);
    expect(pongs).toEqual(['one', 'two']);
    client.vanish();
  });

  test('that lasts longer than the time of a stop is told why, and closed', async () => {
    const both = await pair({ timeouts: { drain: 20 } }, (session, message) => {
      if (message !== undefined) session.send({ type: 'response.created', response: { id: 'resp_1' } });
    });
    const client = await open(both);
    client.send({ type: 'response.create' });
    await client.until(({ type }) => type === 'response.created');
    const stopped = both.gateway.close();
    closers.splice(1);
    expect((await client.closed).code).toBe(1001);
    expect(client.messages.at(-1)).toMatchObject({ type: 'error' });
    await stopped;
    expect(both.running.size).toBe(0);
    await both.provider.sessions[0]?.closed;
  });

  test('is refused once the gateway stops, while another still answers', async () => {
    const both = await pair({ timeouts: { drain: 60_000 } }, (session, message) => {
      if (message === undefined) return;
      const { type } = JSON.parse(message.data.toString()) as { type: string };
      if (type === 'response.create') session.send({ type: 'response.created', response: { id: 'resp_1' } });
      else session.send({ type: 'response.done', response: { id: 'resp_1', status: 'completed' } });
    });
    const client = await open(both);
    client.send({ type: 'response.create' });
    await client.until(({ type }) => type === 'response.created');
    const late = await Bare.to(both.gateway.url);
    const stopped = both.gateway.close();
    closers.splice(1);
    late.write(requestText('GET', '/v1/realtime?model=talk', upgradeOf(both)));
    expect(await late.until(/\r\n\r\n\{/)).toMatch(/^HTTP\/1\.1 503 [^]*retry-after: 1\r\n/i);
    client.send({ type: 'finish' });
    expect((await client.closed).code).toBe(1001);
    await stopped;
    expect(both.provider.sessions).toHaveLength(1);
  });
});
