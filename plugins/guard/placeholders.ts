/** Placeholders such as `[EMAIL_1]` for masked values: assigns one to each value of a call, and restores the values in what the model writes. */
import { createHmac } from 'node:crypto';

/**
 * Patterns for the end and the start of a placeholder as a model may write it: in any case, with a space or hyphen for the underscore, with
 * Markdown's backslashes.
 */
export const placeholderEnd = String.raw`(?:\\?_| |-)[A-Z0-9]{1,6} ?\\?\]`;
export const placeholderStart = String.raw`\\?\[ ?`;
const placeholderPattern = /\\?\[ ?([A-Z][A-Z_]*)(?:\\?_| |-)([A-Z0-9]{1,6}) ?\\?\]/gi;

/** A placeholder exactly as the guard writes it. */
const exact = /\[([A-Z_]+_[A-Z0-9]{1,6})\]/g;

/** The number or the letters behind a label. */
const suffix = /(?:\\?_| |-)([A-Z0-9]{1,6}) ?\\?\]$/i;

function nameOf(label: string, number: string): string {
  return `${label.replaceAll(/\\|[ -]/g, '_').toUpperCase()}_${number.toUpperCase()}`;
}

/** Returns the name of a placeholder as it was written: `EMAIL_1` for `\[email 1\]`. Undefined for other text. */
export function nameOfPlaceholder(written: string): string | undefined {
  const number = suffix.exec(written)?.[1];
  if (number === undefined) return undefined;
  const label = written
    .replace(suffix, '')
    .replace(/^\\?\[ ?/, '')
    .replaceAll('\\', '');
  return nameOf(label, number);
}

/**
 * The placeholders of one call. Equal values have the same placeholder. Numbers are assigned by first appearance, so that they are the same in all
 * calls of a conversation. Where the provider stores earlier turns, letters derived from the value replace the number, because a number could
 * belong to another value there.
 */
export class Placeholders {
  readonly #salt: Buffer | undefined;
  /** Names that the client's texts contain, which are not assigned. */
  readonly #taken = new Set<string>();
  readonly #byValue = new Map<string, string>();
  readonly #values = new Map<string, string>();
  /** Names that this call has given. */
  readonly #given = new Set<string>();
  readonly #counts = new Map<string, number>();

  /** With a salt, letters derived from the value replace the number. */
  constructor(salt?: Buffer) {
    this.#salt = salt;
  }

  /** True where placeholders in the response would be restored. */
  get canRestore(): boolean {
    return this.#values.size > 0;
  }

  /** Reserves the names of placeholders that a text of the client contains. Must be called before the first value. */
  reserve(text: string): void {
    if (!text.includes('[')) return;
    for (const [, label = '', number = ''] of text.matchAll(placeholderPattern))
      this.#taken.add(nameOf(label, number));
  }

  has(label: string, value: string): boolean {
    return this.#byValue.has(`${label}\n${value}`);
  }

  /** Returns the placeholder of a value. */
  of(label: string, value: string, mayRestore: boolean): string {
    const key = `${label}\n${value}`;
    let name = this.#byValue.get(key);
    if (name === undefined) {
      name = this.#salt === undefined ? this.#numbered(label) : this.#lettered(label, key, this.#salt);
      this.#byValue.set(key, name);
      this.#given.add(name);
    }
    if (mayRestore) this.#values.set(name, value);
    return `[${name}]`;
  }

  /** Returns the positions of placeholders of this call in a text, in order. Ignores text that only looks like one. */
  placesIn(text: string): readonly { readonly start: number; readonly end: number }[] {
    if (this.#given.size === 0 || !text.includes('[')) return [];
    return Array.from(text.matchAll(exact), ({ 0: { length }, 1: name = '', index }) =>
      this.#given.has(name) ? [{ start: index, end: index + length }] : [],
    ).flat();
  }

  /** Returns the value of a placeholder in any spelling; undefined if it is not of this call. */
  restored(written: string): string | undefined {
    const name = nameOfPlaceholder(written);
    return name === undefined ? undefined : this.#values.get(name);
  }

  #numbered(label: string): string {
    let number = this.#counts.get(label) ?? 0;
    let name: string;
    do {
      number += 1;
      name = nameOf(label, String(number));
    } while (this.#taken.has(name));
    this.#counts.set(label, number);
    return name;
  }

  #lettered(label: string, key: string, salt: Buffer): string {
    for (let attempt = 0; ; attempt += 1) {
      const digest = createHmac('sha256', salt).update(`${attempt}\n${key}`).digest();
      // Six of 32 letters: a collision within one call is tried anew.
      const letters = [...digest.subarray(0, 6)]
        .map((byte) => 'ABCDEFGHJKLMNPQRSTUVWXYZ23456789'[byte & 31])
        .join('');
      const name = nameOf(label, letters);
      if (!this.#taken.has(name) && !this.#given.has(name)) return name;
    }
  }
}
