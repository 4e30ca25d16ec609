import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, request, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import * as whole from 'undici';
import { expect, test } from 'vitest';
import { giveBack } from '../../../core/performance/give-back.ts';
import * as parts from '../../../core/performance/undici.ts';

/* Each test fails when the reason of a trick of core/performance is gone: then take the trick out, or measure it again. */

test('undici still has no public path to the parts that send requests, and they are those of the package', () => {
  const text = readFileSync(new URL('../../../node_modules/undici/package.json', import.meta.url), 'utf8');
  expect(JSON.parse(text)).not.toHaveProperty('exports');
  expect(parts.Client).toBe(whole.Client);
  expect(parts.Pool).toBe(whole.Pool);
  expect(parts.buildConnector).toBe(whole.buildConnector);
});

test('the pieces of a large body come in buffers of their own, which can be given back', async () => {
  const alone: boolean[] = [];
  const server = createServer((incoming: IncomingMessage, response) => {
    incoming.on('data', (piece: Buffer) => {
      const isAlone = piece.buffer.byteLength === piece.byteLength;
      alone.push(isAlone);
      giveBack(piece);
      expect(piece.length === 0).toBe(isAlone);
    });
    incoming.on('end', () => response.end());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const outgoing = request({ host: '127.0.0.1', port, method: 'POST' });
  outgoing.end(Buffer.alloc(1024 * 1024, 'x'));
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  response.resume();
  await once(response, 'end');
  server.close();
  expect(alone).toContain(true);
});

test('bytes that share their buffer with others stay', () => {
  const piece = Buffer.from('abc');
  giveBack(piece);
  expect(piece.toString()).toBe('abc');
});

test.runIf(Number.parseInt(process.versions.node, 10) >= 24)(
  'V8 still has the flags that are set, and does not count buffers with its heap by itself',
  () => {
    const options = execFileSync(process.execPath, ['--v8-options'], { encoding: 'utf8' });
    for (const name of ['--heap-growing-percent', '--max-semi-space-size', '--expose-gc'])
      expect(options).toContain(name);
    expect(options).toMatch(/default: (?:--no-external-memory-accounted-in-global-limit|false)/);
  },
);
