import { type GatewayEvent, HeldBytes } from 'sluice';
import { truncatedResponse, type Codec } from 'sluice/channel-kit';
import { Nesting, type Call } from 'sluice/internal';
import { Renamer, usageIn } from './bytes.ts';
import { withImages } from './images.ts';
import type { PassOptions } from './pass-options.ts';

/** Number of bytes at the beginning and at the end of a whole response that are kept to find its usage. Providers put it in either place. */
const rememberedLength = 16 * 1024;

/** A whole reply, chunk by chunk. */
export class PassedWhole {
  readonly #end: JsonEnd | undefined;
  readonly #call: Call;
  readonly #codec: Codec;
  readonly #emit: (event: GatewayEvent) => void;
  readonly #renamer: Renamer | undefined;
  readonly #head = new HeldBytes();
  /** Latest chunks: at least as many bytes as are kept, where the response has as many. */
  #tail = new HeldBytes();
  #beforeTail: HeldBytes | undefined;
  /** True when the last byte that is not white space closes an object. */
  #isClosed = false;

  /** `endsByClose`: only the end of the connection marks the end of the response. */
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
    if (!this.#isClosed || this.#end?.reached === false) throw truncatedResponse();
    const reported = usageIn(this.#last(), this.#codec) ?? usageIn(this.#head.take(), this.#codec);
    const usage = withImages(reported, this.#call);
    if (usage !== undefined) this.#emit({ type: 'usage', usage });
  }

  /** Returns the end of the reply, no more of it than is remembered where it is long: to join all of a 50 KB reply took 4 % of its call. */
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

/** Returns the last byte that is not white space; undefined when there is none. */
function lastByte(bytes: Buffer): number | undefined {
  for (let index = bytes.length - 1; index >= 0; index -= 1) {
    const byte = bytes[index];
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return byte;
  }
  return undefined;
}

/** Follows JSON text, piece by piece, to the bracket that ends it. */
class JsonEnd {
  readonly #nesting = new Nesting();
  #begun = false;

  /** True when every bracket that was opened has been closed. */
  get reached(): boolean {
    return this.#begun && this.#nesting.depth === 0;
  }

  push(chunk: Buffer): void {
    for (let at = 0; at < chunk.length; at += 1) {
      at = this.#nesting.read(chunk, at);
      this.#begun ||= this.#nesting.depth > 0;
    }
  }
}
