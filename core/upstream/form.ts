import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { GatewayError } from '../sdk/errors.ts';
import type { Form, FormPart, Upload } from '../model/form.ts';

/** A form on its way, and the headers that announce it. */
export interface EncodedForm {
  /** Files are opened one after the other, when it is their turn; destroying it lets go of the one that is being read. */
  readonly body: Readable;
  readonly added: Readonly<Record<string, string>>;
}

/** A form as `multipart/form-data` (RFC 7578), parts in their order. Its length is known before a byte of its files is read. */
export function encodeForm(form: Form): EncodedForm {
  const boundary = `sluice-${randomBytes(18).toString('base64url')}`;
  const heads = form.map((part) => Buffer.from(`--${boundary}\r\n${headOf(part)}\r\n`));
  const end = Buffer.from(`--${boundary}--\r\n`);
  let length = end.length;
  form.forEach((part, index) => {
    const head = heads[index]?.length ?? 0;
    length += head + ('file' in part ? part.file.size : Buffer.byteLength(part.value)) + lineEnd.length;
  });
  return {
    body: Readable.from(bytesOf(form, heads, end), { objectMode: false, highWaterMark: 64 * 1024 }),
    added: {
      'content-type': `multipart/form-data; boundary=${boundary}`,
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

/** The lines above a part's bytes. A file without a name gets the one that browsers give: a part with none is taken for a text. */
function headOf(part: FormPart): string {
  const disposition = `content-disposition: form-data; name="${quoted(part.name)}"`;
  if (!('file' in part)) return `${disposition}\r\n`;
  const { filename, mimeType } = part.file;
  return `${disposition}; filename="${quoted(filename === '' ? 'blob' : filename)}"\r\ncontent-type: ${typeOf(mimeType)}\r\n`;
}

/** As browsers do: what would end the quotation or the line is written with % codes. */
function quoted(name: string): string {
  return name
    .toWellFormed()
    .replaceAll(/["\p{Cc}]/gu, (sign) => (sign === '"' ? '%22' : encodeURIComponent(sign)));
}

/** What the client claimed, where it can stand in a header. */
function typeOf(mimeType: string): string {
  return /^[\w.+-]+\/[\w.+-]+(?: *;[ -~]*)?$/.test(mimeType) ? mimeType : 'application/octet-stream';
}
