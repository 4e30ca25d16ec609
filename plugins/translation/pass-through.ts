import { Observable } from 'rxjs';
import {
  isObject,
  parseObject,
  parseSse,
  SseCutter,
  upstreamError,
  type AnswerEvent,
  type Call,
  type Codec,
  type GatewayEvent,
  type Reads,
  type Target,
  type UpstreamRequest,
} from '#sluice';
import { cut, ErrorAnswer, garbage, shapeOf } from './answer.ts';
import { DecodedAnswer } from './decode-reply.ts';
import { plainHeaders } from './encode-request.ts';
import { findModel, renamed, usageIn } from './bytes.ts';

/** The client's own bytes for a channel of the same format: untouched, or with nothing changed but what the edits say. */
export function passRequest(
  call: Call,
  target: Target,
  reads: Reads,
): { readonly request: UpstreamRequest; readonly edited: { readonly usage: boolean } } {
  const { codec, wire, stream } = call;
  const { body, usage } = passedBody(call, target, reads);
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
): { readonly body: Buffer | string | undefined; readonly usage: boolean } {
  const { codec, edits, wire } = call;
  const named = isObject(wire.body) && typeof wire.body.model === 'string';
  const asking = reads !== 'nothing' && call.stream && codec.askUsage !== undefined;
  const span = named ? findModel(wire.bytes) : undefined;
  const settled = edits.settings === undefined && !asking && !(named && span === undefined);
  if (settled && (!named || target.model === wire.body?.model)) return { body: undefined, usage: false };
  if (settled && span !== undefined) {
    return {
      body: Buffer.concat([
        wire.bytes.subarray(0, span.start),
        Buffer.from(JSON.stringify(target.model)),
        wire.bytes.subarray(span.end),
      ]),
      usage: false,
    };
  }
  const { reasoning, maxOutput } = edits.settings ?? {};
  const settings = {
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(maxOutput === undefined ? {} : { maxOutput }),
  };
  const patched = codec.patch(
    call.body,
    { ...(named ? { model: target.model } : {}), settings },
    target.traits,
  );
  const asked = asking ? (codec.askUsage?.(patched) ?? patched) : patched;
  return { body: JSON.stringify(asked), usage: asked !== patched };
}

interface PassOptions {
  readonly call: Call;
  readonly target: Target;
  /** The stream tells usage only because the gateway asked: the client must not see that frame. */
  readonly swallowUsage: boolean;
}

/** A provider's answer on its way to a client of the same format. */
export function passReply(source: Observable<GatewayEvent>, options: PassOptions): Observable<GatewayEvent> {
  return new Observable((subscriber) => {
    const passing = new PassedAnswer(options, (event) => subscriber.next(event));
    return source.subscribe({
      next(event) {
        try {
          if (event.type === 'answer') passing.answer(event);
          else if (event.type === 'bytes') passing.push(event.bytes);
          else subscriber.next(event);
        } catch (error) {
          subscriber.error(error);
        }
      },
      error: (error) => subscriber.error(error),
      complete() {
        try {
          passing.end();
          subscriber.complete();
        } catch (error) {
          subscriber.error(error);
        }
      },
    });
  });
}

/** Decides by the first bytes how an answer goes on, and watches it pass. */
class PassedAnswer {
  readonly #options: PassOptions;
  readonly #emit: (event: GatewayEvent) => void;
  #answer: AnswerEvent | undefined;
  #sink: { push(chunk: Buffer): void; end(): void } | undefined;

  constructor(options: PassOptions, emit: (event: GatewayEvent) => void) {
    this.#options = options;
    this.#emit = emit;
  }

  answer(event: AnswerEvent): void {
    this.#answer = event;
    if (event.status >= 400) {
      const error = new ErrorAnswer(event);
      this.#sink = {
        push: (chunk) => error.push(chunk),
        end: () => {
          throw error.error();
        },
      };
    }
  }

  push(chunk: Buffer): void {
    if (this.#sink === undefined) {
      const shape = shapeOf(chunk);
      if (shape === undefined) return;
      this.#sink = this.#choose(shape, chunk);
    }
    this.#sink.push(chunk);
  }

  end(): void {
    if (this.#sink === undefined) throw garbage('an empty body');
    this.#sink.end();
  }

  /** The sink for an answer that begins like this. One that comes in the other mode than was asked for is decoded. */
  #choose(shape: 'sse' | 'json' | 'other', first: Buffer): { push(chunk: Buffer): void; end(): void } {
    const { call, target } = this.#options;
    if (shape === 'other') throw garbage('something that is neither JSON nor a stream');
    if (shape === 'sse' && call.stream) return new PassedStream(this.#options, this.#emit);
    if (shape === 'json' && !call.stream && !beginsWithError(call.codec, first)) {
      if (this.#answer !== undefined) this.#emit(this.#answer);
      return new PassedWhole(this.#options, this.#emit);
    }
    return new DecodedAnswer({ codec: call.codec, traits: target.traits, stream: call.stream }, this.#emit);
  }
}

function beginsWithError(codec: Codec, first: Buffer): boolean {
  const start = first.subarray(0, 64).toString('latin1').replaceAll(/\s/g, '');
  return codec.marks.error.some((mark) => start.startsWith(mark.replaceAll(/\s/g, '')));
}

/** Frames of a stream as they came; only those that may carry usage are parsed. */
class PassedStream {
  readonly #cutter = new SseCutter();
  readonly #codec: Codec;
  readonly #rename: string | undefined;
  readonly #swallow: boolean;
  readonly #emit: (event: GatewayEvent) => void;
  readonly #tap: ReturnType<Codec['usageTap']>;
  #complete = false;

  constructor({ call, target, swallowUsage }: PassOptions, emit: (event: GatewayEvent) => void) {
    this.#codec = call.codec;
    this.#tap = call.codec.usageTap();
    this.#rename = target.model === call.askedModel ? undefined : call.askedModel;
    this.#swallow = swallowUsage;
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
    if (!this.#complete) throw cut();
  }

  #run(run: Buffer): void {
    const { marks } = this.#codec;
    const error = firstMark(run, marks.error);
    const sound = error < 0 ? run : run.subarray(0, error);
    if (!this.#complete) this.#complete = firstMark(sound, marks.terminal) >= 0;
    const counted = sound.length > 0 && firstMark(sound, marks.usage) >= 0;
    const seen = counted && this.#swallow ? this.#withoutUsage(sound) : sound;
    if (seen.length > 0) {
      const bytes = this.#rename === undefined ? seen : renamed(seen, marks.model ?? 'model', this.#rename);
      this.#emit({ type: 'frames', format: this.#codec.format, bytes });
    }
    if (counted) this.#readUsage(sound);
    if (error >= 0) throw upstreamError(200, parseSse(run.subarray(error))[0]?.data ?? '');
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
    const kept = parseSse(run).filter(({ data }) => this.#codec.isUsageOnly?.(data) !== true);
    const text = kept
      .map(({ event, data }) => `${event === undefined ? '' : `event: ${event}\n`}data: ${data}\n\n`)
      .join('');
    return Buffer.from(text);
  }
}

function firstMark(run: Buffer, marks: readonly string[]): number {
  for (const mark of marks) {
    const at = run.indexOf(mark, 0, 'latin1');
    if (at >= 0 && (!mark.startsWith('{') || startsFrame(run, at))) return at;
  }
  return -1;
}

/** An error mark that begins with a brace counts only where a frame's data begins. */
function startsFrame(run: Buffer, at: number): boolean {
  const before = run.subarray(Math.max(0, at - 6), at).toString('latin1');
  return at === 0 || /data: ?$/.test(before) || before.endsWith('\n');
}

/** How much of a whole reply's end is remembered to find its usage. */
const tailLength = 16 * 1024;

/** A whole reply, chunk by chunk. */
class PassedWhole {
  readonly #codec: Codec;
  readonly #emit: (event: GatewayEvent) => void;
  #rename: string | undefined;
  #tail: Buffer[] = [];
  #length = 0;
  #head: Buffer | undefined;

  constructor({ call, target }: PassOptions, emit: (event: GatewayEvent) => void) {
    this.#codec = call.codec;
    this.#rename = target.model === call.askedModel ? undefined : call.askedModel;
    this.#emit = emit;
  }

  push(chunk: Buffer): void {
    this.#remember(chunk);
    if (this.#rename === undefined) {
      this.#emit({ type: 'bytes', bytes: chunk });
      return;
    }
    // The model's name stands near the beginning: what comes before it waits until it can be replaced.
    this.#head = this.#head === undefined ? chunk : Buffer.concat([this.#head, chunk]);
    const changed = renamed(this.#head, this.#codec.marks.model ?? 'model', this.#rename);
    if (changed === this.#head && this.#head.length < 4 * tailLength) return;
    this.#flush(changed);
  }

  end(): void {
    if (this.#head !== undefined) this.#flush(this.#head);
    const usage = usageIn(Buffer.concat(this.#tail), this.#codec);
    if (usage !== undefined) this.#emit({ type: 'usage', usage });
  }

  #flush(bytes: Buffer): void {
    this.#rename = undefined;
    this.#head = undefined;
    this.#emit({ type: 'bytes', bytes });
  }

  #remember(chunk: Buffer): void {
    this.#tail.push(chunk);
    this.#length += chunk.length;
    while (this.#tail.length > 1 && this.#length - (this.#tail[0]?.length ?? 0) >= tailLength) {
      this.#length -= this.#tail.shift()?.length ?? 0;
    }
  }
}
