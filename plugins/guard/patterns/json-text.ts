/** Finds patterns in JSON text that arrives in pieces. */
import type { TextTransformer } from 'sluice';

const controls: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };
const literals = ['true', 'false', 'null'];

/** Maximum number of characters of a number, with the spaces behind it, that are examined at once. */
const longestNumber = 64;

/**
 * Changes the strings inside of JSON text that comes in pieces: each is decoded, goes through a transformer of its own, and is escaped again.
 * A number whose digits the transformer changes becomes a string. Everything else stays as it is. From where the text is no JSON on, all of it
 * goes through one transformer.
 */
export class JsonText implements TextTransformer {
  readonly #make: () => TextTransformer;
  #string: TextTransformer | undefined;
  /** An escape sequence that has begun, without its `\`. */
  #escape: string | undefined;
  /** A number and the spaces after it, until the next character shows that it is a number. */
  #number = '';
  #literal = '';
  /** Passes everything on, once the text has proved not to be JSON. */
  #plain: TextTransformer | undefined;

  constructor(make: () => TextTransformer) {
    this.#make = make;
  }

  push(text: string): string {
    let given = '';
    let at = 0;
    while (at < text.length) {
      if (this.#plain !== undefined) return given + this.#plain.push(text.slice(at));
      if (this.#string === undefined) {
        given += this.#outside(text[at] ?? '');
        at += 1;
        continue;
      }
      // All decoded text of this piece goes through the transformer at once.
      let decoded = '';
      let closed = false;
      while (at < text.length && !closed) {
        if (this.#escape !== undefined) decoded += this.#escaped(text[at] ?? '');
        else if (text[at] === '\\') this.#escape = '';
        else if (text[at] === '"') closed = true;
        else {
          const end = plainEnd(text, at);
          decoded += text.slice(at, end);
          at = end - 1;
        }
        at += 1;
      }
      given += escapedText(this.#string.push(decoded));
      if (!closed) continue;
      given += `${escapedText(this.#string.end())}"`;
      this.#string = undefined;
    }
    return given;
  }

  end(): string {
    if (this.#plain !== undefined) return this.#plain.end();
    const rest = this.#endNumber() + this.#literal + escapedText(this.#string?.end() ?? '');
    this.#string = undefined;
    this.#literal = '';
    return rest;
  }

  #outside(unit: string): string {
    if (this.#number !== '') {
      const continues = /\s$/.test(this.#number) ? /\s/ : /[\d.eE+\s-]/;
      if (!continues.test(unit) && !/[}\],]/.test(unit)) return this.#noJson(unit);
      if (continues.test(unit) && this.#number.length >= longestNumber) return this.#noJson(unit);
    }
    const isNumber = this.#number === '' ? /[\d-]/.test(unit) : /[\d.eE+\s-]/.test(unit);
    if (isNumber && this.#literal === '') {
      this.#number += unit;
      return '';
    }
    if (/[a-z]/.test(unit) && this.#number === '') {
      const literal = this.#literal + unit;
      if (literals.some((word) => word.startsWith(literal))) {
        this.#literal = literal;
        return '';
      }
    }
    if (!/[\s{}[\],:"]/.test(unit)) return this.#noJson(unit);
    const before = this.#endNumber() + this.#literal;
    this.#literal = '';
    if (unit === '"') this.#string = this.#make();
    return before + unit;
  }

  #noJson(unit: string): string {
    this.#plain = this.#make();
    return this.#plain.push(this.#number + this.#literal + unit);
  }

  #endNumber(): string {
    const number = this.#number;
    if (number === '') return '';
    this.#number = '';
    const digits = number.trimEnd();
    return changedNumber(digits, this.#make()) + number.slice(digits.length);
  }

  /** Adds one character of an escape sequence, and returns the decoded character once the sequence is complete. */
  #escaped(unit: string): string {
    const sequence = (this.#escape ?? '') + unit;
    if (sequence.startsWith('u') && sequence.length < 5) {
      this.#escape = sequence;
      return '';
    }
    this.#escape = undefined;
    if (!sequence.startsWith('u')) return controls[sequence] ?? sequence;
    return String.fromCharCode(Number.parseInt(sequence.slice(1), 16) || 0);
  }
}

/** Returns the end of the plain characters of a string: a quote, an escape, or the end of the text. */
function plainEnd(text: string, from: number): number {
  for (let at = from; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit === 0x22 || unit === 0x5c) return at;
  }
  return text.length;
}

function escapedText(text: string): string {
  return text === '' ? '' : JSON.stringify(text).slice(1, -1);
}

/** Returns a number, or a string in its place where the transformer changes its digits. */
function changedNumber(number: string, transformer: TextTransformer): string {
  const changed = transformer.push(number) + transformer.end();
  return changed === number ? number : JSON.stringify(changed);
}
