/** Finds where a string ends in the bytes of JSON. */
const quote = 0x22;
const backslash = 0x5c;

/** Bytes of a string that are looked at one by one before the next quote is searched for: a search costs as much as some thirty of them. */
const near = 32;

/** Where the JSON string ends that begins with the quote at `start`: the place of its other quote, or -1 when the bytes end before. */
export function stringEnd(bytes: Buffer, start: number): number {
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
    let slashes = end;
    while (slashes > index && bytes[slashes - 1] === backslash) slashes -= 1;
    if ((end - slashes) % 2 === 0) return end;
    index = end + 1;
  }
  return -1;
}
