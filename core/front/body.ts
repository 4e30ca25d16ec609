import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import type { Readable, Transform } from 'node:stream';
import { callKey } from '../sdk/call-key.ts';
import type { Exchange, Held } from '../call/exchange.ts';
import type { Handler } from '../sdk/define.ts';
import { GatewayError } from '../sdk/errors.ts';
import { isObject, type JsonObject } from '../model/json.ts';
import { stringEnd } from '../formats/_shared/json-bytes.ts';
import { outlineOf, wholeOf, worthwhile } from '../formats/_shared/outline/index.ts';
import { decompressors } from '../upstream/decompressors.ts';

/** Limits on what a stranger can send. */
export interface BodyLimits {
  /** Bytes, after decompression. */
  readonly body: number;
  readonly depth: number;
  readonly values: number;
}

/** What all bodies that are held may come to. */
export interface ByteBudget {
  /** What it is in all. */
  readonly most: number;
  /** Throws 503 when there is no room for so much more. */
  take(bytes: number): void;
  giveBack(bytes: number): void;
}

/** What the body of one call takes of a budget, until neither the call nor one that goes on with its body needs it any more. */
export class BudgetShare implements Held {
  readonly #budget: ByteBudget;
  #bytes = 0;
  #holders = 1;

  constructor(budget: ByteBudget) {
    this.#budget = budget;
  }

  /**
   * Makes it `bytes` in all, or the whole budget where that is less. Throws 503 when there is no room for so many, and when nobody needs
   * the body any more.
   */
  grow(bytes: number): void {
    if (this.#holders === 0) throw clientLeft();
    const wanted = Math.min(bytes, this.#budget.most);
    if (wanted <= this.#bytes) return;
    this.#budget.take(wanted - this.#bytes);
    this.#bytes = wanted;
  }

  share(): this {
    this.#holders += 1;
    return this;
  }

  letGo(): void {
    this.#holders -= 1;
    if (this.#holders > 0) return;
    this.#budget.giveBack(this.#bytes);
    this.#bytes = 0;
  }
}

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

function collect(
  source: Readable,
  limit: number,
  held: BudgetShare | undefined,
  announced = 0,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let chunks: Buffer[] | undefined;
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
      if (whole === undefined) (chunks ??= []).push(chunk);
      else chunk.copy(whole, start);
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
      const [only, more] = whole === undefined ? (chunks ?? []) : [whole.subarray(0, length)];
      resolve(only !== undefined && more === undefined ? only : Buffer.concat(chunks ?? []));
    });
    source.on('error', (error: NodeJS.ErrnoException) =>
      fail(error.code === 'ECONNRESET' ? clientLeft() : error),
    );
    source.on('close', () => {
      if (!settled) fail(clientLeft());
    });
  });
}

/** The client went away while it sent its request. */
export function clientLeft(): GatewayError {
  return new GatewayError(
    'client_closed_request',
    'The client closed the connection while sending its request.',
  );
}

/** 413 for a body beyond the limit. */
export function tooLarge(limit: number): GatewayError {
  return new GatewayError('request_too_large', `The request body is larger than ${limit} bytes.`);
}

/** The bytes behind a byte-order mark: JSON has none, and a provider need not forgive one. */
export function withoutMark(bytes: Buffer): Buffer {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes;
}

/** The JSON object in the bytes. 400 when it is not UTF-8, not JSON, not an object, too deep or too many values. */
export function parseJsonBody(bytes: Buffer, limits: BodyLimits): JsonObject {
  return readJsonBody(bytes, limits).body;
}

/** What a value takes in memory beside its bytes, about: a member of an object, a list in a list. A body of long texts has few. */
const parsedValue = 64;

/** What {@link understandJson} keeps to. */
export interface UnderstandOptions {
  readonly limits: BodyLimits;
  /** Grows by what the values take in memory: 503 where there is no room. */
  readonly held: BudgetShare;
}

/**
 * Parses and checks the JSON of a call, and leaves it with the call. Of a long request only the outline is; whoever refuses
 * it by that looks at all of it first, so that refusals are the same.
 * Throws 400 as {@link parseJsonBody} does, and with the path of what the format forbids.
 */
export function understandJson(exchange: Exchange, bytes: Buffer, { limits, held }: UnderstandOptions): void {
  const { codec, wire } = exchange;
  if (codec.outlines === true && bytes.length >= worthwhile && isUtf8(bytes)) {
    const outline = outlineOf(bytes, limits, (values) => held.grow(bytes.length + values * parsedValue));
    if (outline !== undefined) {
      exchange.understand(bytes, wholeOf(outline, bytes));
      try {
        exchange.outline(outline, codec.validate(outline.body, wire.params));
        return;
      } catch {
        // What is wrong is told of the whole.
      }
      exchange.decoded = codec.validate(wire.body ?? {}, wire.params);
      return;
    }
  }
  const read = readJsonBody(bytes, limits, held);
  exchange.understand(read.bytes, read.body);
  exchange.decoded = codec.validate(read.body, wire.params);
}

/**
 * As {@link parseJsonBody}, with the bytes that say this and nothing else: where a member is given twice providers differ on which of the
 * two counts, and what was checked here must be what is sent. `held` grows by what the values take in memory: 503 where there is no room.
 */
export function readJsonBody(
  bytes: Buffer,
  limits: BodyLimits,
  held?: BudgetShare,
): { readonly body: JsonObject; readonly bytes: Buffer } {
  if (bytes.length === 0)
    throw new GatewayError('invalid_json', 'The request has no body: send a JSON object.');
  if (!isUtf8(bytes)) throw new GatewayError('invalid_json', 'The body is not valid UTF-8.');
  const { members, values } = measure(bytes, limits);
  held?.grow(bytes.length + values * parsedValue);
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString('utf8'));
  } catch (error) {
    const reason = error instanceof Error ? error.message.slice(0, 200) : '';
    throw new GatewayError('invalid_json', `The body is not valid JSON: ${reason}`, { cause: error });
  }
  if (!isObject(value)) throw new GatewayError('invalid_type', 'The body must be a JSON object.');
  const isRepeating = members > 1 && members !== Object.keys(value).length;
  return { body: value, bytes: isRepeating ? Buffer.from(JSON.stringify(value)) : bytes };
}

/**
 * Counts depth and values before anything is built from them; strings are skipped at the speed of `indexOf`. Gives how many members an
 * object has at its top, each as often as it is given; an empty one counts as one.
 */
function measure(bytes: Buffer, limits: BodyLimits): { readonly members: number; readonly values: number } {
  let depth = 0;
  let values = 0;
  let members = 1;
  for (let index = 0; index < bytes.length; index += 1) {
    const byte = bytes[index];
    if (byte === 0x22) {
      const end = stringEnd(bytes, index);
      if (end < 0) return { members, values };
      index = end;
    } else if (byte === 0x7b || byte === 0x5b) {
      depth += 1;
      values += 1;
      if (depth > limits.depth)
        throw new GatewayError('invalid_value', `The body is nested deeper than ${limits.depth} levels.`);
    } else if (byte === 0x7d || byte === 0x5d) {
      depth -= 1;
    } else if (byte === 0x2c) {
      values += 1;
      if (depth === 1) members += 1;
    }
    if (values > limits.values)
      throw new GatewayError('invalid_value', `The body holds more than ${limits.values} values.`);
  }
  return { members, values };
}
