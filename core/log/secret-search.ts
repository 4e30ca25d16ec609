/**
 * Finds known texts in lines of the log, in a time that does not grow with how many there are: with 1,000 keys of providers, one search
 * for each would cost as much as a call. It is the algorithm of Wu and Manber ("A fast algorithm for multi-pattern searching", 1994),
 * which passes over most of a usual line.
 */

/** A text of fewer characters cannot be found. */
export const shortest = 8;

/** Maximum number of leading characters of a secret that are compared first. */
const widest = 32;

/** Characters that are looked at together. */
const block = 3;

/** Blocks of all texts at most, unless they are looked at in the fewest characters: with more of them steps get short by chance. */
const mostBlocks = 2 ** 13;

/** A text to find. */
interface Found {
  readonly start: number;
  /** End of the match, exclusive. */
  readonly end: number;
}

/** The texts to hide in a process, each of 8 characters or more; shorter ones are ignored. */
export class SecretSearch {
  readonly #texts = new Set<string>();
  /** Number of leading characters that are compared: the length of the shortest secret. */
  #width = widest;
  /** Number of characters that the search can skip, by the hash of a block. */
  readonly #shifts = new Uint8Array(2 ** 15).fill(widest - block + 1);
  /** The first characters of the texts, as many as are looked at. */
  readonly #beginnings = new Set<string>();
  /** Number of secrets of each length, so that few lengths are tried when thousands of secrets have the same prefix. */
  readonly #lengths = new Map<number, number>();
  /** Number of deleted secrets that still shorten the skips. */
  #deleted = 0;

  add(text: string): void {
    if (text.length < shortest || this.#texts.has(text)) return;
    this.#texts.add(text);
    this.#lengths.set(text.length, (this.#lengths.get(text.length) ?? 0) + 1);
    if (text.length < this.#width || this.#width > this.#widthFor(this.#texts.size)) this.#prepareAgain();
    else this.#prepare(text);
  }

  delete(text: string): void {
    if (!this.#texts.delete(text)) return;
    const left = (this.#lengths.get(text.length) ?? 0) - 1;
    if (left > 0) this.#lengths.set(text.length, left);
    else this.#lengths.delete(text.length);
    this.#deleted += 1;
    if (this.#deleted > 100 + this.#texts.size) this.#prepareAgain();
  }

  #widthFor(texts: number): number {
    return Math.max(shortest, Math.min(widest, Math.floor(mostBlocks / texts) + block - 1));
  }

  /** Makes steps so short that none leads past this text. */
  #prepare(text: string): void {
    const last = this.#width - 1;
    for (let end = block - 1; end <= last; end += 1) {
      const hash = hashAt(text, end);
      this.#shifts[hash] = Math.min(this.#shifts[hash] ?? 0, last - end);
    }
    this.#beginnings.add(text.slice(0, this.#width));
  }

  #prepareAgain(): void {
    this.#deleted = 0;
    // Twice as many may be added before all of this is done again.
    this.#width = this.#widthFor(2 * this.#texts.size);
    for (const { length } of this.#texts) this.#width = Math.min(this.#width, length);
    this.#shifts.fill(this.#width - block + 1);
    this.#beginnings.clear();
    for (const text of this.#texts) this.#prepare(text);
  }

  /** Replaces every text that was added. Those that overlap are replaced together. */
  mask(text: string, mask: string): string {
    let masked = '';
    let copied = 0;
    let last: Found | undefined;
    for (let end = this.#width - 1; end < text.length;) {
      const shift = this.#shifts[hashAt(text, end)] ?? 1;
      if (shift > 0) {
        end += shift;
        continue;
      }
      const start = end - this.#width + 1;
      const length = this.#longestAt(text, start);
      if (length > 0) {
        if (last === undefined || start >= last.end) {
          if (last !== undefined) {
            masked += text.slice(copied, last.start) + mask;
            copied = last.end;
          }
          last = { start, end: start + length };
        } else if (start + length > last.end) last = { start: last.start, end: start + length };
      }
      end += 1;
    }
    if (last === undefined) return text;
    return masked + text.slice(copied, last.start) + mask + text.slice(last.end);
  }

  /** Returns the length of the longest secret at this position; 0 if there is none. */
  #longestAt(text: string, start: number): number {
    let longest = 0;
    if (!this.#beginnings.has(text.slice(start, start + this.#width))) return longest;
    for (const length of this.#lengths.keys())
      if (length > longest && this.#texts.has(text.slice(start, start + length))) longest = length;
    return longest;
  }
}

/** Returns a number of 15 bits for the block that ends at this place. */
function hashAt(text: string, end: number): number {
  return ((text.charCodeAt(end - 2) << 10) ^ (text.charCodeAt(end - 1) << 5) ^ text.charCodeAt(end)) & 0x7fff;
}
