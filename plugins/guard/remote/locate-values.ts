/** Finds where the values that a service reports stand in the texts, by the Aho-Corasick algorithm. */
import { labelOf, noPosition, type Find, type JudgedText } from './judge.ts';

/** A value that a service has found, without its position. */
export interface FoundValue {
  readonly value: string;
  /** The service's name for it. */
  readonly name: string;
}

/** Maximum number of characters of all values together. */
const maxCharacters = 1_000_000;

/**
 * Returns the positions of values in texts, found in one pass (A. Aho, M. Corasick: Efficient String Matching, 1975), so that the time is linear in
 * values and texts. Of values that end at the same position the longest counts. A value that is in no text adds {@link noPosition}.
 */
export function locateValues(values: readonly FoundValue[], texts: readonly JudgedText[]): readonly Find[] {
  if (values.some(({ value }) => value === '')) return [noPosition];
  const trie = new Trie(values);
  const finds = texts.flatMap(({ text }, index) => trie.findIn(text, index));
  return trie.hasUnseen() ? [...finds, noPosition] : finds;
}

class Trie {
  /** Child nodes, by the number of the parent times 65,536 plus a code unit. */
  readonly #next = new Map<number, number>();
  readonly #parents = [0];
  readonly #units = [0];
  readonly #depths = [0];
  /** Failure links: the node of the longest proper suffix that is a prefix of a value. */
  readonly #fails = [0];
  /** Output links: the last node of the longest value that ends at a node; 0 for none. */
  readonly #ends = [0];
  readonly #labels = new Map<number, string>();
  readonly #order: readonly number[];
  readonly #seen = new Set<number>();

  constructor(values: readonly FoundValue[]) {
    for (const { value, name } of values) {
      const last = this.#add(value);
      this.#ends[last] = last;
      if (!this.#labels.has(last)) this.#labels.set(last, labelOf(name));
    }
    this.#order = this.#parents
      .map((_, node) => node)
      .toSorted((one, other) => this.#depth(one) - this.#depth(other));
    for (const node of this.#order) this.#link(node);
  }

  findIn(text: string, index: number): readonly Find[] {
    const finds: Find[] = [];
    let node = 0;
    for (let at = 0; at < text.length; at += 1) {
      node = this.#step(node, text.charCodeAt(at));
      const last = this.#ends[node] ?? 0;
      if (last === 0) continue;
      this.#seen.add(last);
      const end = at + 1;
      finds.push({ text: index, start: end - this.#depth(last), end, label: this.#labels.get(last) ?? '' });
    }
    return finds;
  }

  /** Returns true when a value was in no text that was searched, not even as a part of another value. */
  hasUnseen(): boolean {
    for (const node of this.#order.toReversed())
      if (this.#seen.has(node)) this.#seen.add(this.#ends[this.#fails[node] ?? 0] ?? 0);
    return [...this.#labels.keys()].some((last) => !this.#seen.has(last));
  }

  #add(value: string): number {
    let node = 0;
    for (let at = 0; at < value.length; at += 1) {
      const unit = value.charCodeAt(at);
      const key = node * 0x1_00_00 + unit;
      let next = this.#next.get(key);
      if (next === undefined) {
        if (this.#parents.length > maxCharacters) throw new Error('The check reported too many values.');
        next = this.#parents.push(node) - 1;
        this.#units.push(unit);
        this.#depths.push(this.#depth(node) + 1);
        this.#fails.push(0);
        this.#ends.push(0);
        this.#next.set(key, next);
      }
      node = next;
    }
    return node;
  }

  /** Sets the links of a node. Must be called in the order of depth, because the links of shallower nodes are used. */
  #link(node: number): void {
    if (this.#depth(node) < 2) return;
    const fail = this.#step(this.#fails[this.#parents[node] ?? 0] ?? 0, this.#units[node] ?? 0);
    this.#fails[node] = fail;
    if (this.#ends[node] === 0) this.#ends[node] = this.#ends[fail] ?? 0;
  }

  #step(from: number, unit: number): number {
    for (let node = from; ; node = this.#fails[node] ?? 0) {
      const next = this.#next.get(node * 0x1_00_00 + unit);
      if (next !== undefined) return next;
      if (node === 0) return 0;
    }
  }

  #depth(node: number): number {
    return this.#depths[node] ?? 0;
  }
}
