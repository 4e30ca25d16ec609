/** Binary event streams, which are server-sent events inside the gateway: cutting, reading, writing. */
import { createRequire } from 'node:module';
import { crc32 } from 'node:zlib';
import type { GatewayError } from '../../sdk/errors.ts';
import { parseObject } from '../../json/parse.ts';
import { isObject } from '../../model/json.ts';
import type { Frame, WireFrame } from '../../sdk/format.ts';
import { HeldBytes } from '../../model/held-bytes.ts';
import { frameLimit } from './sse.ts';
import { unusableResponse } from './upstream-error/index.ts';

/**
 * Reads and writes the binary framing of AWS event streams. Each message has a prelude (its length, the length of its headers, a checksum
 * of both), headers, a payload, and a checksum of all of it. Here a message is a frame: the event's name is that of the event stream, its
 * data the payload, which is JSON. An exception is a frame named `error` whose JSON says the kind as `__type`, as error bodies of such
 * services do.
 */

/**
 * Media type of the binary event streams of AWS.
 *
 * @example
 * if (headers['content-type'] === eventStreamType) return cutter.push(chunk);
 */
export const eventStreamType = 'application/vnd.amazon.eventstream';

/** Bytes of a prelude with its checksum. */
const preludeLength = 12;
/** A message without headers and payload. */
const leastLength = preludeLength + 4;
const errorEvent = 'error';

type Codec = InstanceType<typeof import('@smithy/eventstream-codec').EventStreamCodec>;
type Headers = Parameters<Codec['encode']>[0]['headers'];

let loaded: Codec | undefined;

/** Loads the codec when the first message is read or written, so that gateways without such streams start without it. */
function codec(): Codec {
  if (loaded !== undefined) return loaded;
  const require = createRequire(import.meta.url);
  const { EventStreamCodec } =
    require('@smithy/eventstream-codec') as typeof import('@smithy/eventstream-codec');
  return (loaded = new EventStreamCodec(
    (bytes) => (typeof bytes === 'string' ? bytes : Buffer.from(bytes).toString('utf8')),
    (text) => Buffer.from(text),
  ));
}

/**
 * Cuts the bytes of a binary event stream of AWS into frames, however the bytes were cut before. Throws GatewayError for a wrong checksum
 * and for a message that is too long.
 *
 * @example
 * const cutter = new EventStreamCutter();
 * const frames = concat(
 *   bytes.pipe(concatMap((chunk) => cutter.push(chunk))),
 *   defer(() => {
 *     if (cutter.unfinished) throw truncatedResponse();
 *     return EMPTY;
 *   }),
 * ).pipe(map(frameAsSse));
 */
export class EventStreamCutter {
  readonly #held = new HeldBytes();
  readonly #encoding: BufferEncoding;
  /** Number of bytes that are needed before the next step. */
  #needed = preludeLength;

  /** `encoding`: how the payload of an event becomes the text of its frame; `latin1` where the payload may be any bytes. */
  constructor(encoding: BufferEncoding = 'utf8') {
    this.#encoding = encoding;
  }

  /** Returns the messages completed by this chunk. Throws for a wrong checksum, and when one outgrows the limit of all frames. */
  push(chunk: Buffer): Frame[] {
    const frames: Frame[] = [];
    this.#held.push(chunk);
    if (this.#held.length < this.#needed) return frames;
    let bytes = this.#held.take();
    this.#needed = preludeLength;
    while (bytes.length >= preludeLength) {
      const length = messageLength(bytes);
      if (bytes.length < length) {
        this.#needed = length;
        break;
      }
      frames.push(frameOf(bytes.subarray(0, length), this.#encoding));
      bytes = bytes.subarray(length);
    }
    this.#held.push(bytes);
    return frames;
  }

  /** True when the stream ended inside a message. */
  get unfinished(): boolean {
    return this.#held.length > 0;
  }
}

/** Returns the length that a prelude states, once its checksum has shown that it can be believed. */
function messageLength(bytes: Buffer): number {
  const length = bytes.readUInt32BE(0);
  const headers = bytes.readUInt32BE(4);
  if (bytes.readUInt32BE(8) !== crc32(bytes.subarray(0, 8))) throw broken('a wrong checksum');
  if (length < leastLength || headers > length - leastLength) throw broken('impossible lengths');
  if (length > frameLimit) throw broken('a message that is too large');
  return length;
}

function frameOf(bytes: Buffer, encoding: BufferEncoding): Frame {
  let headers: Headers;
  let body: Buffer;
  try {
    const read = codec().decode(bytes);
    headers = read.headers;
    body = Buffer.from(read.body.buffer, read.body.byteOffset, read.body.byteLength);
  } catch {
    throw broken('a wrong checksum, or invalid headers');
  }
  const kind = headerIn(headers, ':message-type');
  if (kind === 'exception') {
    const parsed = parseObject(body.toString('utf8'));
    return { event: errorEvent, data: errorData(headerIn(headers, ':exception-type'), parsed) };
  }
  if (kind === 'error') {
    const exception = { message: headerIn(headers, ':error-message') ?? '' };
    return { event: errorEvent, data: errorData(headerIn(headers, ':error-code'), exception) };
  }
  const event = headerIn(headers, ':event-type');
  const data = body.toString(encoding);
  return event === undefined ? { data } : { event, data };
}

function errorData(type = 'internalServerException', body: object = {}): string {
  return JSON.stringify({ ...body, __type: type });
}

function headerIn(headers: Headers, name: string): string | undefined {
  const header = headers[name];
  return header?.type === 'string' ? header.value : undefined;
}

function broken(what: string): GatewayError {
  return unusableResponse(`sent an event stream with ${what}`);
}

/** Encodes a frame as a message. Drops a frame that is not JSON. */
export function writeEventStream(frame: WireFrame): Buffer {
  if ('text' in frame) return nothing;
  const { event, json } = frame;
  if (event !== errorEvent) return message('event', event, JSON.stringify(json));
  const { __type: type, ...body } = json;
  const kind = typeof type === 'string' ? type : 'internalServerException';
  return message('exception', kind, JSON.stringify(body));
}

/** Encodes a decoded frame as a message, with unchanged data. */
export function passEventStream({ event, data }: Frame): Buffer {
  if (event !== errorEvent) return message('event', event, data);
  const json = parseObject(data);
  return isObject(json) ? writeEventStream({ event, json }) : nothing;
}

const nothing = Buffer.alloc(0);

function message(kind: 'event' | 'exception', type: string | undefined, json: string): Buffer {
  const fields = {
    [`:${kind}-type`]: type ?? '',
    ':content-type': 'application/json',
    ':message-type': kind,
  };
  const headers: Headers = {};
  for (const [name, value] of Object.entries(fields)) headers[name] = { type: 'string', value };
  const { buffer, byteOffset, byteLength } = codec().encode({ headers, body: Buffer.from(json) });
  return Buffer.from(buffer, byteOffset, byteLength);
}

/**
 * Returns a frame as server-sent events, as which streams travel inside the gateway. Its JSON stands on one line.
 *
 * @example
 * const upstream = { ...answer, bytes: frames.pipe(map(frameAsSse)) };
 */
export function frameAsSse({ event, data }: Frame): Buffer {
  // Line ends can stand between the parts of JSON alone.
  const line = data.replaceAll(/[\r\n]+/g, ' ');
  return Buffer.from(event === undefined ? `data: ${line}\n\n` : `event: ${event}\ndata: ${line}\n\n`);
}
