import { parseObject, type GatewayEvent, type Usage, HeldBytes } from 'sluice';
import {
  truncatedResponse,
  upstreamError,
  parseSse,
  SseCutter,
  type Codec,
  type Frame,
  splitSse,
} from 'sluice/channel-kit';
import { garbage, isErrorFrame } from './answer.ts';
import { renamed } from './bytes.ts';
import { marksOf, type MarkSearch } from './marks.ts';
import type { PassOptions } from './pass-options.ts';
import { respelledRun, wordsOf } from './respelled.ts';
import { StreamOpening } from './stream-opening.ts';

/** Frames of a stream as they came. Those that open it are parsed, and of the others those with a mark. */
export class PassedStream {
  readonly #cutter = new SseCutter();
  readonly #codec: Codec;
  readonly #marks: MarkSearch;
  readonly #rename: string | undefined;
  readonly #swallow: boolean;
  readonly #words: ReturnType<typeof wordsOf>;
  readonly #emit: (event: GatewayEvent) => void;
  readonly #tap: ReturnType<Codec['usageTap']>;
  /** Frames before the first content. The provider may still fail, and another channel respond instead. */
  #before: HeldBytes | undefined = new HeldBytes();
  #opening: StreamOpening | undefined;
  #complete = false;

  constructor({ call, target, swallowUsage }: PassOptions, emit: (event: GatewayEvent) => void) {
    this.#codec = call.codec;
    this.#marks = marksOf(call.codec.marks);
    this.#tap = call.codec.usageTap();
    this.#rename = target.model === call.askedModel ? undefined : call.askedModel;
    this.#swallow = swallowUsage;
    this.#words = wordsOf(call, target);
    this.#emit = emit;
    this.#opening = new StreamOpening(call.codec, target.traits);
  }

  push(chunk: Buffer): void {
    const run = this.#cutter.push(chunk);
    if (run !== undefined) this.#run(this.#respelled(run));
  }

  end(): void {
    const rest = this.#cutter.end();
    if (
      rest !== undefined &&
      parseSse(rest).every(({ data }) => data === '[DONE]' || parseObject(data) !== undefined)
    ) {
      this.#run(this.#respelled(Buffer.concat([rest, Buffer.from('\n\n')])));
    }
    if (!this.#complete) throw truncatedResponse();
    if (this.#opening === undefined) return;
    if (!this.#opening.opened) throw garbage('an empty stream');
    // Complete, and without a word.
    this.#opening = undefined;
    this.#pass(Buffer.alloc(0));
  }

  #respelled(run: Buffer): Buffer {
    return this.#words === undefined ? run : respelledRun(run, this.#words);
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
      // All frames, or the frames before the one with the error.
      this.#pass(run.subarray(from, at));
      for (const usage of usages) this.#emit({ type: 'usage', usage });
    }
  }

  /** Parses a frame if necessary. Throws the error that it reports. */
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
