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

/** Most bytes of an error answer that are read. */
const errorLimit = 64 * 1024;

/** What an answer turned out to be, whatever its content type claims. */
export type Shape = 'sse' | 'json' | 'other';

/** Most blank bytes that may stand before an answer. Some providers send an empty line now and then while they think. */
const mostBlanks = 64 * 1024;

/** Finds out what an answer is by the first of its bytes that is not blank, however it is cut. */
export class ShapeFinder {
  #blanks = 0;

  /** What the answer is, and where in this chunk it begins. Undefined for a blank chunk. Throws when nothing comes but those. */
  find(chunk: Buffer): { readonly shape: Shape; readonly start: number } | undefined {
    const start = firstByte(chunk);
    if (start >= 0) return { shape: shapeOf(chunk[start]), start };
    this.#blanks += chunk.length;
    if (this.#blanks > mostBlanks) throw garbage('nothing but blank lines');
    return undefined;
  }
}

/** Where the first byte stands that is neither white space nor part of a byte order mark; -1 when there is none. */
function firstByte(chunk: Buffer): number {
  for (let index = 0; index < chunk.length; index += 1) if (!blanks.has(chunk[index] ?? 0)) return index;
  return -1;
}

const blanks: ReadonlySet<number> = new Set([0x20, 0x0a, 0x0d, 0x09, 0xef, 0xbb, 0xbf]);

/** JSON begins with a bracket, SSE with a field's name or a comment. */
function shapeOf(byte: number | undefined): Shape {
  if (byte === 0x7b || byte === 0x5b) return 'json';
  // d(ata), e(vent), i(d), r(etry), and the colon of a comment
  return byte === 0x64 || byte === 0x65 || byte === 0x69 || byte === 0x72 || byte === 0x3a ? 'sse' : 'other';
}

/** Bytes in which a message shows that it is one, where a file was asked for. */
const messageLength = 256;
const message =
  /^\s*(?:\{\s*("(error|message|msg|detail|code|object|type|status)"|\})|(?:data|event): ?[{\w]|<(?:!doctype|html)\b)/i;
const messageBegun =
  /^\s*(?:$|\{\s*(?:"[a-z]{0,7})?$|(?:d|da|dat|data|data:|e|ev|eve|even|event|event:) ?$|<[!a-z]{0,8}$)/i;

/**
 * Tells a file that was asked for from a message, or events, in its place, however the answer is cut: errors are labelled as all kinds of
 * things, and sound begins with none of these words.
 */
export class FileFinder {
  readonly #type: string;
  #start = Buffer.alloc(0);

  constructor(answer: AnswerEvent | undefined) {
    this.#type = String(answer?.headers['content-type'] ?? '');
  }

  /** True for a file, false for what is none, undefined while it may be either. */
  find(chunk: Buffer): boolean | undefined {
    if (/json|html|event-stream/i.test(this.#type)) return false;
    this.#start = Buffer.concat([this.#start, chunk.subarray(0, messageLength - this.#start.length)]);
    const text = this.#start.toString('latin1');
    if (message.test(text)) return false;
    return text.length < messageLength && messageBegun.test(text) ? undefined : true;
  }
}

/** Where an answer's error is gathered; undefined when its status promises a reply. Throws for a redirect: none is followed. */
export function errorOf(answer: AnswerEvent): ErrorAnswer | undefined {
  if (answer.status >= 400) return new ErrorAnswer(answer);
  if (answer.status >= 300) throw garbage('a redirect');
  return undefined;
}

/** Gathers an error answer and says what the client shall be told. */
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

  /** What is known so far: the status alone says enough when the rest is cut. */
  error(): GatewayError {
    return upstreamError(
      this.#answer.status,
      Buffer.concat(this.#chunks).toString('utf8'),
      this.#answer.headers,
    );
  }
}

/** Members that a chat reply has, or the first frame of one, in whatever format. */
const replyMembers = [
  'choices',
  'content',
  'candidates',
  'output',
  'message',
  'promptFeedback',
  'usageMetadata',
];

/** Members by which providers, and proxies before them, tell of a failure under a status of success. */
const failureMembers = ['code', 'message', 'msg', 'detail', 'errors', 'base_resp', 'error_code', 'error_msg'];

/**
 * The failure that a body or a frame tells of, where it should be a chat reply or the beginning of one; undefined where it is none.
 * `event` is the name of the frame's event.
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

/** The object that a frame of a stream holds, or the first in its list; undefined when it holds none. */
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

/** Throws what one of the first frames of a chat stream tells of, where that is a failure. What is no JSON is for others to judge. */
export function checkFirstFrame({ data, event }: Frame): void {
  const body = objectIn(data);
  const failure = body === undefined ? undefined : failureIn(body, event);
  if (failure !== undefined) throw failure;
}

/** What stands in every frame by which a stream that has begun tells that it broke. */
export const errorMarks = ['"error"', 'event: error', 'event:error'] as const;

/** True for a frame by which a stream that has begun tells that it broke. An event of a kind of its own may speak of errors that are none of the stream's. */
export function isErrorFrame({ data, event }: Frame): boolean {
  if (event === 'error') return true;
  if (!data.includes(errorMarks[0])) return false;
  const body = objectIn(data);
  if (body === undefined) return false;
  return (
    body.type === 'error' || body.object === 'error' || (typeof body.type !== 'string' && tellsError(body))
  );
}

/** The provider sent something that is no answer: an HTML page, plain text, nothing at all. */
export function garbage(what: string): GatewayError {
  return new GatewayError('upstream_error', `The upstream sent ${what} instead of an answer.`, {
    origin: 'upstream',
  });
}

/** What takes in one answer: status and headers, then bytes, then the end. Its methods throw what the client shall be told. */
export interface AnswerReader {
  answer(event: AnswerEvent): void;
  push(chunk: Buffer): void;
  end(): void;
  /** An event of a channel that answers in events. */
  event?(event: GatewayEvent): void;
  /** The error that was being told when the connection broke. */
  failed(): GatewayError | undefined;
  /** The answer is over; `broken`: it ends with an error. What is still to be told is told now. */
  over?(broken: boolean): void;
}

/** Feeds a provider's answer to the reader that `make` gives; what the reader emits is the stream. */
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

/** Hands the events of one answer to its reader. */
class Reading implements Observer<GatewayEvent> {
  readonly #subscriber: Subscriber<GatewayEvent>;
  readonly #reader: AnswerReader;

  /** Ends the source at once, also one that gives all it has while it is being subscribed to. */
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
