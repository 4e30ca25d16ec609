/** Builds one pattern for a list of words. */
import { casesOf, complement, property, union, wordChars } from './char-set.ts';
import type { Node } from './parse.ts';

interface Branch {
  readonly next: Map<string, Branch>;
  isEnd: boolean;
}

/**
 * Returns a pattern for any of the words, in any case unless `caseSensitive`, and as whole words unless `within`. Words share their
 * beginnings, so that a list of ten thousand costs no more than one word.
 */
export function wordsPattern(
  words: readonly string[],
  {
    caseSensitive = false,
    within = false,
  }: { readonly caseSensitive?: boolean; readonly within?: boolean } = {},
): Node {
  const root: Branch = { next: new Map(), isEnd: false };
  for (const word of words) {
    let branch = root;
    for (const unit of units(caseSensitive ? word : word.toLowerCase())) {
      let next = branch.next.get(unit);
      if (next === undefined) branch.next.set(unit, (next = { next: new Map(), isEnd: false }));
      branch = next;
    }
    branch.isEnd = true;
  }
  const parts = nodeOf(root, caseSensitive);
  if (within) return parts;
  const inWord = union([wordChars, property('L'), property('N'), property('M')]);
  const edge = (behind: boolean): Node => ({ type: 'look', set: complement(inWord), behind, none: true });
  return { type: 'seq', parts: [edge(true), parts, edge(false)] };
}

function units(text: string): readonly string[] {
  return Array.from({ length: text.length }, (_, index) => text[index] ?? '');
}

function nodeOf(branch: Branch, caseSensitive: boolean): Node {
  const parts = [...branch.next].map(([unit, next]): Node => {
    const code = unit.charCodeAt(0);
    const set: Node = { type: 'set', set: caseSensitive ? [code, code] : casesOf(code) };
    return next.next.size === 0 ? set : { type: 'seq', parts: [set, nodeOf(next, caseSensitive)] };
  });
  if (branch.isEnd) parts.push({ type: 'seq', parts: [] });
  const [only] = parts;
  return parts.length === 1 && only !== undefined ? only : { type: 'alt', parts };
}
