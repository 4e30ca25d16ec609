import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Automaton } from '../../../plugins/guard/patterns/automaton.ts';
import { JsonText } from '../../../plugins/guard/patterns/json-text.ts';
import { Matcher } from '../../../plugins/guard/patterns/matcher.ts';
import { parsePattern } from '../../../plugins/guard/patterns/parse.ts';
import { compile } from '../../../plugins/guard/patterns/program.ts';
import { Replacer, replaceSpans } from '../../../plugins/guard/patterns/replacer.ts';
import { wordsPattern } from '../../../plugins/guard/patterns/words.ts';
import { tries } from '../../support/tries.ts';

/** Cuts a text at these places. */
function cutAt(text: string, cuts: readonly number[]): readonly string[] {
  const at = [0, ...cuts.filter((cut) => cut < text.length).toSorted((a, b) => a - b), text.length];
  return at.slice(1).map((end, index) => text.slice(at[index], end));
}

describe('patterns', () => {
  const patterns = fc.constantFrom(
    'a+b',
    '(?:ab|a)*c',
    'a{2,3}',
    '[^ab]x?',
    String.raw`\bab\b`,
    String.raw`\Bb`,
    '(?<!a)b+',
    'a(?!b)',
    '(?<=c)a?b',
    '^a|b$',
    'x{0,2}y{2,}',
    '.b',
    '(?:(?:a|ab)(?:c|bcd)*)',
    '(?:😀)+',
    String.raw`\w+-\d`,
    String.raw`(?<n>a)\x62\u0063`,
  );

  test('match what JavaScript matches, at every place and with every end', () => {
    fc.assert(
      fc.property(
        patterns,
        fc.string({
          unit: fc.constantFrom('a', 'b', 'c', 'd', 'x', 'y', ' ', '-', '1', '\n', '😀'),
          maxLength: 10,
        }),
        (source, text) => {
          const automaton = new Automaton(compile([parsePattern(source)]));
          for (let at = 0; at <= text.length; at += 1) {
            const ends = automaton.matchesAt(text, at, 100, true)?.map(({ end }) => end);
            const expected = Array.from({ length: text.length - at }, (_, index) => at + index + 1).filter(
              (end) => new RegExp(`^[^]{${at}}(?:${source})(?=[^]{${text.length - end}}$(?![^]))`).test(text),
            );
            expect(ends).toEqual(expected);
            if (expected.length > 0) expect(automaton.nextStart(text, at)).toBe(at);
          }
        },
      ),
      { numRuns: tries(5000) },
    );
  });

  test.each([
    [String.raw`(a)\1`, 'a back-reference'],
    ['(?=ab)a', 'look-around of more than one character'],
    ['a**', 'a quantifier'],
    ['(a', 'a group without its end'],
    ['a)', 'an unmatched'],
    ['[b-a]', 'a wrong range'],
    ['a{2000}', 'more than 1000'],
    [String.raw`\q`, 'an unknown escape'],
    [String.raw`\p{Nothing}`, 'an unknown property'],
    ['(?i)a', 'a group of an unsupported kind'],
  ])('%s is refused by name', (source, what) => {
    expect(() => parsePattern(source)).toThrow(what);
  });

  test('patterns that ruin a backtracking engine come to an end', () => {
    const matcher = new Matcher([{ node: parsePattern('(?:a+)+b|(?:a|aa)+c|(?:.*)*d') }], 256);
    expect(matcher.scan('a'.repeat(100_000)).spans).toEqual([]);
  });

  test('too large a pattern is refused', () => {
    expect(() => new Matcher([{ node: parsePattern('(?:a{1000}){1000}') }], 10)).toThrow(/too large/);
  });
});

describe('words', () => {
  const found = (text: string, words: readonly string[], options = {}): readonly string[] => {
    const matcher = new Matcher([{ node: wordsPattern(words, options) }], 100);
    return matcher.scan(text).spans.map(({ start, end }) => text.slice(start, end));
  };

  test('are found whole and in any case, also beyond ASCII', () => {
    const words = ['Straße', 'moon', 'moonshine', 'ΑΘΗΝΑ', '北京'];
    expect(found('STRAßE straße Straßen moonshine Moon. moons αθηνα 北京', words)).toEqual([
      'STRAßE',
      'straße',
      'moonshine',
      'Moon',
      'αθηνα',
      '北京',
    ]);
  });

  test('are found inside of others, or in one case, on request', () => {
    expect(found('concatenate Cat', ['cat'], { within: true })).toEqual(['cat', 'Cat']);
    expect(found('cat Cat', ['Cat'], { caseSensitive: true })).toEqual(['Cat']);
  });

  test('of a long list are compiled together', () => {
    const words = Array.from({ length: 20_000 }, (_, index) => `secret${index * 7919}word`);
    expect(found(`a ${words[19_999]} b`, words)).toEqual([words[19_999]]);
  });
});

describe('a replacer', () => {
  const matcher = new Matcher(
    [
      { node: parsePattern('(?<![a-z])ab+c(?![a-z])') },
      { node: parsePattern('b c') },
      { node: parsePattern('1(?: ?2){2,4}'), validate: (match) => match.length % 2 === 1 },
    ],
    12,
  );
  const replace = (match: string): string => `<${match.length}>`;

  test('gives a text in pieces what it gives the whole, wherever it is cut', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('a', 'b', 'c', ' ', '1', '2', 'x', '😀'), maxLength: 40 }),
        fc.array(fc.nat(40), { maxLength: 12 }),
        (text, cuts) => {
          const replacer = new Replacer(matcher, replace);
          const pieces = cutAt(text, cuts).map((piece) => replacer.push(piece));
          const all = pieces.join('') + replacer.end();
          expect(all).toBe(replaceSpans(text, matcher.scan(text).spans, replace));
        },
      ),
      { numRuns: tries(20_000) },
    );
  });

  test('scans a long text in steps as it does at once', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('a', 'b', 'c', ' ', '1', '2'), maxLength: 60 }),
        fc.integer({ min: 1, max: 20 }),
        (text, step) => {
          const spans = [];
          for (let from = 0; from < text.length;) {
            const scan = matcher.scan(text, from, true, from + step);
            spans.push(...scan.spans);
            from = Math.max(scan.until, from + 1);
          }
          expect(spans).toEqual(matcher.scan(text).spans);
        },
      ),
      { numRuns: tries(5000) },
    );
  });

  test('holds back only what may still become a match', () => {
    const replacer = new Replacer(matcher, replace);
    expect(replacer.push('xyz ')).toBe('xyz ');
    expect(replacer.push('abb')).toBe('');
    expect(replacer.push('x ')).toBe('abbx ');
    expect(replacer.push('abbc')).toBe('');
    expect(replacer.push('.')).toBe('<4>.');
    expect(replacer.push('12')).toBe('');
    expect(replacer.end()).toBe('12');
  });
});

describe('JSON text', () => {
  const upper = () =>
    new JsonText(
      () => new Replacer(new Matcher([{ node: parsePattern('x"y|é1|12345|😀') }], 9), () => 'Q"\n'),
    );

  test('is changed inside of its strings, and stays JSON, wherever it is cut', () => {
    const part = fc.constantFrom('x"y', 'é1', '12345', '😀', '\\', 'plain', '\u2028', '\ud83d');
    const value = fc.letrec((tie) => ({
      value: fc.oneof(
        { depthSize: 'small' },
        fc.array(part, { maxLength: 3 }).map((parts) => parts.join('')),
        fc.constantFrom(12345, 1, -2.5e10, true, null),
        fc.array(tie('value'), { maxLength: 3 }),
        fc.dictionary(fc.constantFrom('x"y', 'é1', '😀', '\\', 'plain'), tie('value'), { maxKeys: 3 }),
      ),
    })).value;
    const change = (text: string): string => text.replaceAll(/x"y|é1|12345|😀/g, 'Q"\n');
    const changed = (one: unknown): unknown => {
      if (typeof one === 'string') return change(one);
      if (typeof one === 'number') return change(String(one)) === String(one) ? one : change(String(one));
      if (Array.isArray(one)) return one.map(changed);
      if (typeof one !== 'object' || one === null) return one;
      return Object.fromEntries(Object.entries(one).map(([name, member]) => [change(name), changed(member)]));
    };
    fc.assert(
      fc.property(value, fc.boolean(), fc.array(fc.nat(80), { maxLength: 12 }), (one, escapes, cuts) => {
        const plain = JSON.stringify(one, undefined, escapes ? 1 : 0);
        const text = escapes
          ? plain.replaceAll(
              /[^\x20-\x7e\n]/g,
              (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
            )
          : plain;
        const transformer = upper();
        const given =
          cutAt(text, cuts)
            .map((piece) => transformer.push(piece))
            .join('') + transformer.end();
        expect(JSON.parse(given)).toEqual(changed(one));
      }),
      { numRuns: tries(10_000) },
    );
  });

  test.each(['no "JSON" x"y', '{a: x"y}', 'truex"y', '12345x"y', 'tru e12345'])(
    'that is none is changed from where it is none on: %s',
    (text) => {
      for (let size = 1; size <= text.length; size += 1) {
        const transformer = upper();
        let given = '';
        for (let at = 0; at < text.length; at += size) given += transformer.push(text.slice(at, at + size));
        given += transformer.end();
        expect(given).not.toMatch(/x"y|12345/);
        expect(given).toContain('Q"\n');
      }
    },
  );
});
