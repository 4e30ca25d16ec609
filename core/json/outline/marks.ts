/** Marks that stand for the long texts of a body, and the way back. */
import type { JsonObject, JsonValue } from '../../model/json.ts';
import { stringifyRequest } from '../../performance/shared-values.ts';
import type { LeftOutTexts, Outline } from './outline.ts';

/**
 * Replaces marks, which are placeholders of left-out texts in an outline, by the client's bytes. A translated request consists mostly of
 * texts that stay unchanged, so it is decoded and encoded with marks. Nine tenths of an agent's turn are then not parsed, converted to
 * strings and escaped again: one of 250 KB in 77 messages, from chat completions to messages, costs 2.2 ms of CPU by `sluice start`, and
 * 5.3 where all of it is read.
 *
 * A mark begins with a control character, which stands in no JSON text as it is: where a text with marks becomes part of another JSON text
 * its escape is escaped once more. How often that was done can be read, and the client's words are escaped as often.
 */

/** A form feed: rare, and written as quickly as a letter. */
const control = '\f';
const escaped = '\\f';
/** Digits behind it: a zero inside of `tools` and a one outside, and the place among the others there. */
const numberLength = 6;
const outsideOfTools = 100_000;
const markLength = control.length + numberLength;
const writtenLength = escaped.length + numberLength;
/** A mark, or the end of its escape. */
const marks = /(?:\f|\\f)[01]\d{5}/g;

/** As much of a text is looked at for its first visible character, in bytes. */
const head = 64;

const asMember: PropertyDescriptor = { enumerable: true, writable: true, configurable: true };

/** The texts that the outline of a request leaves out. */
export class MarkedTexts {
  readonly #bytes: Buffer;
  readonly #texts: LeftOutTexts;

  private constructor(bytes: Buffer, texts: LeftOutTexts) {
    this.#bytes = bytes;
    this.#texts = texts;
  }

  /** Returns the texts of the outline of these bytes. Undefined if something that the client wrote could be taken for a mark. */
  static of({ text, texts }: Pick<Outline, 'text' | 'texts'>, bytes: Buffer): MarkedTexts | undefined {
    // A form feed may be spelled otherwise.
    if (text.includes('\\u000')) return undefined;
    let count = 0;
    for (let at = text.indexOf(escaped); at >= 0; at = text.indexOf(escaped, at + 1))
      if (numberAt(text, at + escaped.length) >= 0) count += 1;
    return count === texts.spans.length / 2 ? new MarkedTexts(bytes, texts) : undefined;
  }

  /**
   * Returns the length of the left-out text of a mark, and its first and last `length` bytes as written; undefined for a text that is not a
   * mark. A client's text may look like a mark; then the result belongs to another text.
   */
  static glimpse(
    text: string,
    { texts }: Pick<Outline, 'texts'>,
    bytes: Buffer,
    length: number,
  ): string | undefined {
    const number = markAlone(text);
    const index = number < 0 ? undefined : spanIndex(number, texts);
    if (index === undefined) return undefined;
    const [from, to] = [texts.spans[index] ?? 0, texts.spans[index + 1] ?? 0];
    const begin = bytes.toString('latin1', from, Math.min(to, from + length));
    return `${to - from}${begin}${bytes.toString('latin1', Math.max(from, to - length), to)}`;
  }

  /** Returns false for a text in which nothing was left out. */
  isMarked(text: string): boolean {
    return (text.includes(control) || text.includes(escaped)) && text.search(marks) >= 0;
  }

  /** Returns a text with all that was left out of it. */
  restored(text: string): string {
    if (!this.isMarked(text)) return text;
    return withoutMarks(text, (number, slashes) => escapedFor(this.#textOf(number), slashes));
  }

  /**
   * Returns a value of the outline with its marks replaced by the texts. Marks must be whole strings. An object without marks is returned
   * unchanged.
   */
  restoredAll(value: JsonValue): JsonValue {
    if (typeof value === 'string') {
      const number = markAlone(value);
      return number < 0 ? value : this.#textOf(number);
    }
    if (typeof value !== 'object' || value === null) return value;
    let copy: JsonValue | undefined;
    for (const name of Object.keys(value)) {
      const one = (value as JsonObject)[name] as JsonValue;
      const restored = this.restoredAll(one);
      if (restored === one) continue;
      copy ??= Array.isArray(value) ? [...(value as readonly JsonValue[])] : { ...value };
      // Also where the name is `__proto__`.
      Object.defineProperty(copy, name, { ...asMember, value: restored });
    }
    return copy ?? value;
  }

  /** Returns true for a mark whose text begins with a visible character that begins no JSON object, maybe behind some white space. */
  isProse(text: string): boolean {
    const number = markAlone(text);
    if (number < 0) return false;
    const index = this.#indexOf(number);
    const from = this.#texts.spans[index] ?? 0;
    const end = Math.min(this.#texts.spans[index + 1] ?? 0, from + head);
    for (let at = from; at < end; at += 1) {
      const byte = this.#bytes[at] ?? 0;
      if (byte === 0x20) continue;
      if (byte !== 0x5c) return byte !== 0x7b && isVisible(byte);
      at += 1;
      // White space that is escaped: \n, \r, \t.
      const escape = this.#bytes[at];
      if (escape !== 0x6e && escape !== 0x72 && escape !== 0x74) return false;
    }
    return false;
  }

  /** Returns JSON with marks replaced by the client's bytes. Throws for an unknown mark. */
  write(value: JsonValue): Buffer {
    const json = this.#withInner(stringifyRequest(value));
    const { spans } = this.#texts;
    /** Of each mark where it stands, and where the place of its text stands among the others. */
    const places: number[] = [];
    let size = Buffer.byteLength(json);
    for (let at = json.indexOf(escaped); at >= 0; at = json.indexOf(escaped, at + 1)) {
      const number = numberAt(json, at + escaped.length);
      if (number < 0) continue;
      const index = this.#indexOf(number);
      places.push(at, index);
      size += (spans[index + 1] ?? 0) - (spans[index] ?? 0) - writtenLength;
    }
    const bytes = Buffer.allocUnsafeSlow(size);
    let length = 0;
    let done = 0;
    for (let index = 0; index < places.length; index += 2) {
      const at = places[index] ?? 0;
      const span = places[index + 1] ?? 0;
      length += bytes.write(json.slice(done, at), length);
      length += this.#bytes.copy(bytes, length, spans[span], spans[span + 1]);
      done = at + writtenLength;
    }
    bytes.write(json.slice(done), length);
    return bytes;
  }

  /** Returns the JSON with the words in the place of those marks that stand in a text that is JSON itself. */
  #withInner(json: string): string {
    if (!json.includes(`\\${escaped}`)) return json;
    return withoutMarks(json, (number, slashes) => {
      if (slashes === 1) return undefined;
      const words = escapedFor(this.#textOf(number), slashes);
      if (this.isMarked(words)) throw new Error('What the client wrote would be taken for a mark.');
      return words;
    });
  }

  #textOf(number: number): string {
    const index = this.#indexOf(number);
    const { spans } = this.#texts;
    const [from, to] = [spans[index] ?? 0, spans[index + 1] ?? 0];
    return JSON.parse(this.#bytes.toString('utf8', from - 1, to + 1)) as string;
  }

  /** Returns the index in `spans` of the position of a text. */
  #indexOf(number: number): number {
    const index = spanIndex(number, this.#texts);
    if (index === undefined) throw new Error(`No text was left out for the mark ${number}.`);
    return index;
  }
}

/** Returns the index in `spans` of the position of a mark's text; undefined for an unknown mark. */
function spanIndex(number: number, { spans, beforeTools, inTools }: LeftOutTexts): number | undefined {
  const count = number % outsideOfTools;
  const isTools = number < outsideOfTools;
  const index = 2 * (isTools ? beforeTools + count : count < beforeTools ? count : count + inTools);
  return index < spans.length ? index : undefined;
}

/** Returns the number of the mark that a text is; -1 where it is something else. */
function markAlone(text: string): number {
  return text.length === markLength && text.startsWith(control) ? numberAt(text, control.length) : -1;
}

/** Returns the number of the mark at this position; -1 if there is no mark. */
function numberAt(text: string, at: number): number {
  const first = text.charCodeAt(at);
  if (first !== 0x30 && first !== 0x31) return -1;
  let number = first - 0x30;
  for (let index = at + 1; index < at + numberLength; index += 1) {
    const digit = text.charCodeAt(index);
    if (!(digit >= 0x30 && digit <= 0x39)) return -1;
    number = 10 * number + digit - 0x30;
  }
  return number;
}

/** Returns false when the first byte of a character leaves open whether it is white space. */
function isVisible(first: number): boolean {
  return first < 0x80 ? first > 0x20 && first < 0x7f : first > 0xc2 && !uncertain.has(first);
}

/** First bytes of the white space of JavaScript beyond ASCII, besides 0xc2. */
const uncertain: ReadonlySet<number> = new Set([0xe1, 0xe2, 0xe3, 0xef]);

/**
 * Returns a text with its marks replaced by the results of `wordsFor`. A mark for which it returns undefined stays. `wordsFor` gets the
 * number of backslashes in the escape of the mark: 0 if it is not escaped, otherwise a power of two.
 */
function withoutMarks(
  text: string,
  wordsFor: (number: number, slashes: number) => string | undefined,
): string {
  let replaced = '';
  let done = 0;
  for (const { 0: mark, index } of text.matchAll(marks)) {
    // The index is that of the last one, and of all before it those that are left may be an escape of the text's own.
    let slashes = mark.length === markLength ? 0 : 1;
    while (slashes > 0 && text.charCodeAt(index - slashes) === 0x5c) slashes += 1;
    const own = slashes & -slashes;
    const words = wordsFor(numberAt(mark, mark.length - numberLength), own);
    if (words === undefined) continue;
    replaced += text.slice(done, own === 0 ? index : index + 1 - own) + words;
    done = index + mark.length;
  }
  return replaced + text.slice(done);
}

/** Returns a text as it stands where the escape of its mark has so many reverse solidi. */
function escapedFor(text: string, slashes: number): string {
  let written = text;
  for (let count = slashes; count >= 1; count /= 2) written = JSON.stringify(written).slice(1, -1);
  return written;
}
