/** Converts the body of a request to a provider (bytes, form, file or stream) to the form that undici sends. */
import { Readable } from 'node:stream';
import type { Form, Upload } from '../model/form.ts';
import type { BodyStream } from '../sdk/channel.ts';
import { encodeForm, fileBytes } from './form.ts';

/** A body for undici, and its headers. */
export interface UpstreamBody {
  readonly body: Buffer | string | Readable | null;
  readonly added?: Readonly<Record<string, string>>;
}

/** Minimum size in bytes of bodies that are sent in pieces. */
const largeBody = 1024 * 1024;
const pieceSize = 64 * 1024;

/** Returns the body of a request; call it anew for each attempt. Files and streams are read when undici reads them. */
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

/** Sends a large body in pieces, because undici's timeout for the response would otherwise run while the body is still being sent. */
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
