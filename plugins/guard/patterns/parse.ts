/** Parses a subset of JavaScript's regular expressions into a syntax tree that can be compiled into an automaton. */
import {
  anyChar,
  casesOf,
  complement,
  digits,
  property,
  spaces,
  union,
  withCases,
  wordChars,
  type CharSet,
} from './char-set.ts';

/** A parsed pattern. `look` tests the one character before or behind a position; `none` is the result at the edge of the text. */
export type Node =
  | { readonly type: 'set'; readonly set: CharSet }
  | { readonly type: 'look'; readonly set: CharSet; readonly behind: boolean; readonly none: boolean }
  | { readonly type: 'seq' | 'alt'; readonly parts: readonly Node[] }
  | { readonly type: 'repeat'; readonly node: Node; readonly min: number; readonly max: number };

const empty: Node = { type: 'seq', parts: [] };
const maxRepeats = 1000;

/** Returns an assertion that the character before or behind is in the set or, negated, that it is not, which is also true at the edge of the text. */
function look(set: CharSet, behind: boolean, negated: boolean): Node {
  return { type: 'look', set: negated ? complement(set) : set, behind, none: negated };
}

/** Returns the node of `\b` or `\B`. */
function boundary(isBoundary: boolean): Node {
  const pair = (before: boolean, after: boolean): Node => ({
    type: 'seq',
    parts: [look(wordChars, true, !before), look(wordChars, false, !after)],
  });
  return { type: 'alt', parts: [pair(true, !isBoundary), pair(false, isBoundary)] };
}

/**
 * Parses the part of JavaScript's regular expressions that an automaton can run in linear time: literals, classes, groups, alternatives,
 * repetitions, `^`, `$`, `\b`, and look-around of one character. Throws SyntaxError that says what is not supported, and where.
 */
export function parsePattern(source: string, ignoreCase = false): Node {
  return new Parser(source, ignoreCase).whole();
}

class Parser {
  readonly #source: string;
  readonly #ignoreCase: boolean;
  #at = 0;

  constructor(source: string, ignoreCase: boolean) {
    this.#source = source;
    this.#ignoreCase = ignoreCase;
  }

  whole(): Node {
    const node = this.#alternatives();
    if (this.#at < this.#source.length) this.#fail('an unmatched ")"');
    return node;
  }

  #fail(what: string): never {
    throw new SyntaxError(`The pattern has ${what} at character ${this.#at + 1}: ${this.#source}`);
  }

  #take(text: string): boolean {
    if (!this.#source.startsWith(text, this.#at)) return false;
    this.#at += text.length;
    return true;
  }

  #alternatives(): Node {
    const parts = [this.#sequence()];
    while (this.#take('|')) parts.push(this.#sequence());
    const [only = empty] = parts;
    return parts.length === 1 ? only : { type: 'alt', parts };
  }

  #sequence(): Node {
    const parts: Node[] = [];
    while (this.#at < this.#source.length && !'|)'.includes(this.#source[this.#at] ?? ''))
      parts.push(this.#repeated(this.#atom()));
    return { type: 'seq', parts };
  }

  #repeated(node: Node): Node {
    const counts = this.#counts();
    if (counts === undefined) return node;
    if (node.type === 'look') this.#fail('a repeated assertion');
    // Lazy or not: the longest match counts.
    this.#take('?');
    if (this.#take('+')) this.#fail('a possessive quantifier');
    return { type: 'repeat', node, ...counts };
  }

  #counts(): { readonly min: number; readonly max: number } | undefined {
    if (this.#take('*')) return { min: 0, max: Infinity };
    if (this.#take('+')) return { min: 1, max: Infinity };
    if (this.#take('?')) return { min: 0, max: 1 };
    const counted = /^\{(\d+)(?:(,)(\d*))?\}/.exec(this.#source.slice(this.#at, this.#at + 24));
    if (counted === null) return undefined;
    const [all, least = '0', comma, most] = counted;
    const min = Number(least);
    const max = comma === undefined ? min : most === '' ? Infinity : Number(most);
    if (max < min) this.#fail('a repetition whose maximum is below its minimum');
    if (min > maxRepeats || (max !== Infinity && max > maxRepeats))
      this.#fail(`a repetition of more than ${maxRepeats}`);
    this.#at += all.length;
    return { min, max };
  }

  #atom(): Node {
    if (this.#take('(')) return this.#group();
    if (this.#take('[')) return this.#set(this.#class());
    if (this.#take('.')) return this.#set(complement([10, 10, 13, 13, 0x20_28, 0x20_29]));
    if (this.#take('^')) return look(anyChar, true, true);
    if (this.#take('$')) return look(anyChar, false, true);
    if (this.#take('\\')) return this.#escape();
    if ('*+?'.includes(this.#source[this.#at] ?? '')) this.#fail('a quantifier with nothing before it');
    const point = this.#source.codePointAt(this.#at) ?? 0;
    const text = String.fromCodePoint(point);
    this.#at += text.length;
    return this.#literal(text);
  }

  /** Parses a character as one or two UTF-16 code units. */
  #literal(text: string): Node {
    const parts = Array.from({ length: text.length }, (_, index): Node => {
      const unit = text.charCodeAt(index);
      return { type: 'set', set: this.#ignoreCase ? casesOf(unit) : [unit, unit] };
    });
    return parts.length === 1 ? (parts[0] ?? empty) : { type: 'seq', parts };
  }

  #set(set: CharSet): Node {
    return { type: 'set', set: this.#ignoreCase ? withCases(set) : set };
  }

  #group(): Node {
    const behind = this.#source.startsWith('?<=', this.#at) || this.#source.startsWith('?<!', this.#at);
    if (behind || this.#source.startsWith('?=', this.#at) || this.#source.startsWith('?!', this.#at))
      return this.#lookAround(behind);
    if (this.#take('?')) {
      const named = /^<[A-Za-z_]\w*>/.exec(this.#source.slice(this.#at, this.#at + 100));
      if (named !== null) this.#at += named[0].length;
      else if (!this.#take(':')) this.#fail('a group of an unsupported kind');
    }
    const node = this.#alternatives();
    if (!this.#take(')')) this.#fail('a group without its end');
    return node;
  }

  #lookAround(behind: boolean): Node {
    this.#at += behind ? 3 : 2;
    const negated = this.#source[this.#at - 1] === '!';
    const node = this.#alternatives();
    if (!this.#take(')')) this.#fail('a group without its end');
    const single = node.type === 'seq' && node.parts.length === 1 ? node.parts[0] : node;
    if (single?.type !== 'set') this.#fail('look-around of more than one character');
    return look(single.set, behind, negated);
  }

  #escape(): Node {
    if (this.#take('b')) return boundary(true);
    if (this.#take('B')) return boundary(false);
    if (/[1-9k]/.test(this.#source[this.#at] ?? '')) this.#fail('a back-reference');
    const set = this.#escapedSet();
    return set === undefined ? this.#literal(this.#escapedChar()) : this.#set(set);
  }

  /** Parses `\d`, `\p{L}` and the like. */
  #escapedSet(): CharSet | undefined {
    const sets: Readonly<Record<string, CharSet>> = { d: digits, w: wordChars, s: spaces };
    const letter = this.#source[this.#at] ?? '';
    const set = sets[letter.toLowerCase()];
    if (set !== undefined) {
      this.#at += 1;
      return letter === letter.toLowerCase() ? set : complement(set);
    }
    const named = /^([pP])\{([\w=]+)\}/.exec(this.#source.slice(this.#at, this.#at + 60));
    if (named === null) return undefined;
    const [all, kind, name = ''] = named;
    try {
      const members = property(name);
      this.#at += all.length;
      return kind === 'p' ? members : complement(members);
    } catch {
      return this.#fail(`an unknown property ${name}`);
    }
  }

  #escapedChar(): string {
    const coded = /^(?:x([\dA-Fa-f]{2})|u([\dA-Fa-f]{4}))/.exec(this.#source.slice(this.#at, this.#at + 5));
    if (coded !== null) {
      this.#at += coded[0].length;
      return String.fromCharCode(Number.parseInt(coded[1] ?? coded[2] ?? '', 16));
    }
    const letter = this.#source[this.#at];
    if (letter === undefined) return this.#fail('a "\\" with nothing behind it');
    this.#at += 1;
    const controls: Readonly<Record<string, string>> = {
      n: '\n',
      r: '\r',
      t: '\t',
      f: '\f',
      v: '\v',
      0: '\0',
    };
    const control = controls[letter];
    if (control !== undefined) return control;
    if (/[A-Za-z]/.test(letter)) this.#fail(`an unknown escape \\${letter}`);
    return letter;
  }

  #class(): CharSet {
    const negated = this.#take('^');
    const sets: CharSet[] = [];
    while (!this.#take(']')) {
      if (this.#at >= this.#source.length) this.#fail('a class without its end');
      const first = this.#classMember();
      const isRange =
        typeof first === 'string' && this.#source[this.#at] === '-' && this.#source[this.#at + 1] !== ']';
      if (!isRange) {
        sets.push(typeof first === 'string' ? [first.charCodeAt(0), first.charCodeAt(0)] : first);
        continue;
      }
      this.#at += 1;
      const last = this.#classMember();
      if (typeof last !== 'string' || last.charCodeAt(0) < first.charCodeAt(0)) this.#fail('a wrong range');
      sets.push([first.charCodeAt(0), last.charCodeAt(0)]);
    }
    const set = union(sets);
    return negated ? complement(set) : set;
  }

  #classMember(): string | CharSet {
    if (this.#take('\\')) return this.#take('b') ? '\b' : (this.#escapedSet() ?? this.#escapedChar());
    const text = String.fromCodePoint(this.#source.codePointAt(this.#at) ?? 0);
    if (text.length > 1) this.#fail('a character beyond the basic plane in a class');
    this.#at += 1;
    return text;
  }
}
