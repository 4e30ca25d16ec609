/** Follows the brackets of JSON that comes in pieces. */
import { OpenString } from './strings.ts';

/**
 * Counts open brackets in the bytes of JSON that come in pieces, however they are cut. Outside of all brackets only brackets count, so that
 * JSON may stand among other text.
 */
export class Nesting {
  readonly #string = new OpenString();
  #depth = 0;

  /** Number of brackets that are open. */
  get depth(): number {
    return this.#depth;
  }

  /** True from the first quote of a string until {@link read} has passed the last one. */
  get isInString(): boolean {
    return this.#string.isOpen;
  }

  /** Reads one byte, or the rest of an open string. Returns the index of the last byte read; the length of the piece where a string goes on. */
  read(piece: Buffer, at: number): number {
    if (this.#string.isOpen) return this.#string.pass(piece, at);
    const byte = piece[at];
    if (byte === 0x22) {
      if (this.#depth > 0) this.#string.open();
    } else if (byte === 0x7b || byte === 0x5b) this.#depth += 1;
    else if ((byte === 0x7d || byte === 0x5d) && this.#depth > 0) this.#depth -= 1;
    return at;
  }

  /** Forgets what is open. */
  reset(): void {
    this.#depth = 0;
    this.#string.close();
  }
}
