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

/** Reads, parses and checks the body of this call: left by the front end, run by {@link readBodyStep}. Absent on calls without a body. */
export const bodyReader = callKey<() => Promise<void>>('body reader');

/** The step between the identify and admit stages: strangers are refused before a byte of their body is read. */
export const readBodyStep: Handler = function readBody(call, next) {
  const read = call.get(bodyReader);
  return read === undefined ? next(call) : read().then(() => next(call));
};

/** 415 unless the body says that it is JSON, or says nothing. */
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
 * All bytes of a request's body, decompressed. 413 beyond the limit, 415 for an unknown compression, 400 for a damaged or cut one, 503
 * when there is no room for it: told by its length where that is announced, so that of many at once some are read to their end.
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

/** A request's body with its compression undone. Throws 415 for an unknown one. */
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
 * Bodies of this length and more, where it was announced, are put where they stay while their pieces are still in the processor's caches:
 * held until the end, the pieces would be there beside the whole. Node reads no more than this at once.
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
      // Nothing is set aside for a body of which nothing has come.
      if (announced >= largeBody && start === 0 && chunk.length < announced)
        whole = Buffer.allocUnsafeSlow(announced);
      // A chunk may be one byte, and what stands around it in memory is a hundred times its length.
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
