import type { Entry } from './entry.ts';

/** Responses in memory, up to a number of bytes. The one that was used longest ago goes first. */
export class MemoryTier {
  readonly #most: number;
  readonly #entries = new Map<string, Entry>();
  #bytes = 0;

  /** `most`: bytes of all entries. */
  constructor(most: number) {
    this.#most = most;
  }

  get(digest: string): Entry | undefined {
    const entry = this.#entries.get(digest);
    if (entry === undefined) return undefined;
    // The order of a Map is that in which its keys were set.
    this.#entries.delete(digest);
    this.#entries.set(digest, entry);
    return entry;
  }

  set(entry: Entry): void {
    this.delete(entry.digest);
    if (entry.bytes > this.#most) return;
    this.#entries.set(entry.digest, entry);
    this.#bytes += entry.bytes;
    for (const oldest of this.#entries.keys()) {
      if (this.#bytes <= this.#most) break;
      this.delete(oldest);
    }
  }

  delete(digest: string): void {
    const entry = this.#entries.get(digest);
    if (entry === undefined) return;
    this.#entries.delete(digest);
    this.#bytes -= entry.bytes;
  }

  /** Removes the entries that a function names. */
  purge(isGone: (entry: Entry) => boolean): void {
    for (const [digest, entry] of this.#entries) if (isGone(entry)) this.delete(digest);
  }
}
