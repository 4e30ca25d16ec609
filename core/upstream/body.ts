import { Readable } from 'node:stream';
import type { Form, Upload } from '../model/form.ts';
import type { BodyStream } from '../sdk/channel.ts';
import { encodeForm, fileBytes } from './form.ts';

/** A body as undici takes it, and the headers that it brings. */
export interface UpstreamBody {
  readonly body: Buffer | string | Readable | null;
  readonly added?: Readonly<Record<string, string>>;
}

/** Bytes from which on a body is sent piece by piece. */
const largeBody = 1024 * 1024;
const pieceSize = 64 * 1024;

/** The body of a request, made anew for each time that it is sent. Nothing is read before undici reads it. */
export function upstreamBody(body: Buffer | string | Form | Upload | BodyStream | undefined): UpstreamBody {
  if (body === undefined) return { body: null };
  if (typeof body === 'object' && 'bytes' in body) return uploadBody(body);
  if (typeof body === 'string') return body.length < largeBody / 3 ? { body } : bytesBody(Buffer.from(body));
  if (Buffer.isBuffer(body)) return bytesBody(body);
  return isFile(body) ? fileBody(body) : encodeForm(body);
}

function isFile(body: Form | Upload): body is Upload {
  return 'open' in body;
}

function fileBody(file: Upload): UpstreamBody {
  return {
    body: Readable.from(fileBytes(file), { objectMode: false, highWaterMark: pieceSize }),
    added: { 'content-length': String(file.size) },
  };
}

function uploadBody({ bytes, length }: BodyStream): UpstreamBody {
  return { body: bytes, ...(length === undefined ? {} : { added: { 'content-length': String(length) } }) };
}

/** Given to undici as a whole, a provider's silence would count while a large body is still on its way. */
function bytesBody(bytes: Buffer): UpstreamBody {
  if (bytes.length < largeBody) return { body: bytes };
  return { body: pieces(bytes), added: { 'content-length': String(bytes.length) } };
}

function pieces(bytes: Buffer): Readable {
  let sent = 0;
  return new Readable({
    highWaterMark: pieceSize,
    read() {
      const piece = bytes.subarray(sent, sent + pieceSize);
      sent += piece.length;
      this.push(piece.length === 0 ? null : piece);
    },
  });
}
