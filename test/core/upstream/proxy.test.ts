import { readFileSync } from 'node:fs';
import { createServer as createSecureServer, type Server } from 'node:https';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { afterEach, describe, expect, it } from 'vitest';
import { GatewayError } from '../../../core/sdk/errors.ts';
import { createHttpClient, type HttpClientOptions } from '../../../core/upstream/send.ts';
import { type HttpClient } from '../../../core/sdk/http.ts';
import { all, outcome } from '../../support/answer.ts';
import { testCall } from '../../support/call.ts';
import { startProxy, type TestProxy } from '../../support/proxy.ts';
import { startUpstream } from '../../support/upstream.ts';
import { eventually } from '../../support/eventually.ts';

const pem = (name: string): string =>
  readFileSync(new URL(`../../fixtures/tls/${name}.pem`, import.meta.url), 'utf8');
const cert = pem('certificate');
const key = pem('key');

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

function client(options: Partial<HttpClientOptions>): HttpClient {
  const http = createHttpClient({ connectTimeout: 2000, idleTimeout: 5000, ...options });
  closers.push(() => http.close());
  return http;
}

function call(): ReturnType<typeof testCall> {
  const made = testCall();
  closers.push(() => made.exchange.end());
  return made;
}

const send = (http: HttpClient, url: string) =>
  http.send(call().call, { url, headers: { 'x-test': '1' }, body: '{"q":1}' });

const failure = (promise: Promise<unknown>): Promise<GatewayError> =>
  promise.then(
    () => Promise.reject(new Error('It did not fail as it should.')),
    (thrown: unknown) => (thrown instanceof GatewayError ? thrown : Promise.reject(thrown as Error)),
  );

async function proxyTo(url: string, allows?: Parameters<typeof startProxy>[1]): Promise<TestProxy> {
  const proxy = await startProxy(Number(new URL(url).port), allows);
  closers.push(() => proxy.close());
  return proxy;
}

async function plainProvider(script: Parameters<typeof startUpstream>[0]) {
  const provider = await startUpstream(script);
  closers.push(() => provider.close());
  return provider;
}

/** A provider with a certificate that nobody vouches for; tells the name that was asked for and the client's certificate. */
async function secureProvider(asking = false) {
  const seen: { servername: unknown; client: unknown }[] = [];
  const server: Server = createSecureServer(
    { cert, key, ...(asking ? { requestCert: true, rejectUnauthorized: false } : {}) },
    (request, response) => {
      const socket = request.socket as TLSSocket;
      seen.push({
        servername: socket.servername,
        client: asking ? socket.getPeerCertificate().subject?.CN : undefined,
      });
      response.end('{}');
    },
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
}

describe('through a proxy', () => {
  it('requests and answers pass as if there were none', async () => {
    const provider = await plainProvider((_, response) => void response.end('{"a":1}'));
    const proxy = await proxyTo(provider.url);
    const http = client({ proxy: proxy.url });
    const reply = await send(http, 'http://provider.test:8080/v1/chat?x=1');
    expect((await all(reply)).toString()).toBe('{"a":1}');
    expect(proxy.requests[0]).toMatchObject({ method: 'CONNECT', url: 'provider.test:8080' });
    expect(proxy.requests[0]?.headers).not.toHaveProperty('proxy-authorization');
    const [seen] = provider.requests;
    expect(seen).toMatchObject({ method: 'POST', url: '/v1/chat?x=1' });
    expect(seen?.headers).toMatchObject({ host: 'provider.test:8080', 'x-test': '1' });
    expect(seen?.body.toString()).toBe('{"q":1}');
  });

  it('tunnels are kept open and used again', async () => {
    const provider = await plainProvider((_, response) => void response.end('{}'));
    const proxy = await proxyTo(provider.url);
    const http = client({ proxy: proxy.url });
    for (let count = 0; count < 3; count += 1) {
      await all(await send(http, 'http://provider.test/'));
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect(provider.requests).toHaveLength(3);
    expect(proxy.requests).toHaveLength(1);
    expect(proxy.requests[0]?.url).toBe('provider.test:80');
  });

  it('the provider is asked for by TLS, whose name it is checked against', async () => {
    const provider = await secureProvider();
    const proxy = await proxyTo(provider.url);
    const http = client({ proxy: proxy.url, tls: { ca: cert } });
    expect((await all(await send(http, 'https://provider.test/v1'))).toString()).toBe('{}');
    expect(proxy.requests[0]?.url).toBe('provider.test:443');
    expect(provider.seen[0]?.servername).toBe('provider.test');
    const wrong = await failure(send(http, 'https://other.test/v1'));
    expect(wrong).toMatchObject({ code: 'upstream_error', message: 'The upstream could not be reached.' });
  });

  it('the proxy is told who asks, and the provider is not', async () => {
    const provider = await plainProvider((_, response) => void response.end('{}'));
    const proxy = await proxyTo(provider.url);
    const address = proxy.url.replace('//', '//team:p%40ss%3Aword@');
    await all(await send(client({ proxy: address }), 'http://provider.test/'));
    const basic = `Basic ${Buffer.from('team:p@ss:word').toString('base64')}`;
    expect(proxy.requests[0]?.headers['proxy-authorization']).toBe(basic);
    expect(JSON.stringify(provider.requests[0]?.headers)).not.toContain(basic);
  });

  // RFC 9110, 9.3.6: any 2xx to CONNECT means that the tunnel stands.
  it.each([200, 201, 299])('a %i of the proxy opens the tunnel', async (status) => {
    const provider = await plainProvider((_, response) => void response.end('{"a":1}'));
    const proxy = await proxyTo(provider.url, () => status);
    const reply = await send(client({ proxy: proxy.url }), 'http://provider.test/');
    expect((await all(reply)).toString()).toBe('{"a":1}');
  });

  it.each([300, 403, 407, 502])('a %i of the proxy is a failure without addresses', async (status) => {
    const provider = await plainProvider((_, response) => void response.end('{}'));
    const proxy = await proxyTo(provider.url, () => status);
    const error = await failure(send(client({ proxy: proxy.url }), 'http://provider.test/'));
    expect(error).toMatchObject({ code: 'upstream_error', status: 502, origin: 'upstream', retryable: true });
    expect(error.message).toBe('The upstream could not be reached.');
    expect(String(error.cause)).toBe(`ProxyError: The proxy returned status ${status}.`);
    expect(provider.requests).toHaveLength(0);
  });

  it.each([
    ['nobody listens', () => 'http://127.0.0.1:9'],
    ['its name does not exist', () => 'http://proxy.invalid:3128'],
  ])('a proxy where %s is a failure without addresses', async (_, address) => {
    const http = client({ proxy: address() });
    // Twice: the first must leave nothing behind that waits for ever.
    for (let count = 0; count < 2; count += 1) {
      const error = await failure(send(http, 'http://provider.test/'));
      expect(error).toMatchObject({ code: 'upstream_error', origin: 'upstream' });
      expect(error.message + String(error.cause)).not.toMatch(/127\.|proxy\.invalid|provider\.test/);
    }
  });

  it('a proxy that closes the connection instead of an answer is a failure', async () => {
    const provider = await plainProvider((_, response) => void response.end('{}'));
    const proxy = await proxyTo(provider.url, (request) => {
      request.socket.destroy();
      return undefined;
    });
    const error = await failure(send(client({ proxy: proxy.url }), 'http://provider.test/'));
    expect(error).toMatchObject({ code: 'upstream_error', origin: 'upstream', staleConnection: false });
  });

  it('a proxy that does not answer is given up in time', async () => {
    const provider = await plainProvider((_, response) => void response.end('{}'));
    const proxy = await proxyTo(provider.url, () => undefined);
    const http = client({ proxy: proxy.url, connectTimeout: 500 });
    const error = await failure(send(http, 'http://provider.test/'));
    expect(error).toMatchObject({ code: 'upstream_timeout', status: 504, origin: 'upstream' });
  });

  it('a slow reader holds the provider back, and goes on when it reads again', async () => {
    const total = 64 * 1024 * 1024;
    let written = 0;
    const provider = await plainProvider((_, response) => {
      const chunk = Buffer.alloc(256 * 1024, 'x');
      const more = (): void => {
        while (written < total) {
          written += chunk.length;
          if (!response.write(chunk)) {
            response.once('drain', more);
            return;
          }
        }
        response.end();
      };
      more();
    });
    const proxy = await proxyTo(provider.url);
    const { call: slow } = call();
    slow.gate.close();
    const http = client({ proxy: proxy.url });
    const reply = await http.send(slow, { url: 'http://provider.test/', headers: {}, body: '{}' });
    const read = outcome(reply);
    let before = -1;
    await eventually(() => {
      const now = written;
      const still = now === before && now > 0;
      before = now;
      expect(still).toBe(true);
    }, 200);
    expect(written).toBeLessThan(total);
    slow.gate.open();
    const { bytes, error } = await read;
    expect(error).toBeUndefined();
    expect(bytes.length).toBe(total);
  });

  it('the end of a call closes its tunnel', async () => {
    const provider = await plainProvider((_, response) => {
      response.writeHead(200).write('data: 1\n\n');
    });
    const proxy = await proxyTo(provider.url);
    const leaving = call();
    const http = client({ proxy: proxy.url });
    const reply = await http.send(leaving.call, { url: 'http://provider.test/', headers: {}, body: '{}' });
    void outcome(reply);
    expect(proxy.open()).toBe(1);
    leaving.exchange.end();
    await provider.requests[0]?.closed;
    await eventually(() => expect(proxy.open()).toBe(0));
  });

  it('a call that ends before there is a tunnel fails nobody else', async () => {
    const provider = await plainProvider((_, response) => void response.end('{}'));
    const proxy = await proxyTo(provider.url);
    const http = client({ proxy: proxy.url });
    const leaving = call();
    const sent = failure(http.send(leaving.call, { url: 'http://provider.test/', headers: {}, body: '{}' }));
    leaving.exchange.end();
    expect((await sent).code).toBe('client_closed_request');
    expect((await all(await send(http, 'http://provider.test/'))).toString()).toBe('{}');
  });
});

describe('a provider with a certificate of its own', () => {
  it('is refused while nobody vouches for it, and told of without its address', async () => {
    const provider = await secureProvider();
    const error = await failure(send(client({}), provider.url));
    expect(error).toMatchObject({ code: 'upstream_error', origin: 'upstream' });
    expect(error.message).not.toContain('127');
    expect(provider.seen).toHaveLength(0);
  });

  it.each([
    ['its authority is given', { ca: cert }],
    ['several authorities are given', { ca: [cert, cert] }],
    ['certificates are not checked', { verify: false }],
  ])('is reached where %s', async (_, tls) => {
    const provider = await secureProvider();
    expect((await all(await send(client({ tls }), provider.url))).toString()).toBe('{}');
  });

  it('is asked for, and checked, by the name that the operator gives', async () => {
    const provider = await secureProvider();
    const named = client({ tls: { ca: cert, servername: 'provider.test' } });
    await all(await send(named, provider.url));
    expect(provider.seen[0]?.servername).toBe('provider.test');
    const wrong = client({ tls: { ca: cert, servername: 'other.test' } });
    await failure(send(wrong, provider.url));
    expect(provider.seen).toHaveLength(1);
  });

  it('that never shows it is given up in time', async () => {
    const open = new Set<Socket>();
    const server = createServer((socket) => {
      open.add(socket);
      socket.on('error', () => {});
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    closers.push(() => {
      for (const socket of open) socket.destroy();
      server.close();
    });
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const error = await failure(send(client({ connectTimeout: 500 }), url));
    expect(error).toMatchObject({ code: 'upstream_timeout', status: 504, origin: 'upstream' });
    expect(error.message).toBe('The upstream could not be reached in time.');
  });

  it('sees the gateway’s own certificate', async () => {
    const provider = await secureProvider(true);
    await all(await send(client({ tls: { ca: cert, cert, key } }), provider.url));
    await all(await send(client({ tls: { ca: cert } }), provider.url));
    expect(provider.seen.map(({ client: name }) => name)).toEqual(['made for tests', undefined]);
  });
});
