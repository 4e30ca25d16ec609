import { createServer, type AddressInfo, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, test } from 'vitest';
import type { Exchange } from '../../../core/call/exchange.ts';
import { accountOf } from '../../../core/money/account/index.ts';
import type { Call } from '../../../core/sdk/call.ts';
import type { Upstream } from '../../../core/sdk/channel.ts';
import type { HttpClient } from '../../../core/sdk/http.ts';
import { foundStale } from '../../../core/upstream/reader.ts';
import { createHttpClient } from '../../../core/upstream/send.ts';
import { all, outcome } from '../../support/answer.ts';
import { testCall } from '../../support/call.ts';
import { eventually } from '../../support/eventually.ts';

/** One request as the provider reads it: its path, its head, and the connection that brought it. */
interface Seen {
  readonly path: string;
  readonly head: string;
  readonly socket: Socket;
}

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

let http: HttpClient;
beforeEach(() => {
  http = createHttpClient({ connectTimeout: 5_000, idleTimeout: 30_000 });
  closers.push(() => http.close());
});

/** A provider that is nothing but sockets. `script` answers; each request is one piece, because its body is short. */
async function provider(
  script: (seen: Seen) => void,
): Promise<{ readonly url: string; readonly seen: Seen[] }> {
  const seen: Seen[] = [];
  const open = new Set<Socket>();
  const server = createServer((socket) => {
    open.add(socket);
    socket.on('close', () => open.delete(socket)).on('error', () => {});
    socket.on('data', (chunk) => {
      const [head = ''] = chunk.toString('latin1').split('\r\n\r\n');
      const path = /^POST (\S+) /.exec(head)?.[1];
      if (path === undefined) return;
      const one = { path, head: head.toLowerCase(), socket };
      seen.push(one);
      script(one);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(() => {
    for (const socket of open) socket.destroy();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
}

function call(): { readonly call: Call; readonly exchange: Exchange } {
  const made = testCall();
  closers.push(() => made.exchange.end());
  return made;
}

const send = (to: Call, url: string): Promise<Upstream> => http.send(to, { url, headers: {}, body: '{}' });
const status = (code: number, body = '{}'): string =>
  `HTTP/1.1 ${code} X\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
/** Returns the number of providers that read the request of a call. */
const readers = (of: Call): number => accountOf(of).attempts.readers;

describe('who has read the request of a call, for which somebody pays', () => {
  it.each([
    ['that answers 200', status(200), 1],
    ['that answers 399', status(399), 1],
    ['that answers 400', status(400), 0],
    ['that answers 429', status(429), 0],
    ['that answers 503', status(503), 0],
    ['that hints early and then answers 200', `HTTP/1.1 103 Early Hints\r\n\r\n${status(200)}`, 1],
    ['that hints early and then answers 500', `HTTP/1.1 103 Early Hints\r\n\r\n${status(500)}`, 0],
  ])('a provider %s', async (_, text, expected) => {
    const { url } = await provider(({ socket }) => void socket.write(text));
    const { call: one } = call();
    const answer = await send(one, url);
    expect(readers(one)).toBe(expected);
    await all(answer);
    expect(readers(one)).toBe(expected);
  });

  it('none, where nobody could be reached or the connection broke before the answer', async () => {
    const { url } = await provider(({ socket }) => void socket.destroy());
    const { call: one } = call();
    await expect(send(one, url)).rejects.toMatchObject({ code: 'upstream_error' });
    await expect(send(one, 'http://127.0.0.1:9')).rejects.toMatchObject({ code: 'upstream_error' });
    expect(readers(one)).toBe(0);
  });

  it('a provider whose answer breaks off in the middle', async () => {
    const { url } = await provider(
      ({ socket }) => void socket.end('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{"a"'),
    );
    const { call: one } = call();
    expect((await outcome(await send(one, url))).error).toMatchObject({ code: 'upstream_cut' });
    expect(readers(one)).toBe(1);
  });

  it('a provider that thinks, until it is given up', async () => {
    const { url, seen } = await provider(() => {});
    const { call: one, exchange } = call();
    const waiting = send(one, url);
    await eventually(() => seen.length === 1);
    expect(readers(one)).toBe(1);
    exchange.end();
    await expect(waiting).rejects.toMatchObject({ code: 'client_closed_request' });
    expect(readers(one)).toBe(0);
  });

  it('a provider of which the client leaves in the middle of the answer', async () => {
    const { url } = await provider(
      ({ socket }) => void socket.write('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{"a"'),
    );
    const { call: one, exchange } = call();
    const { bytes } = await send(one, url);
    const begun = new Promise((resolve) => bytes.subscribe(resolve));
    await begun;
    exchange.end();
    expect(readers(one)).toBe(1);
  });

  it('the second provider alone, where the first one refused; none, where the client leaves before the second answers', async () => {
    const { url, seen } = await provider(({ path, socket }) => {
      if (path === '/first') socket.write(status(429));
      else if (path === '/second') socket.write(status(200));
    });
    const { call: one } = call();
    await all(await send(one, `${url}/first`));
    await all(await send(one, `${url}/second`));
    expect(readers(one)).toBe(1);

    const { call: other, exchange } = call();
    await all(await send(other, `${url}/first`));
    const waiting = send(other, `${url}/silent`);
    await eventually(() => seen.length === 4);
    exchange.end();
    await expect(waiting).rejects.toMatchObject({ code: 'client_closed_request' });
    expect(readers(other)).toBe(0);
  });

  it('both of two providers that are asked at once, as long as both may answer', async () => {
    const { url, seen } = await provider(({ path, socket }) => {
      if (path === '/fast') socket.write(status(200));
    });
    const { call: one } = call();
    const slow = send(one, `${url}/slow`);
    await all(await send(one, `${url}/fast`));
    expect(readers(one)).toBe(2);
    seen.find(({ path }) => path === '/slow')?.socket.destroy();
    await expect(slow).rejects.toMatchObject({ code: 'upstream_error' });
    expect(readers(one)).toBe(1);
  });
});

describe('the connection of an answer', () => {
  it('that was read to its end carries the next request, whatever the answer was', async () => {
    const { url, seen } = await provider(
      ({ path, socket }) => void socket.write(status(Number(path.slice(1)))),
    );
    for (const path of ['/200', '/429', '/500', '/200']) {
      const { call: one, exchange } = call();
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      expect((await all(await send(one, url + path))).toString()).toBe('{}');
      exchange.end();
      // oxlint-disable-next-line no-await-in-loop -- the end of an answer frees its connection in a later turn
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect(new Set(seen.map(({ socket }) => socket)).size).toBe(1);
    expect(seen[0]?.socket.destroyed).toBe(false);
  });

  it('that nobody reads any more is closed, and the next request has another', async () => {
    const { url, seen } = await provider(
      ({ socket }) => void socket.write('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{"a"'),
    );
    const { bytes } = await send(call().call, url);
    await new Promise<void>((resolve) => {
      const subscription = bytes.subscribe(() => {
        setImmediate(() => subscription.unsubscribe());
        resolve();
      });
    });
    await eventually(() => seen[0]?.socket.destroyed);
    await send(call().call, url);
    expect(seen[1]?.socket).not.toBe(seen[0]?.socket);
  });

  it('is not made for a call that has ended already', async () => {
    const { url, seen } = await provider(({ socket }) => void socket.write(status(200)));
    const { call: one, exchange } = call();
    exchange.end();
    await expect(send(one, url)).rejects.toMatchObject({ code: 'client_closed_request' });
    expect(readers(one)).toBe(0);
    await all(await send(call().call, url));
    expect(seen).toHaveLength(1);
  });

  it('of an answer that came before there was a reader is read by the one that comes', async () => {
    const { url } = await provider(({ socket }) => void socket.end(status(200, '{"whole":1}')));
    const answer = await send(call().call, url);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect((await all(answer)).toString()).toBe('{"whole":1}');
  });

  it('that broke before there was a reader fails for the one that comes', async () => {
    const { url } = await provider(
      ({ socket }) => void socket.end('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{"a"'),
    );
    const answer = await send(call().call, url);
    await new Promise((resolve) => setTimeout(resolve, 50));
    const { bytes, error } = await outcome(answer);
    expect(bytes.toString()).toBe('{"a"');
    expect(error).toMatchObject({ code: 'upstream_cut' });
  });

  it('that was stale is followed by one that is closed behind its answer; those after it are kept again', async () => {
    const { url, seen } = await provider(({ path, socket }) => {
      if (path === '/stale') socket.destroy();
      else socket.write(status(200));
    });
    const { call: one } = call();
    const carried = async (path: string): Promise<void> => {
      await all(await send(one, url + path));
      await new Promise((resolve) => setTimeout(resolve, 20));
    };
    await carried('/kept');
    await expect(send(one, `${url}/stale`)).rejects.toMatchObject({ staleConnection: true });
    await carried('/anew');
    await carried('/after');
    await carried('/last');
    const closes = seen.map(({ path, head }) => [path, head.includes('connection: close')]);
    expect(closes).toEqual([
      ['/kept', false],
      ['/stale', false],
      ['/anew', true],
      ['/after', false],
      ['/last', false],
    ]);
    expect(seen[3]?.socket).toBe(seen[4]?.socket);
    expect(seen[2]?.socket.destroyed).toBe(true);
  });
});

test('a channel that is closed closes its connections, in use or not', async () => {
  const { url, seen } = await provider(({ path, socket }) => {
    if (path === '/kept') socket.write(status(200));
  });
  await all(await send(call().call, `${url}/kept`));
  const { call: used } = call();
  const waiting = send(used, `${url}/used`).catch((error: unknown) => error);
  await eventually(() => seen.length === 2);
  // One that carries nothing after it, as for a call that met a stale connection.
  const { call: stale } = call();
  stale.set(foundStale, true);
  const once = send(stale, `${url}/once`).catch((error: unknown) => error);
  await eventually(() => seen.length === 3);
  await http.close();
  expect(await Promise.all([waiting, once])).toMatchObject([
    { code: 'upstream_error' },
    { code: 'upstream_error' },
  ]);
  await eventually(() => seen.every(({ socket }) => socket.destroyed));
});

describe('the head of an answer', () => {
  it.each([
    ['is read where it is long', 60 * 1024, 200],
    ['is not read without end', 70 * 1024, 'upstream_error'],
  ])('%s', async (_, length, expected) => {
    const { url } = await provider(
      ({ socket }) =>
        void socket.end(`HTTP/1.1 200 OK\r\nx-long: ${'a'.repeat(length)}\r\ncontent-length: 0\r\n\r\n`),
    );
    const result = await send(call().call, url).then(
      (answer) => answer.status,
      (error: unknown) => (error as { code: string }).code,
    );
    expect(result).toBe(expected);
  });
});
