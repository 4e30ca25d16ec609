/** Cuts JSON that comes in pieces into the objects at its top. */
import { HeldBytes } from '../model/held-bytes.ts';
import { Nesting } from './nesting.ts';

/**
 * Cuts a byte stream into its top-level JSON objects, whatever stands between them: newline-delimited JSON and the elements of one JSON
 * array alike. Works on bytes, so that a character split between two reads stays whole.
 */
export class ObjectCutter {
  readonly #held = new HeldBytes();
  readonly #nesting = new Nesting();

  /** Returns the objects that this piece completes. */
  push(piece: Buffer): Buffer[] {
    const objects: Buffer[] = [];
    let start = this.#nesting.depth > 0 ? 0 : -1;
    for (let index = 0; index < piece.length; index += 1) {
      if (this.#nesting.depth === 0) {
        if (piece[index] !== 0x7b) continue;
        start = index;
      }
      index = this.#nesting.read(piece, index);
      if (this.#nesting.depth === 0) {
        this.#held.push(piece.subarray(start, index + 1));
        objects.push(this.#held.take());
        start = -1;
      }
    }
    if (start >= 0) this.#held.push(piece.subarray(start));
    return objects;
  }

  /** Bytes of the object that is not complete. */
  get heldBytes(): number {
    return this.#held.length;
  }

  /** True when the stream ended inside an object. */
  get unfinished(): boolean {
    return this.#nesting.depth > 0;
  }
}
