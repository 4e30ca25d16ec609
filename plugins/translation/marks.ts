/** Searches the bytes of a stream that passes through for the marks of usage, errors and the end of the stream. */
import type { Codec } from 'sluice/channel-kit';
import { errorMarks } from './answer.ts';

/** Number of bytes that are converted to text and searched at a time. */
const piece = 64 * 1024;

/** Searches bytes for the marks of a format and of errors. */
export class MarkSearch {
  readonly #pattern: RegExp;
  /** Overlap of two pieces, because a mark may be divided between them. */
  readonly #overlap: number;

  constructor({ usage, terminal }: Codec['marks']) {
    const all = [...errorMarks, ...terminal, ...usage];
    this.#pattern = new RegExp(all.map((mark) => mark.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')).join('|'));
    this.#overlap = all.reduce((most, mark) => Math.max(most, mark.length), 1) - 1;
  }

  /** Returns true when the bytes contain one of the marks. */
  standIn(bytes: Buffer): boolean {
    if (bytes.length <= piece) return this.#pattern.test(bytes.toString('latin1'));
    for (let at = 0; at < bytes.length; at += piece) {
      if (this.#pattern.test(bytes.toString('latin1', at, at + piece + this.#overlap))) return true;
    }
    return false;
  }
}

const searches = new WeakMap<Codec['marks'], MarkSearch>();

/** Returns the search for these marks, which is cached. */
export function marksOf(marks: Codec['marks']): MarkSearch {
  let search = searches.get(marks);
  if (search === undefined) searches.set(marks, (search = new MarkSearch(marks)));
  return search;
}
