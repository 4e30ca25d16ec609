import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { lastValueFrom, toArray } from 'rxjs';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createGuardedStream } from '../../../../core/upstream/guarded/stream.ts';
import { testCall } from '../../../support/call.ts';

interface Seen {
  readonly port: number;
  readonly asked: string[];
}

async function serve(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  host = '127.0.0.1',
): Promise<Seen> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url ?? '');
    answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, asked };
}

/** Streams where 127.0.0.1 alone is open, and names lead where this table says. */
function stage(names: Readonly<Record<string, readonly string[]>> = {}) {
  const resolved: string[] = [];
  const { call } = testCall();
  const stream = createGuardedStream({ allow: ['127.0.0.1'], redirects: 2 }, 5_000, {
    resolve(name) {
      resolved.push(name);
      return { addresses: Promise.resolve(names[name] ?? []), cancel() {} };
    },
  });
  return {
    resolved,
    ask: (url: string) => stream(call, url, { range: 'bytes=0-1' }),
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
    const { port, asked } = await serve((_request, response) => response.end('secret'));
    const { ask, resolved } = stage();
    for (const name of ['localhost', 'ip6-localhost', 'machine.test'])
      await expect(ask(`http://${name}:${port}/`)).rejects.toMatchObject(refused);
    expect(asked).toEqual([]);
    expect(resolved).toEqual(['ip6-localhost', 'machine.test']);
  });

  test('is not fetched where any address of its name is closed, however it is spelled', async () => {
    const { port, asked } = await serve((_request, response) => response.end('secret'), '127.0.0.2');
    const closed = [
      '127.0.0.2',
      '::ffff:127.0.0.2',
      '::ffff:7f00:2',
      '169.254.169.254',
      'fe80::1%eth0',
      '::',
    ];
    for (const address of closed) {
      const { ask } = stage({ 'two.test': ['127.0.0.1', address], 'one.test': [address] });
      await expect(ask(`http://two.test:${port}/`)).rejects.toMatchObject(refused);
      await expect(ask(`http://one.test:${port}/`)).rejects.toMatchObject(refused);
    }
    const { ask } = stage();
    for (const host of ['127.0.0.2', '127.2', '0x7f000002', '2130706434', '[::ffff:127.0.0.2]', '0177.0.0.2'])
      await expect(ask(`http://${host}:${port}/`)).rejects.toMatchObject(refused);
    expect(asked).toEqual([]);
  });

  test('is not fetched from where its server sends us, unless that is open too', async () => {
    const inside = await serve((_request, response) => response.end('secret'), '127.0.0.2');
    const target = { location: '' };
    const { port } = await serve((request, response) => {
      if (request.url === '/file') response.end('video');
      else response.writeHead(302, { location: target.location }).end();
    });
    const { ask, read, resolved } = stage({ 'cdn.test': ['127.0.0.1'], 'inside.test': ['127.0.0.2'] });
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
      await expect(ask(`http://127.0.0.1:${port}/`)).rejects.toMatchObject(refused);
    }
    target.location = `http://cdn.test:${port}/file`;
    expect(await read(`http://127.0.0.1:${port}/`)).toBe('video');
    expect(inside.asked).toEqual([]);
    expect(resolved).toEqual(['inside.test', 'inside.test', 'cdn.test']);
  });
});
