import { readFileSync } from 'node:fs';
import { createServer as createSecureServer } from 'node:https';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { Observable } from 'rxjs';
import { afterEach, describe, expect, test } from 'vitest';
import { WebSocketServer, type WebSocket } from 'ws';
import type { GatewayEvent } from '../../../core/model/event.ts';
import type { UpstreamSockets } from '../../../core/sdk/http.ts';
import { createUpstreamSockets } from '../../../core/upstream/sockets.ts';
import type { UpstreamSocketOptions } from '../../../core/upstream/socket.ts';
import { testCall } from '../../support/call.ts';
import { startProxy } from '../../support/proxy.ts';

const pem = (name: string): string =>
  readFileSync(new URL(`../../fixtures/tls/${name}.pem`, import.meta.url), 'utf8');
const cert = pem('certificate');
const key = pem('key');

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

/** A provider of sockets. What its handshakes showed, and when each of its sockets has ended. */
async function provider(secure: boolean) {
  const seen: { headers: Record<string, unknown>; servername: unknown; client: unknown }[] = [];
  const ended: Promise<number>[] = [];
  const server: Server = secure
    ? createSecureServer({ cert, key, requestCert: true, rejectUnauthorized: false })
    : createServer();
  const accepting = new WebSocketServer({ server: server as Server });
  accepting.on('connection', (socket: WebSocket, request) => {
    const tls = request.socket as TLSSocket;
    seen.push({
      headers: request.headers,
      servername: secure ? tls.servername : undefined,
      client: secure ? tls.getPeerCertificate().subject?.CN : undefined,
    });
    ended.push(new Promise((resolve) => socket.once('close', resolve)));
    socket.on('error', () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  closers.push(() => {
    for (const socket of accepting.clients) socket.terminate();
    server.close();
    server.closeAllConnections();
  });
  return { url: `${secure ? 'wss' : 'ws'}://127.0.0.1:${port}`, port, seen, ended };
}

function sockets(options: Partial<UpstreamSocketOptions> = {}): UpstreamSockets {
  const made = createUpstreamSockets({
    frame: 1e6,
    queue: 1e6,
    ping: 60_000,
    stalled: 60_000,
    compress: { clients: false, providers: false },
    connectTimeout: 5000,
    ...options,
  });
  closers.push(() => made.close());
  return made;
}

function connect(
  through: UpstreamSockets,
  url: string,
  headers: Record<string, string> = {},
): Promise<Observable<GatewayEvent>> {
  const { call, exchange } = testCall();
  closers.push(() => exchange.end());
  return through.connect(call, { url, headers });
}

const unreachable = { code: 'upstream_error', message: 'The upstream could not be reached.' };

describe('a socket over TLS', () => {
  test('is opened only to a provider whose certificate the operator trusts', async () => {
    const { url, seen } = await provider(true);
    await expect(connect(sockets(), url)).rejects.toMatchObject(unreachable);
    await connect(sockets({ tls: { ca: cert } }), url);
    await connect(sockets({ tls: { ca: [cert] } }), url);
    await connect(sockets({ tls: { verify: false } }), url);
    expect(seen).toHaveLength(3);
  });

  test('asks for the name that the operator gives, which the certificate must carry', async () => {
    const { url, seen } = await provider(true);
    await connect(sockets({ tls: { ca: cert, servername: 'provider.test' } }), url);
    expect(seen[0]?.servername).toBe('provider.test');
    const other = sockets({ tls: { ca: cert, servername: 'other.test' } });
    await expect(connect(other, url)).rejects.toMatchObject(unreachable);
  });

  test('shows the gateway’s own certificate', async () => {
    const { url, seen } = await provider(true);
    await connect(sockets({ tls: { ca: cert, cert, key } }), url);
    await connect(sockets({ tls: { ca: cert } }), url);
    expect(seen.map(({ client }) => client)).toEqual(['made for tests', undefined]);
  });

  test.each([
    ['by the name that it is reached by', {}, 'localhost'],
    ['by the name that the operator gives', { servername: 'provider.test' }, 'provider.test'],
  ])('is opened through a proxy, and the provider is asked for %s', async (_, tls, servername) => {
    const { port, seen } = await provider(true);
    const proxy = await startProxy(port);
    closers.push(() => proxy.close());
    await connect(sockets({ proxy: proxy.url, tls: { ca: cert, ...tls } }), 'wss://localhost/v1?model=m');
    expect(proxy.requests[0]?.url).toBe('localhost:443');
    expect(seen[0]?.servername).toBe(servername);
  });
});

describe('a socket through a proxy', () => {
  test('reaches the provider at the port that its address names or implies', async () => {
    const { port } = await provider(false);
    const proxy = await startProxy(port);
    closers.push(() => proxy.close());
    const through = sockets({ proxy: proxy.url });
    await connect(through, 'ws://provider.test/v1');
    await connect(through, 'ws://provider.test:8080/v1');
    expect(proxy.requests.map(({ url, headers }) => [url, headers.host])).toEqual([
      ['provider.test:80', 'provider.test:80'],
      ['provider.test:8080', 'provider.test:8080'],
    ]);
  });

  test('is refused when the proxy refuses the tunnel, and nobody hears the proxy’s words', async () => {
    const { port, seen } = await provider(false);
    for (const status of [403, 407, 502]) {
      // oxlint-disable-next-line no-await-in-loop
      const proxy = await startProxy(port, () => status);
      closers.push(() => proxy.close());
      // oxlint-disable-next-line no-await-in-loop
      await expect(connect(sockets({ proxy: proxy.url }), 'ws://provider.test/')).rejects.toMatchObject({
        ...unreachable,
        cause: { message: `The proxy returned status ${status}.` },
      });
    }
    expect(seen).toEqual([]);
  });

  test('is given up when the proxy says nothing', async () => {
    const { port } = await provider(false);
    const proxy = await startProxy(port, () => undefined);
    closers.push(() => proxy.close());
    const through = sockets({ proxy: proxy.url, connectTimeout: 300 });
    await expect(connect(through, 'ws://provider.test/')).rejects.toMatchObject({
      code: 'upstream_timeout',
      status: 504,
    });
  });
});

test('the operator’s headers stand over the channel’s own, in any spelling', async () => {
  const { url, seen } = await provider(false);
  const through = sockets({ headers: { set: { 'X-Team': 'voice' }, remove: ['X-Old'] } });
  await connect(through, url, { 'x-team': 'text', 'x-old': '1', 'x-kept': '2' });
  expect(seen[0]?.headers).toMatchObject({ 'x-team': 'voice', 'x-kept': '2' });
  expect(seen[0]?.headers).not.toHaveProperty('x-old');
});

test('a channel that is closed ends all its sockets at the provider, whether anybody reads them or not', async () => {
  const { url, ended } = await provider(false);
  const channel = sockets();
  const read = await connect(channel, url);
  await connect(channel, url);
  const subscription = read.subscribe();
  await channel.close();
  expect(await Promise.all(ended)).toEqual([1000, 1000]);
  subscription.unsubscribe();
});
