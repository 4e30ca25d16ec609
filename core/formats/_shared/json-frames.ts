/** Reads frames of streams that consist only of JSON: a sequence of objects, or the elements of one array. */
import { ObjectCutter } from '../../json/object-cutter.ts';
import type { Frame, WireFrame } from '../../sdk/format.ts';
import { frameLimit } from './sse.ts';
import { unusableResponse } from './upstream-error/index.ts';

/** Cuts the bytes of a provider's stream into frames, each of which is an object at the top. */
export class JsonCutter {
  readonly #objects = new ObjectCutter();

  /** Returns the objects completed by this chunk. Throws when one outgrows the frame limit. */
  push(chunk: Buffer): Frame[] {
    const frames = this.#objects.push(chunk).map((object) => ({ data: object.toString('utf8') }));
    if (this.#objects.heldBytes > frameLimit) throw unusableResponse('sent an event that is too large');
    return frames;
  }

  /** True when the stream ended inside an object. */
  get unfinished(): boolean {
    return this.#objects.unfinished;
  }
}

/** Encodes a frame as a line of newline-delimited JSON. */
export function writeNdjson(frame: WireFrame): string {
  return 'text' in frame ? '' : `${JSON.stringify(frame.json)}\n`;
}
