import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { lastValueFrom, toArray } from 'rxjs';
import { outcome } from '../../../support/answer.ts';
import { eventually } from '../../../support/eventually.ts';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createGuardedStream } from '../../../../core/upstream/guarded/stream.ts';
import { testCall } from '../../../support/call.ts';

interface Seen {
  readonly port: number;
  readonly paths: string[];
}

async function serve(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  host = '127.0.0.1',
): Promise<Seen> {
  const paths: string[] = [];
  const server = createServer((request, response) => {
    paths.push(request.url ?? '');
    answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, paths };
}

/** Streams where 127.0.0.1 alone is open, and names lead where this table says. */
function stage(names: Readonly<Record<string, readonly string[]>> = {}, idle = 5_000) {
  const resolved: string[] = [];
  const { call, exchange } = testCall();
  const stream = createGuardedStream({ allow: ['127.0.0.1'], redirects: 2 }, idle, {
    resolve(name) {
      resolved.push(name);
      return { addresses: Promise.resolve(names[name] ?? []), cancel() {} };
    },
  });
  return {
    resolved,
    gate: call.gate,
    leave: () => exchange.end(),
    openRange: (url: string) => stream(call, url, { range: 'bytes=0-1' }),
    async read(url: string) {
      const { bytes } = await stream(call, url);
      return Buffer.concat(await lastValueFrom(bytes.pipe(toArray()))).toString();
    },
  };
}

const refused = { code: 'upstream_error', message: 'The file could not be fetched from the provider.' };

describe('a file of a provider', () => {
  test('comes from the address that its name was found to have, which is looked for once', async () => {
    const { port } = await serve((_request, response) => response.end('video'));
    const { read, resolved } = stage({ 'files.provider.test': ['127.0.0.1'] });
    expect(await read(`http://files.provider.test:${port}/a`)).toBe('video');
    expect(resolved).toEqual(['files.provider.test']);
  });

  test('is not looked for among the names that only this machine knows', async () => {
    const { port, paths } = await serve((_request, response) => response.end('secret'));
    const { openRange, resolved } = stage();
    for (const name of ['localhost', 'ip6-localhost', 'machine.test'])
      await expect(openRange(`http://${name}:${port}/`)).rejects.toMatchObject(refused);
    expect(paths).toEqual([]);
    expect(resolved).toEqual(['ip6-localhost', 'machine.test']);
  });

  test('is not fetched where any address of its name is closed, however it is spelled', async () => {
    const { port, paths } = await serve((_request, response) => response.end('secret'), '127.0.0.2');
    const closed = [
      '127.0.0.2',
      '::ffff:127.0.0.2',
      '::ffff:7f00:2',
      '169.254.169.254',
      'fe80::1%eth0',
      '::',
    ];
    for (const address of closed) {
      const { openRange } = stage({ 'two.test': ['127.0.0.1', address], 'one.test': [address] });
      await expect(openRange(`http://two.test:${port}/`)).rejects.toMatchObject(refused);
      await expect(openRange(`http://one.test:${port}/`)).rejects.toMatchObject(refused);
    }
    const { openRange: ownOpenRange } = stage();
    for (const host of ['127.0.0.2', '127.2', '0x7f000002', '2130706434', '[::ffff:127.0.0.2]', '0177.0.0.2'])
      await expect(ownOpenRange(`http://${host}:${port}/`)).rejects.toMatchObject(refused);
    expect(paths).toEqual([]);
  });

  test('is not fetched from where its server sends us, unless that is open too', async () => {
    const inside = await serve((_request, response) => response.end('secret'), '127.0.0.2');
    const target = { location: '' };
    const { port } = await serve((request, response) => {
      if (request.url === '/file') response.end('video');
      else response.writeHead(302, { location: target.location }).end();
    });
    const { openRange, read, resolved } = stage({ 'cdn.test': ['127.0.0.1'], 'inside.test': ['127.0.0.2'] });
    for (const location of [
      `http://127.0.0.2:${inside.port}/`,
      `http://inside.test:${inside.port}/`,
      `//inside.test:${inside.port}/`,
      'file:///etc/passwd',
      `http://user:password@cdn.test:${port}/file`,
      '/again',
      '',
    ]) {
      target.location = location;
      await expect(openRange(`http://127.0.0.1:${port}/`)).rejects.toMatchObject(refused);
    }
    target.location = `http://cdn.test:${port}/file`;
    expect(await read(`http://127.0.0.1:${port}/`)).toBe('video');
    expect(inside.paths).toEqual([]);
    expect(resolved).toEqual(['inside.test', 'inside.test', 'cdn.test']);
  });
});

describe('a file on its way', () => {
  test('is asked for with the headers that are wanted, and comes with its status and headers', async () => {
    const seen: unknown[] = [];
    const { port } = await serve((request, response) => {
      seen.push(request.headers.range);
      response.writeHead(206, { 'content-range': 'bytes 0-1/5', 'content-length': '2' }).end('vi');
    });
    const answer = await stage().openRange(`http://127.0.0.1:${port}/a?b=c`);
    expect(answer).toMatchObject({ status: 206, headers: { 'content-range': 'bytes 0-1/5' } });
    expect((await outcome(answer)).bytes.toString()).toBe('vi');
    expect(seen).toEqual(['bytes=0-1']);
  });

  test('that is cut ends with an error, behind what has come', async () => {
    const { port } = await serve((_request, response) => {
      response.writeHead(200, { 'content-length': '50' }).write('half a', () => response.destroy());
    });
    const { bytes, error } = await outcome(await stage().openRange(`http://127.0.0.1:${port}/`));
    expect(bytes.toString()).toBe('half a');
    expect(error).toMatchObject({
      code: 'upstream_cut',
      origin: 'upstream',
      message: 'The file ended before it was complete.',
    });
  });

  test('that stays silent is given up, before its answer and in the middle of it', async () => {
    const { port } = await serve((request, response) => {
      if (request.url === '/begun') response.writeHead(200, { 'content-length': '50' }).write('half a');
    });
    const { openRange } = stage({}, 100);
    await expect(openRange(`http://127.0.0.1:${port}/silent`)).rejects.toMatchObject(refused);
    const { error } = await outcome(await openRange(`http://127.0.0.1:${port}/begun`));
    expect(error).toMatchObject({ code: 'upstream_cut' });
  });

  test('is followed through as many redirects as the settings say, and no further', async () => {
    const { port, paths } = await serve((request, response) => {
      const left = Number(request.url?.slice(1));
      if (left === 0) response.end('video');
      else response.writeHead(302, { location: `/${left - 1}` }).end();
    });
    const { openRange, read } = stage();
    expect(await read(`http://127.0.0.1:${port}/2`)).toBe('video');
    await expect(openRange(`http://127.0.0.1:${port}/3`)).rejects.toMatchObject(refused);
    expect(paths).toEqual(['/2', '/1', '/0', '/3', '/2', '/1']);
  });

  test('is not looked for where a redirect names no place', async () => {
    const { port, paths } = await serve((_request, response) => response.writeHead(302).end());
    await expect(stage().openRange(`http://127.0.0.1:${port}/`)).rejects.toMatchObject(refused);
    expect(paths).toEqual(['/']);
  });

  test('is read no faster than the client takes it', async () => {
    const { port } = await serve((_request, response) => response.end(Buffer.alloc(8 * 1024 * 1024)));
    const { openRange, gate } = stage();
    const { bytes } = await openRange(`http://127.0.0.1:${port}/`);
    let taken = 0;
    let isOver = false;
    gate.close();
    bytes.subscribe({ next: ({ length }) => void (taken += length), complete: () => (isOver = true) });
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(taken).toBeLessThan(1024 * 1024);
    gate.open();
    await eventually(() => isOver);
    expect(taken).toBe(8 * 1024 * 1024);
  });

  test('is let go of when nobody reads it any more, and when the call ends before there is an answer', async () => {
    const closed = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let count = 0;
    const { port, paths } = await serve((request, response) => {
      const { resolve } = closed[count++] ?? {};
      response.on('close', () => resolve?.());
      if (request.url === '/begun') response.writeHead(200).write('half a');
    });
    const { bytes } = await stage().openRange(`http://127.0.0.1:${port}/begun`);
    await new Promise<void>((resolve) => {
      const subscription = bytes.subscribe(() => {
        setImmediate(() => subscription.unsubscribe());
        resolve();
      });
    });
    await closed[0]?.promise;
    const { openRange, leave } = stage();
    const waiting = openRange(`http://127.0.0.1:${port}/silent`).catch((error: unknown) => error);
    await eventually(() => paths.length === 2);
    leave();
    expect(await waiting).toMatchObject(refused);
    await closed[1]?.promise;
  });
});
