import { once } from 'node:events';
import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { BodyWriter } from '../../../core/front/body-writer.ts';

const pieces = [
  'first',
  'a',
  'b'.repeat(15),
  'c'.repeat(16),
  'd'.repeat(8192),
  'e'.repeat(8193),
  'ü\r\n0\r\n\r\n',
];

let end: (() => Promise<void>) | undefined;
afterEach(() => end?.());

/** A server that answers each request with what `answer` writes. */
async function serve(answer: (response: ServerResponse) => void | Promise<void>): Promise<number> {
  const server = createServer((_request, response) => void answer(response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  end = async () => {
    server.close();
    server.closeAllConnections();
    await once(server, 'close');
  };
  return (server.address() as AddressInfo).port;
}

/** Writes all pieces, each in a turn of its own. */
async function writeAll(response: ServerResponse, of: readonly string[] = pieces): Promise<void> {
  response.writeHead(200);
  const body = new BodyWriter(response);
  for (const piece of of) {
    body.write(Buffer.from(piece));
    await new Promise((resolve) => setImmediate(resolve));
  }
  response.end('last');
}

/** All that the server sends over one connection. */
async function raw(port: number, sent: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.write(sent);
  let got = '';
  socket.on('data', (chunk: Buffer) => {
    got += chunk.toString('latin1');
  });
  await once(socket, 'close');
  return got;
}

async function textOf(response: IncomingMessage): Promise<string> {
  let text = '';
  response.setEncoding('utf8');
  for await (const chunk of response) text += String(chunk);
  return text;
}

test('pieces of any length arrive as they were written', async () => {
  const port = await serve((response) => writeAll(response));
  const client = request({ port, host: '127.0.0.1' }).end();
  const [response] = (await once(client, 'response')) as [IncomingMessage];
  expect(response.headers['transfer-encoding']).toBe('chunked');
  expect(await textOf(response)).toBe(`${pieces.join('')}last`);
});

test('pieces that are written in one turn keep their order', async () => {
  const port = await serve((response) => {
    response.writeHead(200);
    const body = new BodyWriter(response);
    for (const piece of ['1', '2', '3']) {
      body.write(Buffer.from(piece));
      body.write(piece);
      body.write(Buffer.alloc(0));
    }
    response.end('4');
  });
  const client = request({ port, host: '127.0.0.1' }).end();
  const [response] = (await once(client, 'response')) as [IncomingMessage];
  expect(await textOf(response)).toBe('1122334');
});

test('a client of HTTP/1.0 gets no chunks', async () => {
  const port = await serve((response) => writeAll(response, ['some', ' words, ']));
  expect(await raw(port, 'GET / HTTP/1.0\r\n\r\n')).toMatch(/\r\n\r\nsome words, last$/);
});

test('a HEAD request gets no body', async () => {
  const port = await serve((response) => writeAll(response));
  const got = await raw(port, 'HEAD / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
  expect(got).toMatch(/^HTTP\/1.1 200 OK\r\n/);
  expect(got).toMatch(/\r\n\r\n$/);
});

test('requests that come one behind the other on a connection are answered in their order', async () => {
  let count = 0;
  const port = await serve((response) => {
    count += 1;
    return writeAll(response, ['x', ...Array.from({ length: count === 1 ? 40 : 3 }, () => `${count}`)]);
  });
  const got = await raw(
    port,
    'GET /1 HTTP/1.1\r\nhost: x\r\n\r\nGET /2 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n',
  );
  const [first = '', second = ''] = got.split(/(?=HTTP\/1\.1 200)/);
  const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;
  expect(first.slice(first.indexOf('\r\n\r\n') + 4)).toBe(
    `${chunk('x')}${chunk('1').repeat(40)}${chunk('last')}0\r\n\r\n`,
  );
  expect(second.slice(second.indexOf('\r\n\r\n') + 4)).toBe(
    `${chunk('x')}${chunk('2').repeat(3)}${chunk('last')}0\r\n\r\n`,
  );
});

test('a client that reads nothing fills the buffer, and drains it when it reads', async () => {
  let full = 0;
  let drained = 0;
  const port = await serve(async (response) => {
    response.writeHead(200);
    const body = new BodyWriter(response);
    for (let count = 0; count < 20_000; count += 1) {
      const wait = body.write(Buffer.alloc(1000, 'x'));
      if (wait === undefined) continue;
      full += 1;
      await once(wait, 'drain');
      drained += 1;
    }
    response.end();
  });
  const client = request({ port, host: '127.0.0.1' }).end();
  const [response] = (await once(client, 'response')) as [IncomingMessage];
  await expect.poll(() => full).toBeGreaterThan(0);
  expect(await textOf(response)).toHaveLength(20_000_000);
  expect(drained).toBe(full);
});

test('a client that has ended its side is written to no more, and nothing fails', async () => {
  const errors: unknown[] = [];
  const written: Promise<void>[] = [];
  const port = await serve((response) => {
    response.req.socket.on('error', (error) => errors.push(error));
    response.writeHead(200);
    const body = new BodyWriter(response);
    body.write(Buffer.from('first'));
    written.push(
      once(response.req.socket, 'end').then(() => {
        for (const piece of ['a', 'b']) body.write(Buffer.from(piece));
        response.end('last');
      }),
    );
  });
  const socket = connect(port, '127.0.0.1');
  socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
  await once(socket, 'data');
  socket.resume().end();
  await once(socket, 'close');
  await Promise.all(written);
  await new Promise((resolve) => setImmediate(resolve));
  expect(errors).toEqual([]);
});
