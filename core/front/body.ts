/** Reads and decompresses the body of a request within limits, in the step between the identify and admit stages. */
import type { IncomingMessage } from 'node:http';
import type { Readable, Transform } from 'node:stream';
import { callKey } from '../sdk/call-key.ts';
import type { Handler } from '../sdk/define.ts';
import { giveBack } from '../performance/give-back.ts';
import { GatewayError } from '../sdk/errors.ts';
import { clientLeft, tooLarge } from './body-errors.ts';
import type { BudgetShare } from './byte-budget.ts';
import { HeldBytes } from '../model/held-bytes.ts';
import { decompressors } from '../upstream/decompressors.ts';

/** Function that reads, parses and validates the body of a call: set by the route, run by {@link readBodyStep}. Absent on calls without a body. */
export const bodyReader = callKey<() => Promise<void>>('body reader');

/** Step of the pipeline that reads the body: after identify, so that unknown clients are refused before a byte of their body is read. */
export const readBodyStep: Handler = function readBody(call, next) {
  const read = call.get(bodyReader);
  return read === undefined ? next(call) : read().then(() => next(call));
};

/** Throws 415 for a content type other than JSON. Accepts requests without a content type. */
export function checkJsonType(request: IncomingMessage): void {
  const type = request.headers['content-type'];
  if (type === undefined || type === '' || type === 'application/json') return;
  if (/^\s*application\/([\w.-]+\+)?json\s*(;|$)/i.test(type)) return;
  throw new GatewayError(
    'unsupported_media_type',
    `Content-Type must be application/json, not "${type.slice(0, 100)}".`,
  );
}

/**
 * Returns all bytes of a request's body, decompressed. Rejects with 413 beyond the limit, 415 for an unknown compression, 400 for damaged
 * compressed data, and 503 when the budget has no room. The length in `content-length` is reserved at once, so that of many parallel bodies
 * some are read to their end.
 */
export function readBytes(request: IncomingMessage, limit: number, held?: BudgetShare): Promise<Buffer> {
  const announced = Number(request.headers['content-length']);
  if (announced > limit) return Promise.reject(tooLarge(limit));
  const encoding = request.headers['content-encoding']?.trim().toLowerCase();
  if (encoding !== undefined && encoding !== '' && encoding !== 'identity')
    return decompress(request, encoding, limit, held);
  try {
    if (announced > 0) held?.grow(announced);
  } catch (error) {
    return Promise.reject(error);
  }
  return collect(request, limit, held, announced);
}

/** Returns a request's body as a decompressed stream. Throws 415 for an unknown compression. */
export function decompressing(request: IncomingMessage): Readable {
  const encoding = request.headers['content-encoding']?.trim().toLowerCase();
  if (encoding === undefined || encoding === '' || encoding === 'identity') return request;
  const make = decompressors.get(encoding);
  if (make === undefined) {
    throw new GatewayError(
      'unsupported_media_type',
      `Content-Encoding "${encoding.slice(0, 50)}" is not supported: use gzip, deflate, br or zstd.`,
    );
  }
  const decoder = make();
  request.on('error', () => decoder.destroy(clientLeft()));
  request.on('close', () => {
    if (!request.readableEnded) decoder.destroy(clientLeft());
  });
  return request.pipe(decoder);
}

async function decompress(
  request: IncomingMessage,
  encoding: string,
  limit: number,
  held: BudgetShare | undefined,
): Promise<Buffer> {
  const decoder = decompressing(request) as Transform;
  try {
    return await collect(decoder, limit, held);
  } catch (error) {
    request.unpipe(decoder);
    decoder.destroy();
    if (error instanceof GatewayError) throw error;
    throw new GatewayError('invalid_request', `The body is not valid ${encoding} data.`, { cause: error });
  }
}

/**
 * Minimum `content-length`, in bytes, for which a buffer of the whole length is allocated. Each chunk is copied into it at once, because the
 * chunks would otherwise be in memory together with their copy. Node reads at most this number of bytes at once.
 */
const largeBody = 64 * 1024;

const noBytes = Buffer.alloc(0);

function collect(
  source: Readable,
  limit: number,
  held: BudgetShare | undefined,
  announced = 0,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let chunks: HeldBytes | undefined;
    let whole: Buffer | undefined;
    let length = 0;
    let settled = false;
    const fail = (error: Error): void => {
      if (settled) return;
      settled = true;
      chunks = undefined;
      whole = undefined;
      reject(error);
    };
    const keep = (chunk: Buffer): void => {
      if (length + chunk.length > limit) throw tooLarge(limit);
      const start = length;
      length += chunk.length;
      held?.grow(length);
      // Allocates with the first chunk, because a client may announce a body and send none.
      if (announced >= largeBody && start === 0 && chunk.length < announced)
        whole = Buffer.allocUnsafeSlow(announced);
      // HeldBytes, because a chunk may be one byte and its Buffer takes a hundred times as much memory.
      if (whole === undefined) (chunks ??= new HeldBytes()).push(chunk);
      else {
        chunk.copy(whole, start);
        giveBack(chunk);
      }
    };
    source.on('data', (chunk: Buffer) => {
      if (settled) return;
      try {
        keep(chunk);
      } catch (error) {
        source.pause();
        fail(error instanceof Error ? error : new Error(String(error)));
      }
    });
    source.on('end', () => {
      if (settled) return;
      settled = true;
      resolve(whole?.subarray(0, length) ?? chunks?.take() ?? noBytes);
    });
    source.on('error', (error: NodeJS.ErrnoException) =>
      fail(error.code === 'ECONNRESET' ? clientLeft() : error),
    );
    source.on('close', () => {
      if (!settled) fail(clientLeft());
    });
  });
}
