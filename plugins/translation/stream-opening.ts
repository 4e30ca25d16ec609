import { type ModelTraits, upstreamFailureOf, saysSomething } from 'sluice';
import type { Codec, Frame, StreamDecoder } from 'sluice/channel-kit';
import { failureIn, objectIn } from './answer.ts';

/** Maximum number of bytes of a stream that are held back before its first content. A Responses stream repeats the request twice, with all tools. */
const mostBefore = 1024 * 1024;

/**
 * Watches the first frames of a stream in the client's own format, each once and in order, until one of them says something. It throws
 * nothing but the failure that a frame tells of: where it does not understand a frame, the stream has begun.
 */
export class StreamOpening {
  readonly #judge: StreamDecoder | undefined;
  #length = 0;
  #begun = false;
  #opened = false;

  constructor(codec: Codec, traits: ModelTraits) {
    this.#judge = codec.operation === 'chat' ? codec.decodeStream?.(traits) : undefined;
  }

  /** True when there was something that opens a reply, be it without a word. */
  get opened(): boolean {
    return this.#opened;
  }

  /** Reads the next frame. Throws the error that it carries in place of a response. */
  frame(frame: Frame): void {
    if (this.#begun) return;
    if (this.#judge === undefined) {
      this.#begun = true;
      return;
    }
    const body = objectIn(frame.data);
    const failure = body === undefined ? undefined : failureIn(body, frame.event);
    if (failure !== undefined) throw failure;
    try {
      const events = this.#judge.frame(frame);
      if (events.length > 0) this.#opened = true;
      this.#begun = events.some(saysSomething);
    } catch (error) {
      if (body !== undefined && isProviderFailure(error)) throw error;
      // Before a reply what is no JSON is as little a beginning as a comment is.
      this.#begun = body !== undefined || this.#opened;
    }
  }

  /** Returns true when the stream is no longer held back, now that so many bytes more have come. */
  isOver(length: number): boolean {
    this.#length += length;
    return this.#begun || this.#length > mostBefore;
  }
}

/** Returns true for a failure that the provider reported, false for a decoding error. */
function isProviderFailure(error: unknown): boolean {
  return error instanceof Error && upstreamFailureOf(error) !== undefined;
}
