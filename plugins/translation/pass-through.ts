import type { Observable } from 'rxjs';
import {
  appended,
  cutShort,
  parseObject,
  parseSse,
  saysSomething,
  SseCutter,
  upstreamError,
  type AnswerEvent,
  type Call,
  type Codec,
  type Form,
  type GatewayError,
  type GatewayEvent,
  type JsonObject,
  type Loss,
  type Reads,
  type StreamDecoder,
  type Target,
  type UpstreamRequest,
} from '#sluice';
import {
  checkFirstFrame,
  errorOf,
  garbage,
  isNoFile,
  shapeOf,
  type ErrorAnswer,
  readAnswer,
} from './answer.ts';
import { DecodedAnswer } from './decode-reply.ts';
import { losesInto, plainHeaders } from './encode-request.ts';
import { withImages } from './images.ts';
import { findModel, renamed, Renamer, usageIn } from './bytes.ts';

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
  const asked = asking ? (codec.askUsage?.(call.body) ?? call.body) : call.body;
  const usage = asked !== call.body;
  // A count may name the model inside: only the format knows where.
  const inside = call.operation === 'count-tokens' && !named && target.model !== call.askedModel;
  const lose = losesInto(losses, call, codec);
  const official = (one: JsonObject): JsonObject => codec.official?.(one, target.traits, lose) ?? one;
  if (edits.settings === undefined && edits.body === undefined && !inside && official(asked) === asked) {
    const spliced = splicedBody(call, named ? target.model : undefined, asked);
    if (spliced !== undefined) return { body: spliced === wire.bytes ? undefined : spliced, usage };
  }
  const { reasoning, maxOutput } = edits.settings ?? {};
  const settings = {
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(maxOutput === undefined ? {} : { maxOutput }),
  };
  const patched = codec.patch(asked, { model: target.model, settings }, target.traits, lose);
  return { body: JSON.stringify(official(patched)), usage };
}

/**
 * The client's bytes with the model's name replaced and the members of `asked` that the client did not write added, all else as it was.
 * Undefined where that cannot be done in the bytes: the model is named twice, or a member of the client's has to change.
 */
function splicedBody({ body, wire }: Call, model: string | undefined, asked: JsonObject): Buffer | undefined {
  const added = asked === body ? [] : Object.keys(asked).filter((key) => asked[key] !== body[key]);
  if (added.some((key) => Object.hasOwn(body, key))) return undefined;
  let { bytes } = wire;
  if (model !== undefined) {
    const span = findModel(bytes);
    if (span === undefined) return undefined;
    if (model !== body.model) {
      const name = Buffer.from(JSON.stringify(model));
      bytes = Buffer.concat([bytes.subarray(0, span.start), name, bytes.subarray(span.end)]);
    }
  }
  if (added.length === 0) return bytes;
  const end = bytes.lastIndexOf('}');
  const members = added.map((key) => `,${JSON.stringify(key)}:${JSON.stringify(asked[key])}`).join('');
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

/** Decides by the first bytes how an answer goes on, and watches it pass. */
class PassedAnswer {
  readonly #options: PassOptions;
  readonly #emit: (event: GatewayEvent) => void;
  /** Bytes that do not yet say what the answer is. */
  readonly #unclear: Buffer[] = [];
  #unclearLength = 0;
  #answer: AnswerEvent | undefined;
  #error: ErrorAnswer | undefined;
  #sink: { push(chunk: Buffer): void; end(): void } | undefined;

  constructor(options: PassOptions, emit: (event: GatewayEvent) => void) {
    this.#options = options;
    this.#emit = emit;
  }

  answer(event: AnswerEvent): void {
    this.#answer = event;
    this.#error = errorOf(event);
    this.#sink = this.#error;
  }

  push(chunk: Buffer): void {
    if (this.#sink !== undefined) {
      this.#sink.push(chunk);
      return;
    }
    const plain = this.#plain(chunk);
    if (plain !== undefined) {
      this.#sink = plain;
      plain.push(chunk);
      return;
    }
    this.#unclear.push(chunk);
    this.#unclearLength += chunk.length;
    this.#decide(false);
  }

  end(): void {
    if (this.#sink === undefined) this.#decide(true);
    if (this.#sink === undefined) throw garbage('an empty body');
    this.#sink.end();
  }

  /** Finds the sink for what has come so far, unless more may say more. */
  #decide(isAll: boolean): void {
    const first = this.#unclear.find((chunk) => shapeOf(chunk) !== undefined);
    const shape = first === undefined ? undefined : shapeOf(first);
    if (shape === undefined) return;
    const start = joined(this.#unclear);
    const sink = this.#choose(shape, start, isAll || this.#unclearLength >= clearLength);
    if (sink === undefined) return;
    this.#sink = sink;
    this.#unclear.length = 0;
    sink.push(start);
  }

  /** The error that was being told when the connection broke. */
  failed(): GatewayError | undefined {
    return this.#error?.error();
  }

  /** The sink for a reply that is no JSON, where the client wants such a one. An error may be told with a status of success all the same. */
  #plain(first: Buffer): PassedBytes | undefined {
    const { call } = this.#options;
    if (call.stream || call.codec.replyKind?.(call.body) === undefined) return undefined;
    if (isNoFile(first, String(this.#answer?.headers['content-type'] ?? ''))) return undefined;
    if (this.#answer !== undefined) this.#emit(this.#answer);
    return new PassedBytes(this.#emit);
  }

  /**
   * The sink for an answer that begins like this; undefined where more of it has to be seen. One that comes in the other mode than was
   * asked for is decoded, and so is what does not look like a reply: it is judged as a whole.
   */
  #choose(
    shape: 'sse' | 'json' | 'other',
    start: Buffer,
    isEnough: boolean,
  ): { push(chunk: Buffer): void; end(): void } | undefined {
    const { call, target } = this.#options;
    if (shape === 'other') throw garbage('something that is neither JSON nor a stream');
    if (shape === 'sse' && call.stream) return new PassedStream(this.#options, this.#emit);
    const wantsJson = !call.stream && call.codec.replyKind?.(call.body) === undefined;
    const isReply = wantsJson && shape === 'json' ? beginsAsReply(call.codec, start, isEnough) : false;
    if (isReply === undefined) return undefined;
    if (isReply) {
      // Another name changes the length that the provider announced.
      if (this.#answer !== undefined && target.model === call.askedModel) this.#emit(this.#answer);
      return new PassedWhole(this.#options, this.#emit, !isFramed(this.#answer));
    }
    return new DecodedAnswer({ codec: call.codec, traits: target.traits, stream: call.stream }, this.#emit);
  }
}

/** Bytes in which a whole reply shows that it is one, when it does. */
const clearLength = 4096;

/** What every chat reply has, in one format or another, and what none has that is sound. JSON escapes quotes: these are no words of an answer. */
const replyMarks =
  /"(?:choices|content|candidates|output)"\s*:\s*\[|"object"\s*:\s*"response"|"promptFeedback"/;
const failureMarks = /"error"\s*:\s*["{]/;
/** What may tell of a failure where nothing tells of a reply. */
const doubtfulMarks =
  /"(?:code|message|msg|detail|errors|base_resp|error_code|error_msg|error|title)"\s*:|^\s*\{\s*\}\s*$/;

/** False for an error, and for a list, which some providers wrap around a reply or an error; undefined while it may be either. */
function beginsAsReply(codec: Codec, start: Buffer, isEnough: boolean): boolean | undefined {
  const text = start.toString('latin1', 0, clearLength);
  const head = withoutBlanks(text.slice(0, 64));
  if (head.startsWith('[')) return false;
  let marks = errorMarks.get(codec);
  if (marks === undefined) errorMarks.set(codec, (marks = codec.marks.error.map(withoutBlanks)));
  if (marks.some((mark) => head.startsWith(mark))) return false;
  const { reply } = codec.marks;
  if (codec.operation !== 'chat' && reply === undefined) return true;
  if (failureMarks.test(text)) return false;
  if (reply === undefined ? replyMarks.test(text) : reply.some((mark) => text.includes(mark))) return true;
  if (!isEnough) return undefined;
  return reply === undefined && !doubtfulMarks.test(text);
}

const errorMarks = new WeakMap<Codec, readonly string[]>();

function withoutBlanks(text: string): string {
  return text.replaceAll(/\s/g, '');
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

/** Most bytes that are held back before a reply begins. */
const mostBefore = 64 * 1024;

/** How a frame looks that says something, in one format or another, and how one does that only opens a reply. JSON escapes quotes: these are no words of an answer. */
const words =
  /"(?:content|reasoning_content|reasoning|refusal|arguments|text|thinking|partial_json)"\s*:\s*"(?!")|"(?:tool_calls|functionCall|inlineData)"\s*:\s*[[{]|"(?:finish_reason|finishReason|stop_reason)"\s*:\s*"|"type"\s*:\s*"(?:response\.[\w.]+\.delta|tool_use)"/;
const openings =
  /"message_start"|"response\.(?:created|queued|in_progress)"|"choices"\s*:\s*\[\s*\{|"content_block_start"|"type"\s*:\s*"ping"/;

/** Frames of a stream as they came; only those that may carry usage are parsed. */
class PassedStream {
  readonly #cutter = new SseCutter();
  readonly #codec: Codec;
  readonly #rename: string | undefined;
  readonly #swallow: boolean;
  readonly #emit: (event: GatewayEvent) => void;
  readonly #tap: ReturnType<Codec['usageTap']>;
  /** What came before the first word: comments, pings, frames that only open a reply. The provider may still fail, and another channel answer instead. */
  #before: Buffer[] | undefined = [];
  #beforeLength = 0;
  /** Says of the first frames what is in them. */
  #judge: StreamDecoder | undefined;
  #opened = false;
  readonly #traits: Target['traits'];
  #complete = false;

  constructor({ call, target, swallowUsage }: PassOptions, emit: (event: GatewayEvent) => void) {
    this.#codec = call.codec;
    this.#tap = call.codec.usageTap();
    this.#rename = target.model === call.askedModel ? undefined : call.askedModel;
    this.#swallow = swallowUsage;
    this.#traits = target.traits;
    this.#emit = emit;
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
    if (this.#before === undefined) return;
    if (!this.#opened) throw garbage('an empty stream');
    // Complete, and without a word.
    this.#emit({
      type: 'frames',
      format: this.#codec.format,
      bytes: this.#renamed(Buffer.concat(this.#before)),
    });
  }

  #run(run: Buffer): void {
    const { marks } = this.#codec;
    if (lacksMarks(run, marks)) {
      this.#pass(run);
      return;
    }
    const error = firstMark(run, marks.error);
    const sound = error < 0 ? run : (new SseCutter().push(run.subarray(0, error)) ?? run.subarray(0, 0));
    if (!this.#complete) this.#complete = firstMark(sound, marks.terminal) >= 0;
    const counted = sound.length > 0 && firstMark(sound, marks.usage) >= 0;
    const seen = counted && this.#swallow ? this.#withoutUsage(sound) : sound;
    if (seen.length > 0) this.#pass(seen);
    if (counted) this.#readUsage(sound);
    if (error >= 0) throw upstreamError(200, parseSse(run.subarray(sound.length))[0]?.data ?? '');
  }

  #pass(run: Buffer): void {
    let bytes = run;
    if (this.#before !== undefined) {
      this.#before.push(run);
      this.#beforeLength += run.length;
      if (!this.#begins(run)) return;
      if (this.#before.length > 1) bytes = Buffer.concat(this.#before);
      this.#before = undefined;
      this.#judge = undefined;
    }
    this.#emit({ type: 'frames', format: this.#codec.format, bytes: this.#renamed(bytes) });
  }

  #renamed(bytes: Buffer): Buffer {
    return this.#rename === undefined
      ? bytes
      : renamed(bytes, this.#codec.marks.model ?? 'model', this.#rename);
  }

  /** True when the reply has said something. Throws what is told instead of one. */
  #begins(run: Buffer): boolean {
    const frames = parseSse(run);
    if (frames.length === 0) return false;
    if (this.#codec.operation !== 'chat' || this.#beforeLength > mostBefore) return true;
    const text = run.toString('latin1');
    if (!failureMarks.test(text)) {
      if (words.test(text)) return true;
      if (openings.test(text)) {
        this.#opened ||= !frames.every(({ data }) => data.includes('"ping"'));
        return false;
      }
    }
    const judge = (this.#judge ??= this.#codec.decodeStream?.(this.#traits));
    for (const frame of frames) {
      checkFirstFrame(frame.data);
      const events = judge?.frame(frame);
      if (events === undefined || events.some(saysSomething)) return true;
      if (events.length > 0) this.#opened = true;
    }
    return false;
  }

  #readUsage(run: Buffer): void {
    for (const { data } of parseSse(run)) {
      if (!this.#codec.marks.usage.some((mark) => data.includes(mark))) continue;
      const usage = this.#tap.read(data);
      if (usage !== undefined) this.#emit({ type: 'usage', usage });
    }
  }

  /** The run without the frame that came only because the gateway asked for it. */
  #withoutUsage(run: Buffer): Buffer {
    const frames = run.toString('utf8').split(/(?<=\n\r?\n|\r\r)/);
    const kept = frames.filter(
      (frame) => !parseSse(frame).some(({ data }) => this.#codec.isUsageOnly?.(data) === true),
    );
    return Buffer.from(kept.join(''));
  }
}

/** The longest run, in bytes, in which all marks are looked for at once. */
const shortRun = 2048;

const anyMark = new WeakMap<Codec['marks'], RegExp>();

/** True for a short run without any mark, as nearly all of a stream are: one look instead of one for each kind of marks. */
function lacksMarks(run: Buffer, marks: Codec['marks']): boolean {
  if (run.length > shortRun) return false;
  let pattern = anyMark.get(marks);
  if (pattern === undefined) {
    const all = [...marks.error, ...marks.terminal, ...marks.usage];
    anyMark.set(marks, (pattern = new RegExp(all.map((mark) => RegExp.escape(mark)).join('|'))));
  }
  return !pattern.test(run.toString('latin1'));
}

/** Marks as bytes, and what all of them contain: most runs lack even that, and need no further look. */
interface Search {
  readonly common: Buffer;
  readonly marks: readonly { readonly bytes: Buffer; readonly quoted: boolean }[];
}

const searches = new WeakMap<readonly string[], Search>();

function searchOf(marks: readonly string[]): Search {
  let search = searches.get(marks);
  if (search === undefined) {
    search = {
      common: Buffer.from(commonPart(marks), 'latin1'),
      marks: marks.map((mark) => ({ bytes: Buffer.from(mark, 'latin1'), quoted: mark.startsWith('"') })),
    };
    searches.set(marks, search);
  }
  return search;
}

/** The longest text that every mark contains. */
function commonPart([first = '', ...others]: readonly string[]): string {
  for (let length = first.length; length > 0; length -= 1) {
    for (let start = 0; start + length <= first.length; start += 1) {
      const part = first.slice(start, start + length);
      if (others.every((mark) => mark.includes(part))) return part;
    }
  }
  return '';
}

/** Where the first of the marks stands as what it is, not as a word in somebody's text; -1 when there is none. */
function firstMark(run: Buffer, marks: readonly string[]): number {
  const search = searchOf(marks);
  if (marks.length === 0 || run.indexOf(search.common) < 0) return -1;
  let first = -1;
  for (const { bytes, quoted } of search.marks) {
    for (let at = run.indexOf(bytes); at >= 0 && (first < 0 || at < first); at = run.indexOf(bytes, at + 1)) {
      if (quoted || beginsLine(run, at)) first = at;
    }
  }
  return first;
}

/** In JSON text every quote is escaped, so that a mark that begins with one is what it seems. The others count only at the head of a line or of its data. */
function beginsLine(run: Buffer, at: number): boolean {
  return at === 0 || /(^|[\r\n])(data: ?)?$/.test(run.toString('latin1', Math.max(0, at - 7), at));
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
  #head: Buffer[] | undefined;
  #headLength = 0;
  #tail: Buffer[] | undefined;
  #tailLength = 0;

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
    if (this.#last === undefined || !endsWithBrace(this.#last) || this.#end?.reached === false)
      throw cutShort();
    const told =
      usageIn(joined(this.#tail ?? []), this.#codec) ?? usageIn(joined(this.#head ?? []), this.#codec);
    const usage = withImages(told, this.#call);
    if (usage !== undefined) this.#emit({ type: 'usage', usage });
  }

  /** The last bytes that are not blank. A connection that only closes at its end does not tell a cut reply from a complete one. */
  get #last(): Buffer | undefined {
    return this.#tail?.findLast((chunk) => shapeOf(chunk) !== undefined);
  }

  #pass(bytes: Buffer): void {
    if (bytes.length > 0) this.#emit({ type: 'bytes', bytes });
  }

  #remember(chunk: Buffer): void {
    if (this.#headLength < rememberedLength) {
      this.#head = appended(this.#head, chunk);
      this.#headLength += chunk.length;
    }
    this.#tailLength += chunk.length;
    const tail = (this.#tail = appended(this.#tail, chunk));
    while (tail.length > 1 && this.#tailLength - (tail[0]?.length ?? 0) >= rememberedLength) {
      this.#tailLength -= tail.shift()?.length ?? 0;
    }
  }
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

function joined(chunks: readonly Buffer[]): Buffer {
  const [only] = chunks;
  return chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks);
}

/** True when the last byte that is not white space closes an object. */
function endsWithBrace(bytes: Buffer): boolean {
  for (let index = bytes.length - 1; index >= 0; index -= 1) {
    const byte = bytes[index];
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return byte === 0x7d;
  }
  return false;
}
