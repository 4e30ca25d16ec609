/**
 * Classifies a provider's response by its first bytes (SSE, JSON, file), detects errors, also those under a success status, and feeds the response
 * to a reader.
 */
import { Observable, Subject, takeUntil, type Observer, type Subscriber } from 'rxjs';
import {
  GatewayError,
  isObject,
  parseJson,
  type GatewayEvent,
  type JsonObject,
  type AnswerEvent,
} from 'sluice';
import { upstreamError, type Frame, tellsError } from 'sluice/channel-kit';
import { isNamed } from 'sluice/internal';

/** Maximum number of bytes of an error response that are read. */
const errorLimit = 64 * 1024;

/** Format of a response by its first byte, whatever its content type is. */
export type Shape = 'sse' | 'json' | 'other';

/** Maximum number of blank bytes before a response. Some providers send empty lines while the model thinks. */
const mostBlanks = 64 * 1024;

/** Determines the format of a response by its first byte that is not blank. */
export class ShapeFinder {
  #blanks = 0;

  /** Returns the format, and the index in the chunk at which the response begins. Undefined for a blank chunk. Throws for too many blank bytes. */
  find(chunk: Buffer): { readonly shape: Shape; readonly start: number } | undefined {
    const start = firstByte(chunk);
    if (start >= 0) return { shape: shapeOf(chunk[start]), start };
    this.#blanks += chunk.length;
    if (this.#blanks > mostBlanks) throw garbage('nothing but blank lines');
    return undefined;
  }
}

/** Returns the index of the first byte that is neither white space nor part of a byte order mark; -1 where there is none. */
function firstByte(chunk: Buffer): number {
  for (let index = 0; index < chunk.length; index += 1) if (!blanks.has(chunk[index] ?? 0)) return index;
  return -1;
}

const blanks: ReadonlySet<number> = new Set([0x20, 0x0a, 0x0d, 0x09, 0xef, 0xbb, 0xbf]);

/** Returns the format of a response by its first byte: JSON begins with a bracket, SSE with a field's name or a comment. */
function shapeOf(byte: number | undefined): Shape {
  if (byte === 0x7b || byte === 0x5b) return 'json';
  // d(ata), e(vent), i(d), r(etry), and the colon of a comment
  return byte === 0x64 || byte === 0x65 || byte === 0x69 || byte === 0x72 || byte === 0x3a ? 'sse' : 'other';
}

/** Number of bytes by which a message is recognised where a file is expected. */
const messageLength = 256;
const message =
  /^\s*(?:\{\s*("(error|message|msg|detail|code|object|type|status)"|\})|(?:data|event): ?[{\w]|<(?:!doctype|html)\b)/i;
const messageBegun =
  /^\s*(?:$|\{\s*(?:"[a-z]{0,7})?$|(?:d|da|dat|data|data:|e|ev|eve|even|event|event:) ?$|<[!a-z]{0,8}$)/i;

/**
 * Distinguishes an expected file from a message or events in its place. The content type alone is not enough, because errors come under many of
 * them, and no audio file begins like a message.
 */
export class FileFinder {
  readonly #type: string;
  #start = Buffer.alloc(0);

  constructor(answer: AnswerEvent | undefined) {
    this.#type = String(answer?.headers['content-type'] ?? '');
  }

  /** Returns true for a file, false for anything else, undefined while it may be either. */
  find(chunk: Buffer): boolean | undefined {
    if (/json|html|event-stream/i.test(this.#type)) return false;
    this.#start = Buffer.concat([this.#start, chunk.subarray(0, messageLength - this.#start.length)]);
    const text = this.#start.toString('latin1');
    if (message.test(text)) return false;
    return text.length < messageLength && messageBegun.test(text) ? undefined : true;
  }
}

/** Returns a collector for an error response; undefined for a status of success. Throws for a redirect, because none is followed. */
export function errorOf(answer: AnswerEvent): ErrorAnswer | undefined {
  if (answer.status >= 400) return new ErrorAnswer(answer);
  if (answer.status >= 300) throw garbage('a redirect');
  return undefined;
}

/** Collects the body of an error response, and converts it into the error for the client. */
export class ErrorAnswer {
  readonly #answer: AnswerEvent;
  readonly #chunks: Buffer[] = [];
  #length = 0;

  constructor(answer: AnswerEvent) {
    this.#answer = answer;
  }

  push(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    if (this.#length >= errorLimit) throw this.error();
  }

  end(): never {
    throw this.error();
  }

  /** Returns the error by what was received so far: the status is enough where the body is cut. */
  error(): GatewayError {
    return upstreamError(
      this.#answer.status,
      Buffer.concat(this.#chunks).toString('utf8'),
      this.#answer.headers,
    );
  }
}

/** Members of a chat response or of its first frame, in all formats. */
const replyMembers = [
  'choices',
  'content',
  'candidates',
  'output',
  'message',
  'promptFeedback',
  'usageMetadata',
];

/** Members by which providers, and proxies in front of them, report a failure under a status of success. */
const failureMembers = ['code', 'message', 'msg', 'detail', 'errors', 'base_resp', 'error_code', 'error_msg'];

/**
 * Returns the failure that a body, or the first frame of a stream, reports in place of a chat response; undefined where it is none. `event`: name
 * of the SSE event.
 */
export function failureIn(body: JsonObject, event?: string): GatewayError | undefined {
  const { type, object } = body;
  // `message` is an event without a name.
  const plain =
    !isNamed(event === undefined || event === 'message' ? body : { type: event, ...body }) &&
    failureMembers.some((name) => name in body) &&
    !replyMembers.some((name) => typeof body[name] === 'object' && body[name] !== null);
  return tellsError(body) || type === 'error' || event === 'error' || object === 'error' || plain
    ? upstreamError(200, JSON.stringify(body))
    : undefined;
}

/** Returns the JSON object of a frame, or the first one of its array; undefined where there is none. */
export function objectIn(data: string): JsonObject | undefined {
  let value: unknown;
  try {
    value = parseJson(data);
  } catch {
    return undefined;
  }
  const first: unknown = Array.isArray(value) ? value[0] : value;
  return isObject(first) ? first : undefined;
}

/** Throws the failure that one of the first frames of a chat stream reports. Frames that are no JSON are ignored here. */
export function checkFirstFrame({ data, event }: Frame): void {
  const body = objectIn(data);
  const failure = body === undefined ? undefined : failureIn(body, event);
  if (failure !== undefined) throw failure;
}

/** Texts of which every error frame of a stream contains one. */
export const errorMarks = ['"error"', 'event: error', 'event:error'] as const;

/**
 * Returns true for a frame by which a stream that has begun tells that it broke. An event of a kind of its own may speak of errors that are none of the
 * stream's.
 */
export function isErrorFrame({ data, event }: Frame): boolean {
  if (event === 'error') return true;
  if (!data.includes(errorMarks[0])) return false;
  const body = objectIn(data);
  if (body === undefined) return false;
  return (
    body.type === 'error' || body.object === 'error' || (typeof body.type !== 'string' && tellsError(body))
  );
}

/** Returns the error for a provider that sent something other than a response: an HTML page, plain text, an empty body. */
export function garbage(what: string): GatewayError {
  return new GatewayError('upstream_error', `The upstream sent ${what} instead of an answer.`, {
    origin: 'upstream',
  });
}

/** Reader of one response: status and headers, then bytes, then the end. Its methods throw the error for the client. */
export interface AnswerReader {
  answer(event: AnswerEvent): void;
  push(chunk: Buffer): void;
  end(): void;
  /** An event of a channel that responds with events. */
  event?(event: GatewayEvent): void;
  /** Returns the error whose response was incomplete when the connection broke. */
  failed(): GatewayError | undefined;
  /** Called at the end of the response, to emit the last events. `broken`: the response ends with an error. */
  over?(broken: boolean): void;
}

/** Feeds a provider's response to the reader that `make` returns. The stream has the events that the reader emits. */
export function readAnswer(
  source: Observable<GatewayEvent>,
  make: (emit: (event: GatewayEvent) => void) => AnswerReader,
): Observable<GatewayEvent> {
  return new Observable((subscriber) => {
    const reader = make((event) => subscriber.next(event));
    const over = new Subject<void>();
    return source.pipe(takeUntil(over)).subscribe(new Reading(subscriber, reader, over));
  });
}

/** Passes the events of one response to its reader. */
class Reading implements Observer<GatewayEvent> {
  readonly #subscriber: Subscriber<GatewayEvent>;
  readonly #reader: AnswerReader;

  /** Ends the source at once, also one that emits all its events synchronously on subscription. */
  readonly #over: Subject<void>;

  constructor(subscriber: Subscriber<GatewayEvent>, reader: AnswerReader, over: Subject<void>) {
    this.#subscriber = subscriber;
    this.#reader = reader;
    this.#over = over;
  }

  next(event: GatewayEvent): void {
    if (this.#subscriber.closed) return;
    try {
      if (event.type === 'answer') this.#reader.answer(event);
      else if (event.type === 'bytes') this.#reader.push(event.bytes);
      else if (this.#reader.event === undefined) this.#subscriber.next(event);
      else this.#reader.event(event);
    } catch (error) {
      this.#fail(error);
    }
  }

  error(error: unknown): void {
    if (!this.#subscriber.closed) this.#fail(this.#reader.failed() ?? error);
  }

  complete(): void {
    if (this.#subscriber.closed) return;
    try {
      this.#reader.end();
    } catch (error) {
      this.#fail(error);
      return;
    }
    this.#reader.over?.(false);
    this.#subscriber.complete();
  }

  #fail(error: unknown): void {
    this.#reader.over?.(true);
    this.#subscriber.error(error);
    this.#over.next();
  }
}
