import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { readForm } from '../../../core/front/form.ts';
import { encodeForm } from '../../../core/upstream/form.ts';
import { FormReferences } from '../../../plugins/provider-objects/form-references.ts';
import { beginUpload } from '../../../plugins/provider-objects/form-upload.ts';
import { requestLines } from '../../linear/lines.ts';
import type { FuzzedBody } from './bodies.ts';

/** A part of a form. Texts have neither a file name nor a type. */
export interface ReadPart {
  readonly name: string;
  readonly filename: string | null;
  readonly type: string | null;
  /** Content in base64. */
  readonly content: string;
}

/** A body that the gateway accepts: the parts on which it judges, and what a provider is sent. */
export interface Forwarded {
  readonly parts: readonly ReadPart[];
  /** As a call with a form is sent. */
  readonly sent: FuzzedBody;
  /** As an upload is sent. Absent for forms that are refused as uploads. */
  readonly upload?: FuzzedBody;
}

const limits = { body: 2 ** 20, file: 2 ** 20, files: 10, fields: 10, inMemory: 2 ** 20 };

/** Sends a body through the gateway's parser and encoder, in pieces of this length. Returns undefined for one that it refuses with 4xx. */
export async function forward(body: FuzzedBody, length = 7): Promise<Forwarded | undefined> {
  const stream = (): Readable => piecesOf(body.bytes, length);
  const request = Object.assign(stream(), { headers: { 'content-type': body.type } });
  const read = await unlessRefused(() => readForm(request as unknown as IncomingMessage, limits));
  if (read === undefined) return undefined;
  try {
    const parts = await Promise.all(
      read.form.map(async (part): Promise<ReadPart> => {
        const { name } = part;
        if (!('file' in part))
          return { name, filename: null, type: null, content: encoded(Buffer.from(part.value)) };
        const content = encoded(await buffer(part.file.open()));
        return { name, filename: part.file.filename, type: part.file.mimeType, content };
      }),
    );
    const { body: written, added } = encodeForm(read.form);
    const sent = { type: added['content-type'] ?? '', bytes: await buffer(written) };
    const upload = await unlessRefused(() => forwardUpload(body, stream));
    return upload === undefined ? { parts, sent } : { parts, sent, upload };
  } finally {
    read.close();
  }
}

async function forwardUpload({ type, bytes }: FuzzedBody, stream: () => Readable): Promise<FuzzedBody> {
  const readers = {
    lines: requestLines(),
    references: new FormReferences('chat-completions', () => Promise.resolve()),
  };
  const body = { type, length: bytes.length, json: () => Promise.resolve({}), stream };
  const { upload, headers } = await beginUpload(body, readers, limits.body);
  return { type: headers['content-type'] ?? '', bytes: await buffer(upload.bytes) };
}

function piecesOf(bytes: Buffer, length: number): Readable {
  const count = Math.ceil(bytes.length / length);
  return Readable.from(
    Array.from({ length: count }, (_, at) => bytes.subarray(at * length, (at + 1) * length)),
  );
}

const encoded = (bytes: Buffer): string => bytes.toString('base64');

async function unlessRefused<Result>(run: () => Promise<Result>): Promise<Result | undefined> {
  try {
    return await run();
  } catch (error) {
    const { status } = error as { status?: number };
    if (status === undefined || status < 400 || status > 499) throw error;
    return undefined;
  }
}

/**
 * Returns the parts as a framework must read them: file names with the signs that would end a quotation or a line as % codes, as browsers
 * write them, and `blob` for a file without a name.
 */
export function asSent(parts: readonly ReadPart[]): readonly ReadPart[] {
  return parts.map((part) => {
    if (part.filename === null) return part;
    const filename = part.filename.replaceAll(/["\\\p{Cc}]/gu, (sign) =>
      sign === '"' ? '%22' : encodeURIComponent(sign),
    );
    const type = /^[\w.+-]+\/[\w.+-]+$/.test(part.type ?? '') ? part.type : 'application/octet-stream';
    return { ...part, filename: filename === '' ? 'blob' : filename, type };
  });
}
