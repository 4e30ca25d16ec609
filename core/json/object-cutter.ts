/** Cuts JSON that comes in pieces into the objects at its top. */
import { HeldBytes } from '../model/held-bytes.ts';
import { OpenString } from './strings.ts';

/**
 * Cuts a byte stream into its top-level JSON objects, whatever stands between them: newline-delimited JSON and the elements of one JSON
 * array alike. Works on bytes, so that a character split between two reads stays whole.
 */
export class ObjectCutter {
  readonly #held = new HeldBytes();
  readonly #string = new OpenString();
  #depth = 0;

  /** Returns the objects that this piece completes. */
  push(piece: Buffer): Buffer[] {
    const objects: Buffer[] = [];
    let start = this.#depth > 0 ? 0 : -1;
    for (let index = 0; index < piece.length; index += 1) {
      if (this.#string.isOpen) {
        index = this.#string.pass(piece, index);
        continue;
      }
      const byte = piece[index];
      if (byte === 0x22) {
        if (this.#depth > 0) this.#string.open();
      } else if (byte === 0x7b) {
        if (this.#depth === 0) start = index;
        this.#depth += 1;
      } else if (byte === 0x7d && this.#depth > 0) {
        this.#depth -= 1;
        if (this.#depth === 0) {
          this.#held.push(piece.subarray(start, index + 1));
          objects.push(this.#held.take());
          start = -1;
        }
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
    return this.#depth > 0;
  }
}
