import type { Observable } from 'rxjs';
import type { GatewayError, GatewayEvent, JsonObject, Reads, UpstreamRequest, Usage } from 'sluice';
import {
  cutShort,
  HeldBytes,
  parseObject,
  parseSse,
  splitSse,
  SseCutter,
  upstreamError,
  type AnswerEvent,
  type Call,
  type Codec,
  type Form,
  type Frame,
  type Loss,
  type Target,
} from 'sluice/internal';
import {
  errorOf,
  FileFinder,
  garbage,
  isErrorFrame,
  readAnswer,
  ShapeFinder,
  type ErrorAnswer,
} from './answer.ts';
import { findModel, renamed, Renamer, usageIn } from './bytes.ts';
import { DecodedAnswer } from './decode-reply.ts';
import { losesInto, plainHeaders } from './encode-request.ts';
import { withImages } from './images.ts';
import { marksOf, type MarkSearch } from './marks.ts';
import { ReplyHead } from './reply-head.ts';
import { StreamOpening } from './stream-opening.ts';

/**
 * The client's own bytes for a channel of the same format: untouched, or with nothing changed but what the edits say and what no provider
 * would take. What the model cannot be asked for is added to `losses`.
 */
export function passRequest(
  call: Call,
  target: Target,
  reads: Reads,
  losses: Loss[],
): { readonly request: UpstreamRequest; readonly edited: { readonly usage: boolean } } {
  const { codec, wire, stream } = call;
  const { body, usage } = passedBody(call, target, reads, losses);
  const { path, query, headers } = codec.passThrough(target.model, stream, plainHeaders(call));
  const request: UpstreamRequest = {
    operation: call.operation,
    format: codec.format,
    model: target.model,
    stream,
    path,
    query: query ?? {},
    headers: headers ?? {},
    body: body ?? wire.bytes,
  };
  return { request, edited: { usage } };
}

/** Undefined: the bytes go as they came. */
function passedBody(
  call: Call,
  target: Target,
  reads: Reads,
  losses: Loss[],
): { readonly body: UpstreamRequest['body'] | undefined; readonly usage: boolean } {
  const { codec, edits, wire } = call;
  if (wire.params.form !== undefined)
    return { body: renamedForm(wire.params.form, target.model), usage: false };
  const named = call.body.model === call.askedModel;
  const asking = reads !== 'nothing' && call.stream && codec.askUsage !== undefined;
  const added = asking ? codec.askUsage?.(call.body) : undefined;
  const usage = added !== undefined;
  // A count may name the model inside: only the format knows where.
  const inside = call.operation === 'count-tokens' && !named && target.model !== call.askedModel;
  const lose = losesInto(losses, call, codec);
  const official = (one: JsonObject): JsonObject => codec.official?.(one, target.traits, lose) ?? one;
  // Not spread before it must be: whoever reads all members of a long body has it parsed.
  const { body } = call;
  if (edits.settings === undefined && edits.body === undefined && !inside && official(body) === body) {
    const spliced = splicedBody(call, named ? target.model : undefined, added);
    if (spliced !== undefined) return { body: spliced === wire.bytes ? undefined : spliced, usage };
  }
  const { reasoning, maxOutput } = edits.settings ?? {};
  const settings = {
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(maxOutput === undefined ? {} : { maxOutput }),
  };
  const asked = added === undefined ? body : { ...body, ...added };
  const patched = codec.patch(asked, { model: target.model, settings }, target.traits, lose);
  return { body: JSON.stringify(official(patched)), usage };
}

/**
 * The client's bytes with the model's name replaced and members added, all else as it was. Undefined where that cannot be done in the
 * bytes: the place of the name is not found, or a member of the client's has to change.
 */
function splicedBody(
  { body, wire }: Call,
  model: string | undefined,
  added: JsonObject | undefined,
): Buffer | undefined {
  const names = added === undefined ? [] : Object.keys(added);
  if (names.some((name) => Object.hasOwn(body, name))) return undefined;
  let { bytes } = wire;
  if (model !== undefined && model !== body.model) {
    const span = wire.outline?.model ?? findModel(bytes);
    if (span === undefined) return undefined;
    const name = Buffer.from(JSON.stringify(model));
    bytes = Buffer.concat([bytes.subarray(0, span.start), name, bytes.subarray(span.end)]);
  }
  if (names.length === 0) return bytes;
  const end = bytes.lastIndexOf('}');
  const members = names.map((name) => `,${JSON.stringify(name)}:${JSON.stringify(added?.[name])}`).join('');
  return Buffer.concat([bytes.subarray(0, end), Buffer.from(members), bytes.subarray(end)]);
}

/** The client's form with the model's name replaced; everything else keeps its place. */
function renamedForm(form: Form, model: string): Form {
  return form.map((part) => ('value' in part && part.name === 'model' ? { ...part, value: model } : part));
}

interface PassOptions {
  readonly call: Call;
  readonly target: Target;
  /** The stream tells usage only because the gateway asked: the client must not see that frame. */
  readonly swallowUsage: boolean;
}

/** A provider's answer on its way to a client of the same format. */
export function passReply(source: Observable<GatewayEvent>, options: PassOptions): Observable<GatewayEvent> {
  return readAnswer(source, (emit) => new PassedAnswer(options, emit));
}

/** Takes in the rest of an answer. */
interface Sink {
  push(chunk: Buffer): void;
  end(): void;
}

/** Decides by the first bytes how an answer goes on, and watches it pass. */
class PassedAnswer {
  readonly #options: PassOptions;
  readonly #emit: (event: GatewayEvent) => void;
  /** Bytes that do not yet say what the answer is. */
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

  /** A file passes as it comes. An error may be told in place of one, with a status of success all the same. */
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
    const { call, target } = this.#options;
    // Another name changes the length that the provider announced.
    if (this.#answer !== undefined && target.model === call.askedModel) this.#emit(this.#answer);
    this.#goOn(new PassedWhole(this.#options, this.#emit, !isFramed(this.#answer)));
  }

  /** What comes in another mode than was asked for is decoded, and so is what does not look like a reply: it is judged as a whole. */
  #decoded(): DecodedAnswer {
    const { call, target } = this.#options;
    return new DecodedAnswer({ codec: call.codec, traits: target.traits, stream: call.stream }, this.#emit);
  }

  #goOn(sink: Sink): void {
    this.#sink = sink;
    sink.push(this.#unclear.take());
  }

  /** The error that was being told when the connection broke. */
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

/** Frames of a stream as they came. Those that open it are parsed, and of the others those with a mark. */
class PassedStream {
  readonly #cutter = new SseCutter();
  readonly #codec: Codec;
  readonly #marks: MarkSearch;
  readonly #rename: string | undefined;
  readonly #swallow: boolean;
  readonly #emit: (event: GatewayEvent) => void;
  readonly #tap: ReturnType<Codec['usageTap']>;
  /** What came before the first word. The provider may still fail, and another channel answer instead. */
  #before: HeldBytes | undefined = new HeldBytes();
  #opening: StreamOpening | undefined;
  #complete = false;

  constructor({ call, target, swallowUsage }: PassOptions, emit: (event: GatewayEvent) => void) {
    this.#codec = call.codec;
    this.#marks = marksOf(call.codec.marks);
    this.#tap = call.codec.usageTap();
    this.#rename = target.model === call.askedModel ? undefined : call.askedModel;
    this.#swallow = swallowUsage;
    this.#emit = emit;
    this.#opening = new StreamOpening(call.codec, target.traits);
  }

  push(chunk: Buffer): void {
    const run = this.#cutter.push(chunk);
    if (run !== undefined) this.#run(run);
  }

  end(): void {
    const rest = this.#cutter.end();
    if (
      rest !== undefined &&
      parseSse(rest).every(({ data }) => data === '[DONE]' || parseObject(data) !== undefined)
    ) {
      this.#run(Buffer.concat([rest, Buffer.from('\n\n')]));
    }
    if (!this.#complete) throw cutShort();
    if (this.#opening === undefined) return;
    if (!this.#opening.opened) throw garbage('an empty stream');
    // Complete, and without a word.
    this.#opening = undefined;
    this.#pass(Buffer.alloc(0));
  }

  #run(run: Buffer): void {
    if (this.#opening === undefined && !this.#marks.standIn(run)) {
      this.#pass(run);
      return;
    }
    const usages: Usage[] = [];
    let from = 0;
    let at = 0;
    try {
      for (const bytes of splitSse(run)) {
        if (this.#look(bytes, usages) === 'swallowed') {
          this.#pass(run.subarray(from, at));
          from = at + bytes.length;
        }
        at += bytes.length;
      }
    } finally {
      // All of it, or what came before the frame that told of an error.
      this.#pass(run.subarray(from, at));
      for (const usage of usages) this.#emit({ type: 'usage', usage });
    }
  }

  /** Reads a frame, where it has to be read. Throws the error that it tells. */
  #look(bytes: Buffer, usages: Usage[]): 'swallowed' | undefined {
    const opening = this.#opening;
    const marked = this.#marks.standIn(bytes);
    if (opening === undefined && !marked) return undefined;
    let swallowed = false;
    for (const frame of parseSse(bytes)) {
      if (marked) {
        if (isErrorFrame(frame)) throw upstreamError(200, frame.data);
        this.#complete ||= this.#completes(frame);
        const usage = this.#usageIn(frame);
        if (usage !== undefined) {
          usages.push(usage);
          swallowed ||= this.#swallow && this.#codec.isUsageOnly?.(frame.data) === true;
        }
      }
      opening?.frame(frame);
    }
    if (opening?.isOver(bytes.length) === true) this.#opening = undefined;
    return swallowed ? 'swallowed' : undefined;
  }

  #completes(frame: Frame): boolean {
    const { data, event } = frame;
    const { terminal } = this.#codec.marks;
    if (!terminal.some((mark) => data.includes(mark) || event?.includes(mark) === true)) return false;
    return this.#codec.endsStream?.(frame) ?? true;
  }

  #usageIn({ data }: Frame): Usage | undefined {
    return this.#codec.marks.usage.some((mark) => data.includes(mark)) ? this.#tap.read(data) : undefined;
  }

  #pass(run: Buffer): void {
    let bytes = run;
    if (this.#before !== undefined) {
      this.#before.push(run);
      if (this.#opening !== undefined) return;
      bytes = this.#before.take();
      this.#before = undefined;
    }
    if (bytes.length === 0) return;
    if (this.#rename !== undefined) bytes = renamed(bytes, this.#codec.marks.model ?? 'model', this.#rename);
    this.#emit({ type: 'frames', format: this.#codec.format, bytes });
  }
}

/** How much of a whole reply's beginning and of its end is remembered to find its usage: providers put it in either place. */
const rememberedLength = 16 * 1024;

/** A whole reply, chunk by chunk. */
class PassedWhole {
  readonly #end: JsonEnd | undefined;
  readonly #call: Call;
  readonly #codec: Codec;
  readonly #emit: (event: GatewayEvent) => void;
  readonly #renamer: Renamer | undefined;
  readonly #head = new HeldBytes();
  /** What came last: at least so much as is remembered, where there was so much. */
  #tail = new HeldBytes();
  #beforeTail: HeldBytes | undefined;
  /** The last byte that is not white space closes an object. */
  #isClosed = false;

  /** `endsByClose`: nothing but the end of the connection says that it is whole. */
  constructor({ call, target }: PassOptions, emit: (event: GatewayEvent) => void, endsByClose: boolean) {
    this.#end = endsByClose ? new JsonEnd() : undefined;
    this.#call = call;
    this.#codec = call.codec;
    this.#renamer =
      target.model === call.askedModel
        ? undefined
        : new Renamer(call.codec.marks.model ?? 'model', call.askedModel);
    this.#emit = emit;
  }

  push(chunk: Buffer): void {
    this.#remember(chunk);
    this.#end?.push(chunk);
    this.#pass(this.#renamer === undefined ? chunk : this.#renamer.push(chunk));
  }

  end(): void {
    if (this.#renamer !== undefined) this.#pass(this.#renamer.end());
    // A connection that only closes does not tell a cut reply from a complete one.
    if (!this.#isClosed || this.#end?.reached === false) throw cutShort();
    const told = usageIn(this.#last(), this.#codec) ?? usageIn(this.#head.take(), this.#codec);
    const usage = withImages(told, this.#call);
    if (usage !== undefined) this.#emit({ type: 'usage', usage });
  }

  /** The end of the reply, no more of it than is remembered where it is long: to join all of a 50 KB reply took 4 % of its call. */
  #last(): Buffer {
    const tail = this.#tail.take();
    const missing = rememberedLength - tail.length;
    if (this.#beforeTail === undefined || missing <= 0) return tail;
    return Buffer.concat([this.#beforeTail.take().subarray(-missing), tail]);
  }

  #pass(bytes: Buffer): void {
    if (bytes.length > 0) this.#emit({ type: 'bytes', bytes });
  }

  #remember(chunk: Buffer): void {
    const last = lastByte(chunk);
    if (last !== undefined) this.#isClosed = last === 0x7d;
    if (this.#head.length < rememberedLength) this.#head.push(chunk);
    this.#tail.push(chunk);
    if (this.#tail.length >= rememberedLength) {
      this.#beforeTail = this.#tail;
      this.#tail = new HeldBytes();
    }
  }
}

/** The last byte that is not white space; undefined when there is none. */
function lastByte(bytes: Buffer): number | undefined {
  for (let index = bytes.length - 1; index >= 0; index -= 1) {
    const byte = bytes[index];
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return byte;
  }
  return undefined;
}

/** True for an answer whose end does not have to be told from a broken connection. */
function isFramed(answer: AnswerEvent | undefined): boolean {
  return (
    answer?.headers['content-length'] !== undefined || answer?.headers['transfer-encoding'] !== undefined
  );
}

/** Follows JSON text, piece by piece, to the bracket that ends it. */
class JsonEnd {
  #depth = 0;
  #begun = false;
  #quoted = false;
  #escaped = false;

  /** True when every bracket that was opened has been closed. */
  get reached(): boolean {
    return this.#begun && this.#depth === 0;
  }

  push(chunk: Buffer): void {
    for (const byte of chunk) {
      if (this.#escaped) this.#escaped = false;
      else if (this.#quoted) {
        if (byte === 0x5c) this.#escaped = true;
        else if (byte === 0x22) this.#quoted = false;
      } else if (byte === 0x22) this.#quoted = true;
      else if (byte === 0x7b || byte === 0x5b) {
        this.#begun = true;
        this.#depth += 1;
      } else if (byte === 0x7d || byte === 0x5d) this.#depth -= 1;
    }
  }
}
