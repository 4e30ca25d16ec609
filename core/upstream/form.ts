import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { GatewayError } from '../sdk/errors.ts';
import type { Form, FormPart, PartHead, Upload } from '../model/form.ts';

/** A form on its way, and the headers that announce it. */
export interface EncodedForm {
  /** Files are opened one after the other, when it is their turn; destroying it lets go of the one that is being read. */
  readonly body: Readable;
  readonly added: Readonly<Record<string, string>>;
}

/** A form as `multipart/form-data` (RFC 7578), parts in their order. Its length is known before a byte of its files is read. */
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

/** The bytes of a file as they are read. Throws where they are not as many as was announced. */
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
  // Its length was announced: another would be read as what follows it, or waited for.
  if (left !== 0) throw unreadable(new Error('Its size has changed.'));
}

function unreadable(cause: unknown): GatewayError {
  return new GatewayError('internal_error', 'A file of this request could not be read.', { cause });
}

/** Returns a boundary that nobody can know before the form is sent, so that no file can contain it. */
export function newBoundary(): string {
  return `sluice-${randomBytes(18).toString('base64url')}`;
}

/** The content type of a form. */
export function formType(boundary: string): string {
  return `multipart/form-data; boundary=${boundary}`;
}

/** Encodes what stands before the bytes of a part. CRLF stands behind them. */
export function encodePartHead(boundary: string, { name, filename, mimeType }: PartHead): Buffer {
  const disposition = `content-disposition: form-data; name="${quoted(name)}"`;
  const file =
    filename === undefined
      ? ''
      : `; filename="${quoted(filename === '' ? 'blob' : filename)}"\r\ncontent-type: ${typeOf(mimeType)}`;
  return Buffer.from(`--${boundary}\r\n${disposition}${file}\r\n\r\n`);
}

/** Encodes what stands behind the last part. */
export function encodeFormEnd(boundary: string): Buffer {
  return Buffer.from(`--${boundary}--\r\n`);
}

/** A file without a name gets the one that browsers give: a part with none is taken for a text. */
function headOf(part: FormPart): PartHead {
  if ('file' in part) return { name: part.name, filename: part.file.filename, mimeType: part.file.mimeType };
  return { name: part.name, filename: undefined, mimeType: '' };
}

/**
 * Encodes what would end the quotation or the line with % codes, as browsers do. Backslashes too, because some frameworks read one before the
 * closing quote as an escape.
 */
function quoted(name: string): string {
  return name
    .toWellFormed()
    .replaceAll(/["\\\p{Cc}]/gu, (sign) => (sign === '"' ? '%22' : encodeURIComponent(sign)));
}

/** What the client claimed, where it can stand in a header. */
function typeOf(mimeType: string): string {
  return /^[\w.+-]+\/[\w.+-]+(?: *;[ -~]*)?$/.test(mimeType) ? mimeType : 'application/octet-stream';
}
