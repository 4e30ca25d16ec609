import type { Frame, WireFrame } from '../../sdk/format.ts';
import { HeldBytes } from '../../model/held-bytes.ts';
import { frameLimit } from './sse.ts';
import { unusableResponse } from './upstream-error/index.ts';

/**
 * Cuts a byte stream into its top-level JSON objects, whatever stands between them: newline-delimited JSON and the elements of one JSON
 * array alike. Works on bytes, so that a character split between two reads stays whole.
 */
export class JsonCutter {
  readonly #held = new HeldBytes();
  #depth = 0;
  #inString = false;
  #escaped = false;

  /** The objects completed by this chunk. Throws when one outgrows the frame limit. */
  push(chunk: Buffer): Frame[] {
    const frames: Frame[] = [];
    let start = this.#depth > 0 ? 0 : -1;
    for (let index = 0; index < chunk.length; index += 1) {
      const byte = chunk[index];
      if (this.#inString) {
        if (this.#escaped) this.#escaped = false;
        else if (byte === 0x5c) this.#escaped = true;
        else if (byte === 0x22) this.#inString = false;
      } else if (byte === 0x22) {
        this.#inString = this.#depth > 0;
      } else if (byte === 0x7b) {
        if (this.#depth === 0) start = index;
        this.#depth += 1;
      } else if (byte === 0x7d && this.#depth > 0) {
        this.#depth -= 1;
        if (this.#depth === 0) {
          this.#held.push(chunk.subarray(start, index + 1));
          frames.push({ data: this.#held.take().toString('utf8') });
          start = -1;
        }
      }
    }
    if (start >= 0) {
      this.#held.push(chunk.subarray(start));
      if (this.#held.length > frameLimit) throw unusableResponse('sent an event that is too large');
    }
    return frames;
  }

  /** True when the stream ended inside an object. */
  get unfinished(): boolean {
    return this.#depth > 0;
  }
}

/** One frame as a line of newline-delimited JSON. */
export function writeNdjson(frame: WireFrame): string {
  return 'text' in frame ? '' : `${JSON.stringify(frame.json)}\n`;
}
