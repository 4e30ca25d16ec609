import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseJson, writeJson } from '../../../core/json/long/index.ts';
import type { JsonValue } from '../../../core/model/json.ts';
import { tries } from '../../support/tries.ts';
import { anyCharacter } from '../../support/characters.ts';

const large = 1024 * 1024;

/** Returns the bytes of JSON.stringify and the platform's encoder. */
const plainly = (value: JsonValue): string => Buffer.from(JSON.stringify(value)).toString('hex');
const here = (value: JsonValue, about = large): string =>
  Buffer.from(writeJson(value, about)).toString('hex');

/** Texts around the lengths at which something changes, of all that a text may hold. */
const texts = fc.oneof(
  fc.string({ unit: anyCharacter, maxLength: 20 }),
  fc
    .tuple(
      fc.array(
        fc.oneof(
          fc.string({ unit: anyCharacter, maxLength: 8 }),
          fc.constantFrom('"', '\\', '\n', '\u0000', '\u001f', '\u007f', '\ud83d', '\ude00', '😀', 'é', '…'),
        ),
      ),
      fc.integer({ min: 200, max: 700 }),
    )
    .map(([parts, length]) => `${parts.join('')}${'a line of code; '.repeat(45)}`.slice(0, length)),
);
const values = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    texts,
    fc.constantFrom(null, true, false, 0, -0, 1e21, 1.5),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(fc.oneof(fc.constant('tools'), texts), tie('value'), { maxKeys: 4, noNullPrototype: true }),
  ),
})).value;

describe('the JSON of a long request', () => {
  test('is byte for byte what JSON.stringify gives', () => {
    fc.assert(
      fc.property(values, fc.constantFrom(large, 70_000), (value, about) => {
        expect(here(value, about)).toBe(plainly(value));
      }),
      { seed: 20_261_122, numRuns: tries(2000) },
    );
  });

  test('has every character in every place of a block', () => {
    for (let code = 0; code < 0x300; code += 1) {
      const text = `${'x'.repeat(256 + (code % 17))}${String.fromCharCode(code)}${'y'.repeat(code % 19)}`;
      expect(here([text])).toBe(plainly([text]));
    }
  });

  test('keeps both halves of a character together where a long text is cut', () => {
    for (const before of [65_534, 65_535, 65_536, 131_071]) {
      const text = `${'x'.repeat(before)}😀${'\u0001'.repeat(70_000)}`;
      expect(here({ text })).toBe(plainly({ text }));
    }
  });

  test('leaves out members without a value, and grows beyond what was expected', () => {
    const value = { a: undefined, text: '"'.repeat(300_000), list: [] } as unknown as JsonValue;
    expect(here(value, 65_536)).toBe(plainly(value));
  });

  test('is read as JSON.parse reads it, wherever its pieces begin', () => {
    fc.assert(
      fc.property(values, fc.integer({ min: 130_900, max: 131_200 }), (value, position) => {
        const bytes = Buffer.from(JSON.stringify([value, 'x'.repeat(position), value, '…😀é']));
        expect(parseJson(bytes)).toEqual(JSON.parse(bytes.toString()));
      }),
      { seed: 20_261_122, numRuns: tries(1000) },
    );
    for (const text of ['é', '߿', 'ࠀ', '퟿', '', '￿', '𐀀', '\u{10ffff}', '\ufeff'])
      for (let length = 131_050; length < 131_080; length += 1) {
        const bytes = Buffer.from(JSON.stringify(['x'.repeat(length) + text + 'y']));
        expect(parseJson(bytes)).toEqual(JSON.parse(bytes.toString()));
      }
  });

  test('that is mostly in another script is read as it is', () => {
    const value = { text: '漢字かな交じり文'.repeat(20_000) };
    expect(parseJson(Buffer.from(JSON.stringify(value)))).toEqual(value);
  });

  test('of a short one is a string', () => {
    expect(writeJson({ text: 'x'.repeat(1000) }, 2000)).toBe(`{"text":"${'x'.repeat(1000)}"}`);
  });
});
