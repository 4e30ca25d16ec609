import type { Codec } from 'sluice/channel-kit';
import { errorMarks } from './answer.ts';

/** How much is looked through at once, in bytes: a text is made of it. */
const piece = 64 * 1024;

/** Looks for the marks of a format, and for those of errors, in what passes. */
export class MarkSearch {
  readonly #pattern: RegExp;
  /** A mark may straddle two pieces. */
  readonly #overlap: number;

  constructor({ usage, terminal }: Codec['marks']) {
    const all = [...errorMarks, ...terminal, ...usage];
    this.#pattern = new RegExp(all.map((mark) => mark.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')).join('|'));
    this.#overlap = all.reduce((most, mark) => Math.max(most, mark.length), 1) - 1;
  }

  /** True when one of the marks stands somewhere in these bytes. */
  standIn(bytes: Buffer): boolean {
    if (bytes.length <= piece) return this.#pattern.test(bytes.toString('latin1'));
    for (let at = 0; at < bytes.length; at += piece) {
      if (this.#pattern.test(bytes.toString('latin1', at, at + piece + this.#overlap))) return true;
    }
    return false;
  }
}

const searches = new WeakMap<Codec['marks'], MarkSearch>();

/** The search for these marks. */
export function marksOf(marks: Codec['marks']): MarkSearch {
  let search = searches.get(marks);
  if (search === undefined) searches.set(marks, (search = new MarkSearch(marks)));
  return search;
}
