import type { JsonValue } from '../../../model/json.ts';
import type { LeftOutTexts, Outline } from '../../../model/outline.ts';
import { writeJson } from '../long-json/index.ts';

/*
 * In an outline a mark stands for each text that was left out. A request that is translated is mostly such texts, and they go from one
 * format to the other as they are: it is decoded and encoded with marks in their place, and written with the client's own bytes in the
 * place of the marks. So nine tenths of an agent's turn are neither parsed, nor made strings of, nor escaped again.
 *
 * A mark begins with a control character, which stands in no JSON text as it is: where a text with marks becomes part of another JSON text
 * its escape is escaped once more. How often that was done can be read, and the client's words are escaped as often.
 */

const control = '\u0001';
const escaped = '\\u0001';
const length = 1 + 6;
/** A mark, or the JSON text of one. */
// oxlint-disable-next-line no-control-regex
const marks = /(?:\u0001|(\\+)u0001)(\d{6})/g;

/** As much of a text is looked at for its first visible character, in bytes. */
const head = 64;

/** The texts that the outline of a request leaves out. */
export class MarkedTexts {
  readonly #bytes: Buffer;
  readonly #texts: LeftOutTexts;

  private constructor(bytes: Buffer, texts: LeftOutTexts) {
    this.#bytes = bytes;
    this.#texts = texts;
  }

  /** Of the outline of these bytes. Undefined where something that the client wrote could be taken for a mark. */
  static of({ text, texts }: Pick<Outline, 'text' | 'texts'>, bytes: Buffer): MarkedTexts | undefined {
    let count = 0;
    for (let at = text.indexOf(escaped); at >= 0; at = text.indexOf(escaped, at + length)) count += 1;
    return count === texts.spans.length / 2 ? new MarkedTexts(bytes, texts) : undefined;
  }

  /** False for a text in which nothing was left out. */
  isMarked(text: string): boolean {
    return text.includes(control) || text.includes(escaped);
  }

  /** A text with all that was left out of it. */
  restored(text: string): string {
    if (!this.isMarked(text)) return text;
    return text.replaceAll(marks, (_, slashes: string | undefined, number: string) => {
      if (slashes === undefined) return this.#textOf(number);
      const own = powerOfTwo(slashes.length);
      return slashes.slice(own) + escapedFor(this.#textOf(number), own);
    });
  }

  /** The same of a value, in all its texts. */
  restoredAll(value: JsonValue): JsonValue {
    if (typeof value === 'string') return this.restored(value);
    if (typeof value !== 'object' || value === null) return value;
    if (Array.isArray(value)) return (value as readonly JsonValue[]).map((one) => this.restoredAll(one));
    return Object.fromEntries(
      Object.entries(value).map(([name, one]) => [name, this.restoredAll(one as JsonValue)]),
    );
  }

  /** True for a mark whose text begins with a visible character that begins no JSON object, maybe behind some white space. */
  isProse(text: string): boolean {
    if (text.length !== length || !text.startsWith(control)) return false;
    const [from, to] = this.#spanOf(text.slice(1));
    const end = Math.min(to, from + head);
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

  /** JSON for the wire, with the client's own bytes in the place of marks. Throws for a mark that is none. */
  write(value: JsonValue, about: number): Buffer {
    const written = writeJson(value, about);
    const json = typeof written === 'string' ? Buffer.from(written) : written;
    const pieces: Buffer[] = [];
    let done = 0;
    for (let at = json.indexOf(escaped, 0, 'latin1'); at >= 0; at = json.indexOf(escaped, done, 'latin1')) {
      let slashes = 1;
      while (json[at - slashes] === 0x5c) slashes += 1;
      const own = powerOfTwo(slashes);
      pieces.push(json.subarray(done, at + 1 - own));
      done = at + escaped.length + length - 1;
      const number = json.toString('latin1', at + escaped.length, done);
      const [from, to] = this.#spanOf(number);
      pieces.push(
        own === 1 ? this.#bytes.subarray(from, to) : Buffer.from(escapedFor(this.#textOf(number), own)),
      );
    }
    if (done === 0) return json;
    pieces.push(json.subarray(done));
    return Buffer.concat(pieces);
  }

  #textOf(number: string): string {
    const [from, to] = this.#spanOf(number);
    return JSON.parse(this.#bytes.toString('utf8', from - 1, to + 1)) as string;
  }

  #spanOf(number: string): readonly [from: number, to: number] {
    const { spans, beforeTools, inTools } = this.#texts;
    const count = Number(number.slice(1));
    const isTools = number.startsWith('0');
    const index = isTools ? beforeTools + count : count < beforeTools ? count : count + inTools;
    const [from, to] = [spans[2 * index], spans[2 * index + 1]];
    if (from === undefined || to === undefined)
      throw new Error(`No text was left out for the mark ${number}.`);
    return [from, to];
  }
}

/** False where the first byte of a character leaves open whether it is white space. */
function isVisible(first: number): boolean {
  return first < 0x80 ? first > 0x20 && first < 0x7f : first > 0xc2 && !uncertain.has(first);
}

/** First bytes of the white space of JavaScript beyond ASCII, besides 0xc2. */
const uncertain: ReadonlySet<number> = new Set([0xe1, 0xe2, 0xe3, 0xef]);

/** Of so many reverse solidi before the `u` of a mark as many belong to it; the others are escaped ones of the text before it. */
function powerOfTwo(slashes: number): number {
  return slashes & -slashes;
}

/** A text as it stands where the escape of its mark has so many reverse solidi. */
function escapedFor(text: string, slashes: number): string {
  let written = text;
  for (let count = slashes; count >= 1; count /= 2) written = JSON.stringify(written).slice(1, -1);
  return written;
}
