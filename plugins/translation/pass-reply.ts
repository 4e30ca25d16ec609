import type { Observable } from 'rxjs';
import { type GatewayError, type GatewayEvent, type AnswerEvent, HeldBytes } from 'sluice';
import { errorOf, FileFinder, garbage, readAnswer, ShapeFinder, type ErrorAnswer } from './answer.ts';
import { DecodedAnswer } from './decode-reply.ts';
import type { PassOptions } from './pass-options.ts';
import { PassedStream } from './passed-stream.ts';
import { PassedWhole } from './passed-whole.ts';
import { ReplyHead } from './reply-head.ts';
import { RespelledWhole, wordsOf } from './respelled.ts';

/** Returns a provider's answer on its way to a client of the same format. */
export function passReply(source: Observable<GatewayEvent>, options: PassOptions): Observable<GatewayEvent> {
  return readAnswer(source, (emit) => new PassedAnswer(options, emit));
}

/** Receives the rest of a response. */
interface Sink {
  push(chunk: Buffer): void;
  end(): void;
}

/** Decides by the first bytes how an answer goes on, and watches it pass. */
class PassedAnswer {
  readonly #options: PassOptions;
  readonly #emit: (event: GatewayEvent) => void;
  /** Bytes that do not yet show what the response is. */
  readonly #unclear = new HeldBytes();
  readonly #finder = new ShapeFinder();
  #file: FileFinder | undefined;
  #head: ReplyHead | undefined;
  #answer: AnswerEvent | undefined;
  #error: ErrorAnswer | undefined;
  #sink: Sink | undefined;

  constructor(options: PassOptions, emit: (event: GatewayEvent) => void) {
    this.#options = options;
    this.#emit = emit;
  }

  answer(event: AnswerEvent): void {
    this.#answer = event;
    this.#error = errorOf(event);
    this.#sink = this.#error;
    const { call } = this.#options;
    if (!call.stream && call.codec.replyKind?.(call.body) !== undefined) this.#file = new FileFinder(event);
  }

  push(chunk: Buffer): void {
    if (this.#sink !== undefined) {
      this.#sink.push(chunk);
      return;
    }
    this.#unclear.push(chunk);
    if (this.#file !== undefined) {
      this.#sort(this.#file.find(chunk));
      return;
    }
    if (this.#head !== undefined) {
      this.#weigh(this.#head.push(chunk));
      return;
    }
    const found = this.#finder.find(chunk);
    if (found === undefined) return;
    if (found.shape === 'other') throw garbage('something that is neither JSON nor a stream');
    this.#begin(found.shape, chunk.subarray(found.start));
  }

  end(): void {
    if (this.#sink === undefined && this.#file !== undefined && this.#unclear.length > 0) this.#sort(true);
    if (this.#sink === undefined && this.#head !== undefined) this.#weigh(this.#head.end());
    if (this.#sink === undefined) throw garbage('an empty body');
    this.#sink.end();
  }

  /** Passes a file through, or handles an error in place of the file, which can have a status of success. */
  #sort(isFile: boolean | undefined): void {
    if (isFile === undefined) return;
    this.#file = undefined;
    if (isFile) {
      if (this.#answer !== undefined) this.#emit(this.#answer);
      this.#goOn(new PassedBytes(this.#emit));
    } else this.push(this.#unclear.take());
  }

  /** Decides by the first bytes that are not blank. Only a whole reply has to show more of itself. */
  #begin(shape: 'sse' | 'json', start: Buffer): void {
    const { call } = this.#options;
    if (shape === 'sse' && call.stream) {
      this.#goOn(new PassedStream(this.#options, this.#emit));
    } else if (shape === 'json' && !call.stream && call.codec.replyKind?.(call.body) === undefined) {
      this.#head = new ReplyHead(call.codec);
      this.#weigh(this.#head.push(start));
    } else this.#goOn(this.#decoded());
  }

  #weigh(isReply: boolean | undefined): void {
    if (isReply === undefined) return;
    if (!isReply) {
      this.#goOn(this.#decoded());
      return;
    }
    const { call, target, wholeLimit } = this.#options;
    const words = wordsOf(call, target);
    const isSame = target.model === call.askedModel && words === undefined;
    // Another name, or other words, change the length that the provider announced.
    if (this.#answer !== undefined && isSame) this.#emit(this.#answer);
    const whole = new PassedWhole(this.#options, this.#emit, !isFramed(this.#answer));
    this.#goOn(words === undefined ? whole : new RespelledWhole(words, whole, wholeLimit));
  }

  /** Returns a decoder for a response in another mode than requested, and for one that does not look like a response and is judged as a whole. */
  #decoded(): DecodedAnswer {
    const { call, target, wholeLimit } = this.#options;
    const { codec, stream } = call;
    return new DecodedAnswer({ codec, traits: target.traits, stream, wholeLimit }, this.#emit);
  }

  #goOn(sink: Sink): void {
    this.#sink = sink;
    sink.push(this.#unclear.take());
  }

  /** Returns the error that the provider was sending when the connection broke. */
  failed(): GatewayError | undefined {
    return this.#error?.error();
  }
}

/** A reply that is no JSON, as it comes. */
class PassedBytes {
  readonly #emit: (event: GatewayEvent) => void;

  constructor(emit: (event: GatewayEvent) => void) {
    this.#emit = emit;
  }

  push(bytes: Buffer): void {
    this.#emit({ type: 'bytes', bytes });
  }

  end(): void {}
}

/** Returns true for a response whose end cannot be confused with a broken connection. */
function isFramed(answer: AnswerEvent | undefined): boolean {
  return (
    answer?.headers['content-length'] !== undefined || answer?.headers['transfer-encoding'] !== undefined
  );
}
