/** Encodes forms as `multipart/form-data` (RFC 7578) for providers, streaming their files. */
import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { GatewayError } from '../sdk/errors.ts';
import type { Form, FormPart, PartHead, Upload } from '../model/form.ts';

/** An encoded form and its headers. */
export interface EncodedForm {
  /** Stream of the body. Opens each file when it is read. Destroying the stream closes the open file. */
  readonly body: Readable;
  readonly added: Readonly<Record<string, string>>;
}

/** Encodes a form, parts in their order. Its length is known before its files are read. */
export function encodeForm(form: Form): EncodedForm {
  const boundary = newBoundary();
  const heads = form.map((part) => encodePartHead(boundary, headOf(part)));
  const end = encodeFormEnd(boundary);
  let length = end.length;
  form.forEach((part, index) => {
    const head = heads[index]?.length ?? 0;
    length += head + ('file' in part ? part.file.size : Buffer.byteLength(part.value)) + lineEnd.length;
  });
  return {
    body: Readable.from(bytesOf(form, heads, end), { objectMode: false, highWaterMark: 64 * 1024 }),
    added: {
      'content-type': formType(boundary),
      'content-length': String(length),
    },
  };
}

const lineEnd = Buffer.from('\r\n');

async function* bytesOf(form: Form, heads: readonly Buffer[], end: Buffer): AsyncGenerator<Buffer> {
  for (const [index, part] of form.entries()) {
    yield heads[index] ?? lineEnd;
    if ('file' in part) yield* fileBytes(part.file);
    else yield Buffer.from(part.value);
    yield lineEnd;
  }
  yield end;
}

/** Yields the bytes of a file. Throws where their number differs from its size. */
export async function* fileBytes(file: Upload): AsyncGenerator<Buffer> {
  let left = file.size;
  try {
    for await (const chunk of file.open()) {
      left -= (chunk as Buffer).length;
      if (left < 0) break;
      yield chunk as Buffer;
    }
  } catch (error) {
    throw unreadable(error);
  }
  // The size is part of the content-length: with another size the receiver would misread the following bytes, or wait for more.
  if (left !== 0) throw unreadable(new Error('The size of the file has changed.'));
}

function unreadable(cause: unknown): GatewayError {
  return new GatewayError('internal_error', 'A file of this request could not be read.', { cause });
}

/** Returns a random boundary, which no file can contain because it is not known before the form is sent. */
export function newBoundary(): string {
  return `sluice-${randomBytes(18).toString('base64url')}`;
}

/** Returns the content type of a form. */
export function formType(boundary: string): string {
  return `multipart/form-data; boundary=${boundary}`;
}

/**
 * Encodes the boundary and headers before the bytes of a part. The caller adds CRLF after the bytes. An empty file name becomes `blob`, as in
 * browsers, because a part without one counts as a text.
 */
export function encodePartHead(boundary: string, { name, filename, mimeType }: PartHead): Buffer {
  const disposition = `content-disposition: form-data; name="${quoted(name)}"`;
  const file =
    filename === undefined
      ? ''
      : `; filename="${quoted(filename === '' ? 'blob' : filename)}"\r\ncontent-type: ${typeOf(mimeType)}`;
  return Buffer.from(`--${boundary}\r\n${disposition}${file}\r\n\r\n`);
}

/** Encodes the closing boundary after the last part. */
export function encodeFormEnd(boundary: string): Buffer {
  return Buffer.from(`--${boundary}--\r\n`);
}

/** Returns the headers of a part. */
function headOf(part: FormPart): PartHead {
  if ('file' in part) return { name: part.name, filename: part.file.filename, mimeType: part.file.mimeType };
  return { name: part.name, filename: undefined, mimeType: '' };
}

/**
 * Percent-encodes characters that would end the quotation or the line, as browsers do. Backslashes too, because some frameworks read one before the
 * closing quote as an escape.
 */
function quoted(name: string): string {
  return name
    .toWellFormed()
    .replaceAll(/["\\\p{Cc}]/gu, (sign) => (sign === '"' ? '%22' : encodeURIComponent(sign)));
}

/** Returns the client's media type, where it is valid in a header. */
function typeOf(mimeType: string): string {
  return /^[\w.+-]+\/[\w.+-]+(?: *;[ -~]*)?$/.test(mimeType) ? mimeType : 'application/octet-stream';
}
