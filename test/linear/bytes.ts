import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { readForm } from '../../core/front/form.ts';
import { FormReferences } from '../../plugins/provider-objects/form-references.ts';
import { beginUpload } from '../../plugins/provider-objects/form-upload.ts';
import { files, requestLines } from './lines.ts';
import type { Work } from './measure.ts';
import { forms, multipart, type Part } from './others.ts';
import { times } from './requests.ts';

const limits = {
  body: Infinity,
  file: Infinity,
  files: Infinity,
  fields: Infinity,
  inMemory: 64 * 1024,
};
const type = 'multipart/form-data; boundary=b';

/** A body that comes in such pieces, each of them by itself. */
function bodyOf(bytes: Buffer, length: number): Readable {
  const pieces = times(Math.ceil(bytes.length / length), (index) =>
    bytes.subarray(index * length, (index + 1) * length),
  );
  return Readable.from(pieces, { objectMode: true });
}

/** Runs what may refuse its input. */
async function tolerated(run: () => Promise<void>): Promise<void> {
  try {
    await run();
  } catch (error) {
    if ((error as { status?: number }).status === undefined) throw error;
  }
}

async function read(bytes: Buffer): Promise<void> {
  const request = Object.assign(bodyOf(bytes, 1), { headers: { 'content-type': type } });
  (await readForm(request as unknown as IncomingMessage, limits)).close();
}

async function pass(bytes: Buffer, length: number): Promise<void> {
  const lines = requestLines();
  const references = new FormReferences('chat-completions', () => Promise.resolve());
  const stream = (): Readable => bodyOf(bytes, length);
  const body = { type, length: bytes.length, json: () => Promise.resolve({}), stream };
  const form = await beginUpload(body, { lines, references }, Infinity);
  for await (const piece of form.upload.bytes) void piece;
  form.end();
}

const uploads: readonly { readonly name: string; make(size: number): readonly Part[] }[] = [
  ...files.map(({ name, make }) => ({
    name: `a file of ${name}`,
    make: (size: number) => [{ name: 'file', file: true, value: make(size) }],
  })),
  { name: 'a recording', make: (size) => [{ name: 'file', file: true, value: '\u0001'.repeat(64 * size) }] },
  ...forms,
];

/** Forms that come a byte at a time, and forms that are passed on. */
export function byteWork(): Work[] {
  const most = 32 * 1024;
  return [
    ...forms.map(({ name, make, most: own = most }): Work => ({
      part: 'forms: read a byte at a time',
      shape: name,
      oneStep: false,
      most: Math.min(own, most),
      make(size) {
        const bytes = multipart(make(size));
        return { bytes: bytes.length, run: () => tolerated(() => read(bytes)) };
      },
    })),
    ...uploads.flatMap(({ name, make }) =>
      [1, 64, 64 * 1024].map((length): Work => ({
        part: 'uploads: pass a form on',
        shape: `${name}, in reads of ${length} bytes`,
        oneStep: false,
        most: length === 1 ? most : 128 * 1024,
        make(size) {
          const bytes = multipart(make(size));
          return { bytes: bytes.length, run: () => tolerated(() => pass(bytes, length)) };
        },
      })),
    ),
  ];
}
