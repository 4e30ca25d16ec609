/** Pieces shorter than this are copied together, in bytes. */
const shortPiece = 1024;
const firstPage = 256;
const largestPage = 16 * 1024;

/**
 * Bytes that are held until the rest of them has come. Short pieces are put into shared pages, because what stands around a piece in
 * memory may be a hundred times its length; long ones are held as they are.
 *
 * @example
 * const held = new HeldBytes();
 * held.push(piece);
 * const whole = held.take();
 */
export class HeldBytes {
  #pieces: Buffer[] = [];
  #length = 0;
  #page: Buffer | undefined;
  #used = 0;
  /** Begin of the last piece in the page, if it is in the page and others can be appended to it. */
  #openFrom: number | undefined;

  /** Number of pieces. */
  get length(): number {
    return this.#length;
  }

  /** Holds one more piece. */
  push(piece: Buffer): void {
    if (piece.length === 0) return;
    this.#length += piece.length;
    if (this.#pieces.length === 0 || piece.length >= shortPiece) {
      this.#pieces.push(piece);
      this.#openFrom = undefined;
      return;
    }
    let page = this.#page;
    if (page === undefined || page.length - this.#used < piece.length) {
      const size = page === undefined ? firstPage : Math.min(page.length * 2, largestPage);
      this.#page = page = Buffer.allocUnsafeSlow(Math.max(size, piece.length));
      this.#used = 0;
      this.#openFrom = undefined;
    }
    piece.copy(page, this.#used);
    const end = this.#used + piece.length;
    if (this.#openFrom === undefined) {
      this.#openFrom = this.#used;
      this.#pieces.push(page.subarray(this.#used, end));
    } else this.#pieces[this.#pieces.length - 1] = page.subarray(this.#openFrom, end);
    this.#used = end;
  }

  /** All that was held, as one; nothing is held any more. */
  take(): Buffer {
    const [only] = this.#pieces;
    const all = this.#pieces.length === 1 && only !== undefined ? only : Buffer.concat(this.#pieces);
    this.#pieces = [];
    this.#length = 0;
    this.#page = undefined;
    this.#used = 0;
    this.#openFrom = undefined;
    return all;
  }
}
