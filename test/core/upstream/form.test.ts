import { createServer, type AddressInfo, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { afterEach, describe, expect, it } from 'vitest';
import { GatewayError } from '../../../core/sdk/errors.ts';
import { readForm } from '../../../core/front/form.ts';
import { createHttpClient, type HttpClientOptions } from '../../../core/upstream/send.ts';
import { type HttpClient } from '../../../core/sdk/http.ts';
import type { Form, Upload } from '../../../core/model/form.ts';
import { all } from '../../support/answer.ts';
import { testCall } from '../../support/call.ts';
import { startUpstream, type SeenRequest } from '../../support/upstream.ts';
import { eventually } from '../../support/eventually.ts';

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

function client(options: Partial<HttpClientOptions> = {}): HttpClient {
  const http = createHttpClient({ connectTimeout: 2000, idleTimeout: 5000, ...options });
  closers.push(() => http.close());
  return http;
}

function call(): ReturnType<typeof testCall> {
  const made = testCall();
  closers.push(() => made.exchange.end());
  return made;
}

interface Watched extends Upload {
  /** Number of opened streams, read bytes, and closed streams. */
  readonly watch: { opened: number; read: number; closed: number };
}

/** A file of so many bytes that are made while they are read, none of them kept. */
function upload(size: number, change: Partial<Upload> = {}): Watched {
  const watch = { opened: 0, read: 0, closed: 0 };
  return {
    filename: 'speech.mp3',
    mimeType: 'audio/mpeg',
    size,
    head: Buffer.alloc(0),
    watch,
    open() {
      watch.opened += 1;
      let left = size;
      return new Readable({
        highWaterMark: 64 * 1024,
        read() {
          const length = Math.min(left, 64 * 1024);
          left -= length;
          watch.read += length;
          this.push(length === 0 ? null : Buffer.alloc(length, 'x'));
        },
        destroy(error, done) {
          watch.closed += 1;
          done(error);
        },
      });
    },
    ...change,
  };
}

/** Sends a form and returns the request that the provider received. */
async function received(form: Form, options: Partial<HttpClientOptions> = {}): Promise<SeenRequest> {
  const provider = await startUpstream((_, response) => void response.end('{}'));
  closers.push(() => provider.close());
  const url = `${provider.url}/v1/audio`;
  const headers = { 'content-type': 'application/json', authorization: 'Bearer k' };
  await all(await client(options).send(call().call, { url, headers, body: form }));
  const [seen] = provider.requests;
  if (seen === undefined) throw new Error('Nothing was received.');
  return seen;
}

/** The form as the gateway's own parser reads it. */
async function parsed({ headers, body }: SeenRequest): Promise<readonly unknown[]> {
  const request = Object.assign(Readable.from([body]), { headers });
  const read = await readForm(request as never, {
    body: 1e9,
    file: 1e9,
    files: 100,
    fields: 100,
    inMemory: 1e9,
  });
  closers.push(() => read.close());
  return Promise.all(
    read.form.map(async (part) => {
      if ('value' in part) return [part.name, part.value];
      const bytes = await part.file.open().toArray();
      return [part.name, part.file.filename, part.file.mimeType, Buffer.concat(bytes).toString()];
    }),
  );
}

const small = (text: string, change: Partial<Upload> = {}): Upload =>
  upload(Buffer.byteLength(text), { open: () => Readable.from([Buffer.from(text)]), ...change });

describe('a form', () => {
  it('arrives with its parts in their order, repeated names and all, and with its length', async () => {
    const seen = await received([
      { name: 'model', value: 'whisper-1' },
      { name: 'timestamp_granularities[]', value: 'word' },
      { name: 'timestamp_granularities[]', value: 'segment' },
      { name: 'file', file: small('abc') },
      { name: 'image[]', file: small('one', { filename: '1.png', mimeType: 'image/png' }) },
      { name: 'image[]', file: small('two', { filename: '2.png', mimeType: 'image/png' }) },
      { name: 'prompt', value: '' },
    ]);
    expect(seen.headers['content-type']).toMatch(/^multipart\/form-data; boundary=sluice-[\w-]{24}$/);
    expect(seen.headers['content-length']).toBe(String(seen.body.length));
    expect(seen.headers).not.toHaveProperty('transfer-encoding');
    expect(seen.headers.authorization).toBe('Bearer k');
    expect(await parsed(seen)).toEqual([
      ['model', 'whisper-1'],
      ['timestamp_granularities[]', 'word'],
      ['timestamp_granularities[]', 'segment'],
      ['file', 'speech.mp3', 'audio/mpeg', 'abc'],
      ['image[]', '1.png', 'image/png', 'one'],
      ['image[]', '2.png', 'image/png', 'two'],
      ['prompt', ''],
    ]);
  });

  it('without parts is still a form', async () => {
    const seen = await received([]);
    expect(seen.body.toString()).toMatch(/^--sluice-[\w-]{24}--\r\n$/);
    expect(seen.headers['content-length']).toBe(String(seen.body.length));
  });

  it('keeps names and texts that are not English', async () => {
    const parts: Form = [
      { name: 'prompt', value: 'schöne Grüße 😀\r\n--sluice' },
      { name: 'file', file: small('abc', { filename: '会議 ü.mp3' }) },
    ];
    expect(await parsed(await received(parts))).toEqual([
      ['prompt', 'schöne Grüße 😀\r\n--sluice'],
      ['file', '会議 ü.mp3', 'audio/mpeg', 'abc'],
    ]);
  });

  it.each([
    'a"; name="model',
    'a\r\nx-injected: 1',
    'a\r\n\r\nbody\r\n--',
    'a\nb',
    'a\u0000b',
    'back\\slash"',
    '\ud800',
  ])('lets no name write lines of its own: %j', async (name) => {
    const seen = await received([
      { name, value: 'v' },
      { name: 'file', file: small('abc', { filename: name }) },
      { name: 'last', value: 'yes' },
    ]);
    const lines = seen.body.toString().split('\r\n');
    expect(lines.filter((line) => line.startsWith('content-disposition: form-data; name="'))).toHaveLength(3);
    expect(lines.filter((line) => /^(x-injected|body)/.test(line))).toEqual([]);
    const read = (await parsed(seen)) as string[][];
    expect(read.map((part) => part.at(-1))).toEqual(['v', 'abc', 'yes']);
  });

  it.each(['text/plain\r\nx-injected: 1', 'nonsense', '', 'a/b; c="d"\n', 'ä/ö'])(
    'names no type that is none: %j',
    async (mimeType) => {
      const seen = await received([{ name: 'file', file: small('abc', { mimeType }) }]);
      expect(await parsed(seen)).toEqual([['file', 'speech.mp3', 'application/octet-stream', 'abc']]);
      expect(seen.body.toString()).not.toContain('x-injected');
    },
  );

  it('gives a file without a name one, so that it stays a file', async () => {
    const seen = await received([{ name: 'file', file: small('abc', { filename: '' }) }]);
    expect(await parsed(seen)).toEqual([['file', 'blob', 'audio/mpeg', 'abc']]);
  });

  it('keeps its own content type, whatever the operator sets', async () => {
    const seen = await received([{ name: 'a', value: 'b' }], {
      headers: { set: { 'Content-Type': 'application/json', 'x-team': 'blue' } },
    });
    expect(seen.headers['content-type']).toMatch(/^multipart\//);
    expect(seen.headers['x-team']).toBe('blue');
  });
});

/** A provider that reads only when it is told, and answers when it has been sent so much. */
async function reluctant(enough: number) {
  const open = new Set<Socket>();
  const state = { received: 0, closed: 0, text: '' };
  let reads = false;
  const server = createServer((socket) => {
    open.add(socket);
    if (!reads) socket.pause();
    socket.on('error', () => {});
    socket.on('close', () => {
      state.closed += 1;
      open.delete(socket);
    });
    socket.on('data', (chunk) => {
      state.received += chunk.length;
      if (state.text.length < 1000) state.text += chunk.toString('latin1', 0, 1000);
      if (state.received >= enough) socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(() => {
    for (const socket of open) socket.destroy();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    state,
    read() {
      reads = true;
      for (const socket of open) socket.resume();
    },
  };
}

/** Waits until nothing more is read of the file. */
async function untilStill({ watch }: Watched): Promise<void> {
  let before = -1;
  await eventually(() => {
    const now = watch.read;
    const still = now > 0 && now === before;
    before = now;
    expect(still).toBe(true);
  }, 150);
}

describe('a large file', () => {
  const size = 200 * 1024 * 1024;

  it('is read no faster than the provider takes it, and never held as a whole', async () => {
    const provider = await reluctant(size);
    const file = upload(size);
    const sent = client({ idleTimeout: 60_000 }).send(call().call, {
      url: provider.url,
      headers: {},
      body: [{ name: 'file', file }],
    });
    await untilStill(file);
    expect(file.watch.read).toBeLessThan(size / 4);
    provider.read();
    expect((await all(await sent)).toString()).toBe('{}');
    expect(file.watch).toMatchObject({ opened: 1, read: size, closed: 1 });
  });

  it('is let go of when the client leaves', async () => {
    const provider = await reluctant(size);
    const file = upload(size);
    const leaving = call();
    const sent = client().send(leaving.call, {
      url: provider.url,
      headers: {},
      body: [
        { name: 'file', file },
        { name: 'other', file: upload(10) },
      ],
    });
    const failed = sent.catch((error: unknown) => error);
    await untilStill(file);
    leaving.exchange.end();
    expect(await failed).toMatchObject({ code: 'client_closed_request' });
    await eventually(() => expect(file.watch.closed).toBe(1));
    const { read } = file.watch;
    provider.read();
    await eventually(() => expect(provider.state.closed).toBe(1));
    expect(file.watch.read).toBe(read);
  });

  it('is not opened for a call that has ended already', async () => {
    const provider = await reluctant(1);
    const file = upload(10);
    const left = call();
    left.exchange.end();
    const sent = client().send(left.call, { url: provider.url, headers: {}, body: [{ name: 'file', file }] });
    await expect(sent).rejects.toMatchObject({ code: 'client_closed_request' });
    expect(file.watch.opened).toBe(0);
  });

  it('is sent again from its beginning after a failure', async () => {
    let count = 0;
    const provider = await startUpstream((_, response) => {
      count += 1;
      if (count === 1) response.destroy();
      else response.end('{}');
    });
    closers.push(() => provider.close());
    const http = client();
    const file = upload(3 * 1024 * 1024);
    const form: Form = [{ name: 'file', file }];
    const send = () => http.send(call().call, { url: provider.url, headers: {}, body: form });
    await expect(send()).rejects.toMatchObject({ code: 'upstream_error', origin: 'upstream' });
    expect((await all(await send())).toString()).toBe('{}');
    expect(file.watch).toMatchObject({ opened: 2, closed: 2 });
    const [first, second] = provider.requests;
    expect(first?.body.length).toBe(second?.body.length);
  });

  it('may take longer to arrive than a provider may be silent, where nothing is silent', async () => {
    const file = upload(4 * 1024 * 1024);
    const slow: Upload = {
      ...file,
      open() {
        let left = file.size;
        return new Readable({
          read() {
            const length = Math.min(left, 256 * 1024);
            left -= length;
            setTimeout(() => this.push(length === 0 ? null : Buffer.alloc(length, 'x')), 200);
          },
        });
      },
    };
    const provider = await startUpstream((_, response) => void response.end('{}'));
    closers.push(() => provider.close());
    const began = performance.now();
    const http = client({ idleTimeout: 1000 });
    await all(
      await http.send(call().call, { url: provider.url, headers: {}, body: [{ name: 'file', file: slow }] }),
    );
    expect(performance.now() - began).toBeGreaterThan(2500);
  });

  it('that the provider stops taking is given up in time', async () => {
    const provider = await reluctant(size);
    const file = upload(size);
    const http = client({ idleTimeout: 500 });
    const sent = http.send(call().call, { url: provider.url, headers: {}, body: [{ name: 'file', file }] });
    await expect(sent).rejects.toMatchObject({ code: 'upstream_timeout' });
    await eventually(() => expect(file.watch.closed).toBe(1));
  });

  it('that is refused while it is being sent is refused, not broken', async () => {
    const server = createServer((socket) => {
      socket.on('error', () => {});
      socket.once('data', () => {
        socket.write('HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\n{}');
        socket.resume();
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    closers.push(() => server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const file = upload(size);
    const http = client();
    closers.push(() => http.close());
    const reply = await http.send(call().call, { url, headers: {}, body: [{ name: 'file', file }] });
    expect(reply.status).toBe(413);
    expect((await all(reply)).toString()).toBe('{}');
    await eventually(() => expect(file.watch.closed).toBe(1));
    expect(file.watch.read).toBeLessThan(size);
  });

  it.each([
    [
      'cannot be read',
      {
        open: () =>
          new Readable({
            read() {
              this.destroy(new Error('EIO /tmp/secret'));
            },
          }),
      },
    ],
    [
      'cannot be opened',
      {
        open: () => {
          throw new Error('ENOENT /tmp/secret');
        },
      },
    ],
    ['is shorter than it said', { open: () => Readable.from([Buffer.from('abc')]) }],
    ['is longer than it said', { open: () => Readable.from([Buffer.alloc(20_000)]) }],
  ])('that %s is no failure of the provider', async (_, change) => {
    const provider = await startUpstream((_request, response) => void response.end('{}'));
    closers.push(() => provider.close());
    const file = upload(10_000, change);
    const error: unknown = await client()
      .send(call().call, { url: provider.url, headers: {}, body: [{ name: 'file', file }] })
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(GatewayError);
    expect(error).toMatchObject({ code: 'internal_error', origin: 'gateway' });
    expect((error as Error).message).not.toContain('/tmp');
    expect(provider.requests).toHaveLength(0);
  });
});
