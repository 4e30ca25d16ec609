/** Finds where strings of JSON end: in bytes or in text, whole or in pieces. Every other scanner of this folder hops over strings by it. */
const quote = 0x22;
const backslash = 0x5c;

/** Bytes of a string that are looked at one by one before the next quote is searched for: a search costs as much as some thirty of them. */
const near = 32;

/**
 * Returns the index of the closing quote of the JSON string whose opening quote is at `start`; -1 if the string does not end.
 *
 * @example
 * const value = JSON.parse(json.slice(start, stringEnd(json, start) + 1));
 */
export function stringEnd(json: Buffer | string, start: number): number {
  return typeof json === 'string' ? endInText(json, start) : endInBytes(json, start);
}

function endInBytes(bytes: Buffer, start: number): number {
  let index = start + 1;
  while (index < bytes.length) {
    const stop = Math.min(bytes.length, index + near);
    while (index < stop) {
      const byte = bytes[index];
      if (byte === quote) return index;
      index += byte === backslash ? 2 : 1;
    }
    const end = bytes.indexOf(quote, index);
    if (end < 0) return -1;
    if (slashesBefore(bytes, end, index) % 2 === 0) return end;
    index = end + 1;
  }
  return -1;
}

function endInText(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let before = at - 1;
    while (text.charCodeAt(before) === backslash) before -= 1;
    if ((at - before) % 2 === 1) return at;
  }
  return -1;
}

/** Counts the backslashes in a row before `end`, none of which stands before `from`. */
function slashesBefore(bytes: Buffer, end: number, from: number): number {
  let first = end;
  while (first > from && bytes[first - 1] === backslash) first -= 1;
  return end - first;
}

/** Follows a string in the bytes of JSON that come in pieces, however they are cut. */
export class OpenString {
  #isOpen = false;
  /** The piece before ended with the backslash of an escape. */
  #isEscaped = false;

  /** True from {@link open} until the quote that ends the string has passed. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Begins a string with the byte after its first quote. */
  open(): void {
    this.#isOpen = true;
    this.#isEscaped = false;
  }

  /** Forgets the string. */
  close(): void {
    this.#isOpen = false;
  }

  /** Reads the string on. Returns the index of the quote that ends it; the length of the piece where it goes on in the next one. */
  pass(piece: Buffer, from: number): number {
    const start = this.#isEscaped ? from + 1 : from;
    if (start > piece.length) return piece.length;
    const end = endInBytes(piece, start - 1);
    this.#isOpen = end < 0;
    this.#isEscaped = this.#isOpen && slashesBefore(piece, piece.length, start) % 2 === 1;
    return this.#isOpen ? piece.length : end;
  }
}
