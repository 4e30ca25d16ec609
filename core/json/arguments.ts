/** Arguments as an object, also where the model wrote none. */
import { isDeepStrictEqual } from 'node:util';
import { parseObject } from './parse.ts';
import { isObject, type JsonObject, type JsonValue } from '../model/json.ts';

/**
 * Converts tool arguments that are not a JSON object, mostly because the output limit cut them, for formats that require an object. The
 * object has the complete members, null for the one that breaks off, and the whole text as `_raw`, from which the text is restored.
 */

/** Name of the member with the whole text. */
const rawKey = '_raw';

/** Arguments as the object that a format wants. */
export function argumentsObject(text: string): JsonObject {
  const whole = text.trim() === '' ? {} : parseObject(text);
  if (whole !== undefined) return whole;
  const reader = new ArgumentsText();
  return parseObject(reader.push(text) + reader.end()) ?? { [rawKey]: text };
}

/** Returns the text that {@link argumentsObject} made an object of because it was none; undefined for ordinary arguments. */
export function brokenArguments(args: JsonValue): string | undefined {
  if (!isObject(args)) return undefined;
  const raw = args[rawKey];
  if (typeof raw !== 'string' || raw.trim() === '' || parseObject(raw) !== undefined) return undefined;
  return isDeepStrictEqual(argumentsObject(raw), args) ? raw : undefined;
}

/** State of the scanner: the token that it expects next. `open` and `first`: after a bracket; `next`: after a value. */
type ScanState = 'start' | 'open' | 'key' | 'colon' | 'value' | 'first' | 'next' | 'end';

/** State of a number. */
type Digits = 'minus' | 'zero' | 'integer' | 'dot' | 'fraction' | 'exponent' | 'sign' | 'power';

/**
 * Converts streamed arguments to the text of a JSON object. The returned pieces are appended to each other; together they are the JSON text
 * of the result of {@link argumentsObject}.
 */
export class ArgumentsText {
  #text = '';
  #state: ScanState = 'start';
  /** Open objects and lists, outermost first. */
  readonly #open: ('{' | '[')[] = [];
  /** Something came that no JSON text goes on with. */
  #broken = false;
  #inString = false;
  #isKey = false;
  /** Characters that an escape still needs: its letter after `\`, and digits after `u`. */
  #escape = 0;
  #number: Digits | undefined;
  /** Remaining characters of `true`, `false` or `null`. */
  #word = '';
  /** The name of the outermost member that came last, as it was written. */
  #name = '';
  /** Piece in which the object ended, without its last bracket. Held back until it is certain that no invalid text follows. */
  #last = '';

  /** Returns the text that is certain so far. */
  push(piece: string): string {
    this.#text += piece;
    if (this.#broken) return '';
    const from = this.#state === 'start' ? piece.search(/[^ \t\r\n]/) : 0;
    if (from < 0) return '';
    const ended = this.#state === 'end';
    const part = piece.slice(from, this.#scan(piece, from));
    if (ended) return '';
    if (this.#state !== 'end') return part;
    this.#last = part;
    return '';
  }

  /** Returns the remaining text; empty if there were no arguments. */
  end(): string {
    if (this.#text.trim() === '') return '';
    if (this.#state === 'end' && !this.#broken) return `${this.#last}}`;
    const raw = `${JSON.stringify(rawKey)}:${JSON.stringify(this.#text)}}`;
    if (this.#state === 'start') return `{${raw}`;
    const closing = this.#last + this.#close();
    return `${closing}${this.#name === '' || this.#state === 'key' ? '' : ','}${raw}`;
  }

  /** Reads on. Returns where that stops: at the end of the piece, at the last bracket, at what does not fit. */
  #scan(piece: string, from: number): number {
    let last: number | undefined;
    for (let at = from; at < piece.length; at += 1) {
      if (this.#inString) {
        at = this.#string(piece, at);
        if (!this.#broken) continue;
      } else {
        this.#character(piece[at] ?? '');
        if (this.#state === 'end') last ??= at;
      }
      if (this.#broken) return last ?? at;
    }
    return last ?? piece.length;
  }

  /** Reads the characters of a string. Returns the position of the last one, or of an invalid one. */
  #string(piece: string, from: number): number {
    let at = from;
    if (this.#escape === 0) {
      plain.lastIndex = at;
      plain.test(piece);
      const end = plain.lastIndex;
      this.#named(piece.slice(at, end));
      if (end >= piece.length) return piece.length;
      at = end;
    }
    const character = piece[at] ?? '';
    if (this.#escape > 0) this.#escaped(character);
    else if (character === '\\') this.#escape = 1;
    else if (character === '"') {
      this.#inString = false;
      this.#state = this.#isKey ? 'colon' : 'next';
    } else this.#broken = true;
    if (!this.#broken) this.#named(character);
    return at;
  }

  #escaped(character: string): void {
    if (this.#escape > 1) {
      this.#broken = !/[\da-f]/i.test(character);
      if (!this.#broken) this.#escape = this.#escape === 2 ? 0 : this.#escape - 1;
    } else if (character === 'u') this.#escape = 5;
    else if ('"\\/bfnrt'.includes(character)) this.#escape = 0;
    else this.#broken = true;
  }

  #named(text: string): void {
    if (this.#isKey && this.#open.length === 1) this.#name += text;
  }

  /** Reads a character outside of strings. */
  #character(character: string): void {
    if (this.#word !== '') {
      this.#broken = !this.#word.startsWith(character);
      if (this.#broken) return;
      this.#word = this.#word.slice(1);
      if (this.#word === '') this.#state = 'next';
      return;
    }
    if (this.#number !== undefined) {
      const next = digitsAfter(this.#number, character);
      if (next === undefined && isShort(this.#number)) {
        this.#broken = true;
        return;
      }
      this.#number = next;
      if (next !== undefined) return;
      this.#state = 'next';
    }
    if (character === ' ' || character === '\t' || character === '\r' || character === '\n') return;
    this.#sign(character);
  }

  #sign(character: string): void {
    const inner = this.#open.at(-1);
    switch (this.#state) {
      case 'start':
        this.#broken = character !== '{';
        if (!this.#broken) this.#enter('{');
        return;
      case 'open':
      case 'key':
        if (character === '"') this.#begin(true);
        else if (character === '}' && this.#state === 'open') this.#leave();
        else this.#broken = true;
        return;
      case 'colon':
        this.#broken = character !== ':';
        if (!this.#broken) this.#state = 'value';
        return;
      case 'first':
        if (character === ']') this.#leave();
        else this.#value(character);
        return;
      case 'value':
        this.#value(character);
        return;
      case 'next':
        if (character === ',') this.#state = inner === '{' ? 'key' : 'value';
        else if (character === (inner === '{' ? '}' : ']')) this.#leave();
        else this.#broken = true;
        return;
      case 'end':
        this.#broken = true;
    }
  }

  #value(character: string): void {
    const word = words[character];
    if (character === '"') this.#begin(false);
    else if (character === '{' || character === '[') this.#enter(character);
    else if (word !== undefined) this.#word = word.slice(1);
    else {
      this.#number = character === '-' ? 'minus' : digitsAfter('minus', character);
      this.#broken = this.#number === undefined;
    }
  }

  #begin(isKey: boolean): void {
    this.#inString = true;
    this.#isKey = isKey;
    if (isKey && this.#open.length === 1) this.#name = '"';
  }

  #enter(bracket: '{' | '['): void {
    this.#open.push(bracket);
    this.#state = bracket === '{' ? 'open' : 'first';
  }

  #leave(): void {
    this.#open.pop();
    this.#state = this.#open.length === 0 ? 'end' : 'next';
  }

  /** Closes all but the outermost object, with null for the member in which the text breaks off. */
  #close(): string {
    if (this.#state === 'end') return '';
    const isBegun =
      this.#open.length > 1 ||
      (this.#inString && !this.#isKey) ||
      this.#word !== '' ||
      this.#number !== undefined;
    let text = this.#closeToken();
    while (this.#open.length > 1) {
      if (this.#state === 'key') text += '"":null';
      text += this.#missingValue() + (this.#open.pop() === '{' ? '}' : ']');
      this.#state = 'next';
    }
    text += this.#missingValue();
    return isBegun ? `${text},${this.#name}:null` : text;
  }

  #closeToken(): string {
    let text = this.#word;
    if (this.#inString) {
      text = `${this.#escape === 1 ? '\\' : '0'.repeat(Math.max(0, this.#escape - 1))}"`;
      this.#state = this.#isKey ? 'colon' : 'next';
    } else if (this.#number !== undefined) {
      text = isShort(this.#number) ? '0' : '';
      this.#state = 'next';
    } else if (this.#word !== '') this.#state = 'next';
    return text;
  }

  #missingValue(): string {
    const text = this.#state === 'colon' ? ':null' : this.#state === 'value' ? 'null' : '';
    if (text !== '') this.#state = 'next';
    return text;
  }
}

/** Matches characters that need no escape in a string. */
// oxlint-disable-next-line no-control-regex
const plain = /[^"\\\u0000-\u001f]*/y;

const words: Readonly<Record<string, string>> = { t: 'true', f: 'false', n: 'null' };

/** Returns undefined where a number has no such character. */
function digitsAfter(before: Digits, character: string): Digits | undefined {
  const isDigit = character >= '0' && character <= '9';
  const isExponent = character === 'e' || character === 'E';
  switch (before) {
    case 'minus':
      return isDigit ? (character === '0' ? 'zero' : 'integer') : undefined;
    case 'zero':
    case 'integer':
      if (isDigit && before === 'integer') return 'integer';
      return character === '.' ? 'dot' : isExponent ? 'exponent' : undefined;
    case 'dot':
    case 'fraction':
      if (isDigit) return 'fraction';
      return isExponent && before === 'fraction' ? 'exponent' : undefined;
    case 'exponent':
    case 'sign':
    case 'power':
      if (isDigit) return 'power';
      return before === 'exponent' && (character === '+' || character === '-') ? 'sign' : undefined;
  }
}

/** Returns true for a number that needs a digit more. */
function isShort(digits: Digits): boolean {
  return digits === 'minus' || digits === 'dot' || digits === 'exponent' || digits === 'sign';
}
