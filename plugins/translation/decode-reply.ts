/** Decodes a provider's response into events: SSE, streams of JSON, whole JSON bodies, files and errors. */
import type { Observable } from 'rxjs';
import {
  GatewayError,
  isObject,
  parseJson,
  type GatewayEvent,
  type JsonObject,
  type ModelTraits,
  type AnswerEvent,
  HeldBytes,
  WholeBytes,
} from 'sluice';
import {
  truncatedResponse,
  unusableResponse,
  upstreamError,
  parseSse,
  SseCutter,
  type Codec,
  type StreamDecoder,
  type BytesDecoder,
} from 'sluice/channel-kit';
import { JsonCutter, nestsTooDeeply } from 'sluice/internal';
import {
  checkFirstFrame,
  errorOf,
  FileFinder,
  failureIn,
  garbage,
  ShapeFinder,
  type ErrorAnswer,
  readAnswer,
} from './answer.ts';
import { undoSpelling, type Undoing } from './undo-spelling.ts';
import { UsageEstimator } from './usage-estimator.ts';

/** Default maximum number of bytes of a whole response. */
export const defaultWholeLimit = 256 * 1024 * 1024;

/** Options for decoding a response. */
export interface DecodeOptions {
  /** Maximum number of bytes of a whole response. Default: 256 MiB. */
  readonly wholeLimit?: number | undefined;
  readonly codec: Codec;
  readonly traits: ModelTraits;
  /** True where a stream was requested. The first bytes of the response decide whether it is one. */
  readonly stream: boolean;
  /** Estimates the input tokens of a chat, for providers that do not report usage. */
  readonly estimateInput?: () => number;
  /** Names that the request changed and that must be changed back in the response. */
  readonly undoing?: Undoing;
}

/** Returns the events of a provider's response. */
export function decodeReply(
  source: Observable<GatewayEvent>,
  options: DecodeOptions,
): Observable<GatewayEvent> {
  const { undoing } = options;
  return readAnswer(
    source,
    (emit) => new DecodedAnswer(options, undoing === undefined ? emit : undoSpelling(undoing, emit)),
  );
}

/** Decodes one response: a stream frame by frame, a whole response when it is complete, an error response into an error. */
export class DecodedAnswer {
  readonly #options: DecodeOptions;
  readonly #emit: (event: GatewayEvent) => void;
  readonly #used: UsageEstimator | undefined;
  readonly #shape = new ShapeFinder();
  #error: ErrorAnswer | undefined;
  /** For a response that may be a file: its decoder, the test for a file, and the bytes that are held until the test is decided. */
  #file: { readonly sink: BytesAnswer; readonly finder: FileFinder; readonly held: HeldBytes } | undefined;
  #sink: { push(chunk: Buffer): void; end(): void } | undefined;
  #gaveEvents = false;

  constructor(options: DecodeOptions, emit: (event: GatewayEvent) => void) {
    this.#options = options;
    const { codec, estimateInput } = options;
    const used =
      codec.operation === 'chat' && estimateInput !== undefined
        ? new UsageEstimator(estimateInput)
        : undefined;
    this.#used = used;
    this.#emit =
      used === undefined
        ? emit
        : (event) => {
            used.event(event);
            emit(event);
          };
  }

  answer(event: AnswerEvent): void {
    this.#error = errorOf(event);
    const decoder = this.#options.codec.decodeBytes?.(this.#options.traits);
    if (decoder === undefined) return;
    this.#file = {
      sink: new BytesAnswer(decoder, this.#emit),
      finder: new FileFinder(event),
      held: new HeldBytes(),
    };
  }

  push(chunk: Buffer): void {
    if (this.#error !== undefined) {
      this.#error.push(chunk);
      return;
    }
    if (this.#sink !== undefined) {
      this.#sink.push(chunk);
      return;
    }
    if (this.#file !== undefined) {
      this.#file.held.push(chunk);
      this.#sort(this.#file.finder.find(chunk));
      return;
    }
    const found = this.#shape.find(chunk);
    if (found === undefined) return;
    if (found.shape === 'other') throw garbage('something that is neither JSON nor a stream');
    this.#sink = this.#choose(found.shape);
    this.#sink.push(chunk.subarray(found.start));
  }

  event(event: GatewayEvent): void {
    this.#gaveEvents = true;
    this.#emit(event);
  }

  end(): void {
    if (this.#error !== undefined) throw this.#error.error();
    if (this.#gaveEvents) return;
    if (this.#file !== undefined && this.#file.held.length > 0) this.#sort(true);
    if (this.#sink === undefined) throw garbage('an empty body');
    this.#sink.end();
  }

  /** Returns the error whose response was incomplete when the connection broke. */
  failed(): GatewayError | undefined {
    return this.#error?.error();
  }

  /** Emits an estimated usage where none was reported. Not after a failure before the first text, because another channel may still respond. */
  over(broken: boolean): void {
    const usage = broken && this.#used?.spoke !== true ? undefined : this.#used?.missingUsage();
    if (usage !== undefined) this.#emit({ type: 'usage', usage });
  }

  /** Decides between the file decoder and the format by the first byte, once the test for a file has a result. */
  #sort(isFile: boolean | undefined): void {
    const file = this.#file;
    if (isFile === undefined || file === undefined) return;
    this.#file = undefined;
    if (isFile) this.#sink = file.sink;
    this.push(file.held.take());
  }

  #choose(shape: 'sse' | 'json'): { push(chunk: Buffer): void; end(): void } {
    const { codec, traits, stream } = this.#options;
    const decoder = codec.decodeStream?.(traits);
    if (shape === 'sse') {
      if (decoder === undefined) throw garbage('a stream');
      return new SseAnswer(decoder, codec.operation === 'chat', this.#emit);
    }
    // generateContent streams may come as an array or as lines; for the other formats JSON is a whole reply.
    if (stream && decoder !== undefined && codec.streamsAsJson === true)
      return new JsonStreamAnswer(decoder, this.#emit);
    return new WholeAnswer(this.#options, this.#emit);
  }
}

class BytesAnswer {
  readonly #decoder: BytesDecoder;
  readonly #emit: (event: GatewayEvent) => void;

  constructor(decoder: BytesDecoder, emit: (event: GatewayEvent) => void) {
    this.#decoder = decoder;
    this.#emit = emit;
  }

  push(chunk: Buffer): void {
    for (const event of this.#decoder.chunk(chunk)) this.#emit(event);
  }

  end(): void {
    for (const event of this.#decoder.end()) this.#emit(event);
  }
}

class SseAnswer {
  readonly #cutter = new SseCutter();
  readonly #decoder: StreamDecoder;
  readonly #isChat: boolean;
  readonly #emit: (event: GatewayEvent) => void;
  #begun = false;

  constructor(decoder: StreamDecoder, isChat: boolean, emit: (event: GatewayEvent) => void) {
    this.#decoder = decoder;
    this.#isChat = isChat;
    this.#emit = emit;
  }

  push(chunk: Buffer): void {
    const run = this.#cutter.push(chunk);
    if (run !== undefined) this.#run(run);
  }

  end(): void {
    const rest = this.#cutter.end();
    if (rest !== undefined) {
      try {
        this.#run(rest);
      } catch (error) {
        // No blank line follows the last frame. If it cannot be parsed, the connection broke inside of it.
        throw error instanceof GatewayError && error.code === 'upstream_error' ? truncatedResponse() : error;
      }
    }
    this.#pass(this.#decoder.end());
    if (!this.#begun && this.#isChat) throw garbage('an empty stream');
  }

  #run(run: Buffer): void {
    for (const frame of parseSse(run)) {
      if (!this.#begun && this.#isChat) checkFirstFrame(frame);
      this.#pass(this.#decoder.frame(frame));
    }
  }

  #pass(events: readonly GatewayEvent[]): void {
    if (events.length > 0) this.#begun = true;
    for (const event of events) this.#emit(event);
  }
}

class JsonStreamAnswer {
  readonly #cutter = new JsonCutter();
  readonly #decoder: StreamDecoder;
  readonly #emit: (event: GatewayEvent) => void;

  constructor(decoder: StreamDecoder, emit: (event: GatewayEvent) => void) {
    this.#decoder = decoder;
    this.#emit = emit;
  }

  push(chunk: Buffer): void {
    for (const frame of this.#cutter.push(chunk))
      for (const event of this.#decoder.frame(frame)) this.#emit(event);
  }

  end(): void {
    if (this.#cutter.unfinished) throw truncatedResponse();
    for (const event of this.#decoder.end()) this.#emit(event);
  }
}

class WholeAnswer {
  readonly #codec: Codec;
  readonly #traits: ModelTraits;
  readonly #emit: (event: GatewayEvent) => void;
  readonly #whole: WholeBytes;

  constructor({ codec, traits, wholeLimit }: DecodeOptions, emit: (event: GatewayEvent) => void) {
    this.#codec = codec;
    this.#traits = traits;
    this.#whole = new WholeBytes(wholeLimit ?? defaultWholeLimit);
    this.#emit = emit;
  }

  push(chunk: Buffer): void {
    this.#whole.push(chunk);
  }

  end(): void {
    for (const event of this.#codec.decodeWhole(this.#parse(), this.#traits)) this.#emit(event);
  }

  #parse(): JsonObject {
    const text = this.#whole.take().toString('utf8');
    let value: unknown;
    try {
      value = parseJson(text);
    } catch {
      throw nestsTooDeeply(text)
        ? unusableResponse('sent JSON that is nested too deeply')
        : truncatedResponse();
    }
    const body: unknown = Array.isArray(value) ? value[0] : value;
    if (!isObject(body)) throw garbage('JSON that is not an object');
    if (this.#codec.tellsErrors !== true && (isObject(body.error) || body.type === 'error'))
      throw upstreamError(200, text);
    const failure = this.#codec.operation === 'chat' ? failureIn(body) : undefined;
    if (failure !== undefined) throw failure;
    return body;
  }
}
