import { createHash, randomBytes } from 'node:crypto';
import { createServer, request as send, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import * as fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { ByteBudget } from '../../../core/front/byte-budget.ts';
import { isForm, readForm, type FormLimits, type ReadForm } from '../../../core/front/form.ts';
import { GatewayError } from '../../../core/sdk/errors.ts';
import { filesOf, type Upload } from '../../../core/model/form.ts';
import { tries } from '../../support/tries.ts';
import { anyCharacter } from '../../support/characters.ts';
import { uploadNames } from '../../support/uploads.ts';

const limits: FormLimits = {
  body: 4 * 1024 * 1024,
  file: 1024 * 1024,
  files: 3,
  fields: 20,
  inMemory: 16 * 1024,
};

/** Sends what `make` writes to a server that reads it as a form. */
async function read(
  body: Buffer | FormData | Readable,
  options: {
    headers?: Record<string, string>;
    limits?: Partial<FormLimits>;
    cutAfter?: number;
    budget?: ByteBudget;
  } = {},
): Promise<ReadForm> {
  const outcome = Promise.withResolvers<ReadForm>();
  outcome.promise.catch(() => {});
  const server = createServer((incoming: IncomingMessage, response) => {
    const { cutAfter } = options;
    // A client that left before it was accepted would have asked for nothing.
    const cut = (): void => {
      if (incoming.socket.bytesRead >= (cutAfter ?? 0)) outgoing.destroy();
      else setTimeout(cut, 5);
    };
    if (cutAfter !== undefined) cut();
    readForm(incoming, { ...limits, ...options.limits }, options.budget).then(
      outcome.resolve,
      outcome.reject,
    );
    outcome.promise.then(
      () => response.end(),
      () => response.writeHead(400, { connection: 'close' }).end(),
    );
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const encoded = body instanceof FormData ? new Response(body) : undefined;
  const bytes = encoded === undefined ? body : Buffer.from(await encoded.arrayBuffer());
  const headers = {
    ...(encoded === undefined ? {} : { 'content-type': encoded.headers.get('content-type') ?? '' }),
    ...options.headers,
  };
  const outgoing = send({ port, host: '127.0.0.1', method: 'POST', headers });
  outgoing.on('error', () => {});
  if (bytes instanceof Readable) bytes.pipe(outgoing);
  else if (options.cutAfter === undefined) outgoing.end(bytes);
  else outgoing.write((bytes as Buffer).subarray(0, options.cutAfter));
  const form = await outcome.promise;
  onTestFinished(() => form.close());
  return form;
}

async function bytesOf(upload: Upload | undefined): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of upload?.open() ?? []) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

describe('a form', () => {
  test('keeps its parts in order, its fields as members, and its files byte for byte', async () => {
    const large = randomBytes(700_000);
    const body = new FormData();
    body.append('model', 'm');
    body.append('image[]', new Blob([Buffer.from('small')], { type: 'image/png' }), 'ä "b".png');
    body.append('include[]', 'logprobs');
    body.append('image[]', new Blob([large], { type: 'image/webp' }), 'large.webp');
    body.append('tag', 'one');
    body.append('tag', 'two');
    const { form, fields } = await read(body);
    expect(fields).toEqual({ model: 'm', include: ['logprobs'], tag: ['one', 'two'] });
    expect(form.map(({ name }) => name)).toEqual(['model', 'image[]', 'include[]', 'image[]', 'tag', 'tag']);
    const [small, second] = filesOf(form, 'image');
    expect(small).toMatchObject({ mimeType: 'image/png', size: 5 });
    expect(await bytesOf(small)).toEqual(Buffer.from('small'));
    expect(second).toMatchObject({ filename: 'large.webp', mimeType: 'image/webp', size: large.length });
    const hash = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');
    expect(hash(await bytesOf(second))).toBe(hash(large));
    // Another channel may have to be sent the same, also at once.
    expect(await Promise.all([bytesOf(second), bytesOf(second)])).toEqual([large, large]);
    expect(second?.head).toEqual(large.subarray(0, 64));
  });

  test('leaves no file behind, not even while it is in use', async () => {
    const body = new FormData();
    body.append('file', new Blob([randomBytes(500_000)]), 'a.bin');
    const form = await read(body);
    await expect.poll(uploadNames).toEqual([]);
    form.close();
    expect(() => filesOf(form.form, 'file')[0]?.open()).toThrow('has ended');
  });

  test('may be compressed', async () => {
    const encoded = new Response(
      Object.entries({ a: '1', b: '2' }).reduce((form, [name, value]) => {
        form.append(name, value);
        return form;
      }, new FormData()),
    );
    const { fields } = await read(gzipSync(Buffer.from(await encoded.arrayBuffer())), {
      headers: { 'content-type': encoded.headers.get('content-type') ?? '', 'content-encoding': 'gzip' },
    });
    expect(fields).toEqual({ a: '1', b: '2' });
  });

  test('cannot name members that an object has of its own accord', async () => {
    const body = new FormData();
    body.append('__proto__', 'x');
    body.append('constructor', 'y');
    const { fields } = await read(body);
    expect(Object.keys(fields)).toEqual(['__proto__', 'constructor']);
    expect(({} as Record<string, unknown>).x).toBeUndefined();
  });

  test('is told by its content type', () => {
    const of = (type: string): boolean => isForm({ headers: { 'content-type': type } } as IncomingMessage);
    expect([of('multipart/form-data; boundary=x'), of('Multipart/Form-Data;boundary=x')]).toEqual([
      true,
      true,
    ]);
    expect([of('application/json'), of('multipart/mixed; boundary=x'), of('')]).toEqual([
      false,
      false,
      false,
    ]);
  });
});

describe('a form that is refused', () => {
  const withFile = (size: number, name = 'file'): FormData => {
    const body = new FormData();
    body.append(name, new Blob([Buffer.alloc(size)]), 'a.bin');
    return body;
  };

  test('a file beyond the limit: 413 with the field’s name, before the rest was read', async () => {
    let sent = 0;
    const endless = Readable.from(
      (function* () {
        yield '--x\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n';
        for (sent = 0; sent < 1000; sent += 1) yield Buffer.alloc(64 * 1024);
      })(),
    );
    await expect(
      read(endless, {
        headers: { 'content-type': 'multipart/form-data; boundary=x' },
        limits: { body: 1e9 },
      }),
    ).rejects.toMatchObject({ status: 413, param: 'file' });
    expect(sent).toBeLessThan(200);
  });

  test('a file of exactly the limit is none', async () => {
    const { form } = await read(withFile(limits.file));
    expect(filesOf(form, 'file')[0]?.size).toBe(limits.file);
    await expect(read(withFile(limits.file + 1))).rejects.toMatchObject({ status: 413 });
  });

  test('a body beyond the limit, announced or not: 413', async () => {
    await expect(read(withFile(50_000), { limits: { body: 10_000 } })).rejects.toMatchObject({ status: 413 });
    const chunked = new Response(withFile(50_000));
    await expect(
      read(Readable.from(Buffer.from(await chunked.arrayBuffer())), {
        headers: { 'content-type': chunked.headers.get('content-type') ?? '' },
        limits: { body: 10_000 },
      }),
    ).rejects.toMatchObject({ status: 413 });
  });

  test('too many files or fields: 400', async () => {
    const files = withFile(10);
    for (let count = 0; count < 4; count += 1) files.append('file', new Blob(['x']), 'b');
    await expect(read(files)).rejects.toMatchObject({
      status: 400,
      message: 'The form has more than 3 files.',
    });
    const fields = new FormData();
    for (let count = 0; count < 21; count += 1) fields.append(`f${count}`, 'x');
    await expect(read(fields)).rejects.toMatchObject({
      status: 400,
      message: 'The form has more than 20 fields.',
    });
  });

  test('exactly as many files and fields as allowed are not too many', async () => {
    const form = new FormData();
    for (let count = 0; count < 3; count += 1) form.append('file', new Blob(['x']), 'b');
    for (let count = 0; count < 20; count += 1) form.append(`f${count}`, 'x');
    const { fields } = await read(form);
    expect(Object.keys(fields)).toHaveLength(20);
  });

  test.each([
    ['no boundary', 'multipart/form-data', 'x'],
    ['another boundary', 'multipart/form-data; boundary=y', '--x\r\n\r\n--x--'],
    [
      'cut in its middle',
      'multipart/form-data; boundary=x',
      '--x\r\ncontent-disposition: form-data; name="a"\r\n\r\nhal',
    ],
    ['nothing', 'multipart/form-data; boundary=x', ''],
    ['not compressed as it says', 'multipart/form-data; boundary=x', 'plain', 'gzip'],
  ])('%s: 400', async (_, type, body, encoding = '') => {
    const headers = { 'content-type': type, ...(encoding === '' ? {} : { 'content-encoding': encoding }) };
    await expect(read(Buffer.from(body), { headers })).rejects.toMatchObject({ status: 400 });
  });

  test('a client that leaves in its middle leaves no file', async () => {
    const head = '--x\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n';
    await expect(
      read(Buffer.concat([Buffer.from(head), Buffer.alloc(600_000)]), {
        headers: { 'content-type': 'multipart/form-data; boundary=x', 'content-length': '900000' },
        cutAfter: 300_000,
      }),
    ).rejects.toMatchObject({ code: 'client_closed_request' });
    await expect.poll(uploadNames).toEqual([]);
  });

  test('whatever a stranger sends ends in an answer', async () => {
    const piece = fc.oneof(
      fc.constantFrom(
        '--x\r\n',
        '--x--\r\n',
        '\r\n\r\n',
        'content-disposition: form-data; name="a"\r\n',
        'content-disposition: form-data; name="f"; filename="b"\r\n',
        'content-type: text/plain\r\n',
      ),
      fc.string({ unit: anyCharacter, maxLength: 50 }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 12 }), async (pieces) => {
        const outcome = await read(Buffer.from(pieces.join('')), {
          headers: { 'content-type': 'multipart/form-data; boundary=x' },
        }).then(
          () => 'read',
          (error: { status?: number }) => error.status,
        );
        expect(outcome === 'read' || (typeof outcome === 'number' && outcome < 500)).toBe(true);
      }),
      { seed: 20_261_121, numRuns: tries(150) },
    );
  });
});

describe('the memory of a form', () => {
  /** A budget that a test can read. */
  const budgetOf = (most: number) => {
    const budget = {
      held: 0,
      most,
      take(bytes: number) {
        if (budget.held + bytes > most) throw new GatewayError('server_is_overloaded', 'full');
        budget.held += bytes;
      },
      giveBack(bytes: number) {
        budget.held -= bytes;
      },
    };
    return budget;
  };
  const form = (small: number, large: number): FormData => {
    const body = new FormData();
    body.append('prompt', 'ä'.repeat(500));
    body.append('small', new Blob([Buffer.alloc(small)]), 'small.bin');
    body.append('large', new Blob([Buffer.alloc(large)]), 'large.bin');
    return body;
  };

  test('is fields and small files, until the form is closed: large files are on the disk', async () => {
    const budget = budgetOf(1024 * 1024);
    const kept = await read(form(10_000, 500_000), { budget });
    expect(budget.held).toBe(11_000);
    expect(await bytesOf(filesOf(kept.form, 'large')[0])).toHaveLength(500_000);
    kept.close();
    kept.close();
    expect(budget.held).toBe(0);
  });

  test.each([
    ['a file', 5_000, 10_000],
    ['a field', 900, 10],
  ])(
    'refuses the form when there is no room for %s, and gives back what it had',
    async (_what, most, small) => {
      const budget = budgetOf(most);
      await expect(read(form(small, small), { budget })).rejects.toMatchObject({
        code: 'server_is_overloaded',
      });
      expect(budget.held).toBe(0);
    },
  );

  test.each([3_000, 30_000])('is given back when the client leaves after %i bytes', async (cutAfter) => {
    const budget = budgetOf(1024 * 1024);
    const encoded = new Response(form(10_000, 500_000));
    const headers = { 'content-type': encoded.headers.get('content-type') ?? '' };
    const bytes = Buffer.from(await encoded.arrayBuffer());
    await expect(read(bytes, { budget, headers, cutAfter })).rejects.toMatchObject({
      code: 'client_closed_request',
    });
    expect(budget.held).toBe(0);
  });
});
