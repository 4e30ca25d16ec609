import { describe, expect, test } from 'vitest';
import { MarkedTexts } from '../../../core/json/outline/marks.ts';
import { outlineOf } from '../../../core/json/outline/index.ts';
import type { JsonObject, JsonValue } from '../../../core/model/json.ts';

const limits = { depth: 64, values: 10_000, members: 1000 };
const words = 'Twelve "words"\\of\nwhich\u00e9\ud83d\ude00 some have to be escaped, one after the other. ';

/** A body with a long text inside of its tools and one outside, the marks that stand for them, and what reads these. */
function marked(text = words): {
  readonly inside: string;
  readonly outside: string;
  readonly texts: MarkedTexts | undefined;
} {
  const body = { list: [{ one: { text } }], tools: [{ one: { text: `${text}!` } }], more: 1 };
  const bytes = Buffer.from(JSON.stringify(body));
  const outline = outlineOf(bytes, limits);
  if (outline === undefined) throw new Error('There is an outline.');
  const textIn = (value: JsonValue | undefined): string =>
    String(((value as readonly JsonObject[])[0]?.one as JsonObject | undefined)?.text);
  return {
    outside: textIn(outline.body.list),
    inside: textIn(outline.body.tools),
    texts: MarkedTexts.of(outline, bytes),
  };
}

describe('texts that an outline leaves out', () => {
  const { inside, outside, texts } = marked();
  const restoredText = `${words}!`;

  test('come back wherever their marks are put', () => {
    expect(texts?.restored(outside)).toBe(words);
    expect(texts?.restored(`a${inside}${outside}\\`)).toBe(`a${restoredText}${words}\\`);
    expect(texts?.restoredAll({ a: [inside, 'b', null, { c: outside, ['__proto__']: inside }] })).toEqual({
      a: [restoredText, 'b', null, { c: words, ['__proto__']: restoredText }],
    });
  });

  test.each([1, 2, 3])('come back from JSON in JSON, %i deep', (depth) => {
    let [text, wanted]: [JsonValue, JsonValue] = [
      { a: `\\${outside}\\`, b: '\\f' },
      { a: `\\${words}\\`, b: '\\f' },
    ];
    for (let count = 0; count < depth; count += 1) {
      text = { text: JSON.stringify(text) };
      wanted = { text: JSON.stringify(wanted) };
    }
    expect(texts?.restored(JSON.stringify(text))).toBe(JSON.stringify(wanted));
    expect(JSON.parse(texts?.write(text).toString() ?? '')).toEqual(wanted);
  });

  test('are written as often as their marks stand there', () => {
    const value = { a: outside, b: [inside, outside], c: '\u00fc\u2192' };
    expect(JSON.parse(texts?.write(value).toString() ?? '')).toEqual({
      a: words,
      b: [restoredText, words],
      c: '\u00fc\u2192',
    });
  });

  test('are not taken for what only begins as a mark does', () => {
    const form = '\fabcdef';
    expect(texts?.isProse(form)).toBe(false);
    expect(texts?.restoredAll([form])).toEqual([form]);
    expect(texts?.write([form]).toString()).toBe(JSON.stringify([form]));
  });

  test('are not written for marks of which there is no text', () => {
    expect(() => texts?.write({ a: '\f100009' })).toThrow('No text was left out');
    expect(() => texts?.write({ a: '\f000001' })).toThrow('No text was left out');
  });

  test('take no longer behind many reverse solidi', () => {
    const many = '\\'.repeat(400_000);
    const value = { a: many, b: outside, c: JSON.stringify({ d: many + inside }) };
    const wanted = { a: many, b: words, c: JSON.stringify({ d: many + restoredText }) };
    expect(texts?.restored(JSON.stringify(value)) === JSON.stringify(wanted)).toBe(true);
    expect(texts?.write(value).toString() === JSON.stringify(wanted)).toBe(true);
  });

  test.each([
    ['prose', 'It is here. '.repeat(9), true],
    ['a number behind white space', `\n\t  7 ${'x'.repeat(80)}`, true],
    ['letters of other languages', '\u5b57'.repeat(40), true],
    ['white space', ' '.repeat(99), false],
    ['white space of all kinds', `\u00a0\u2003\u3000\ufeff${'\n'.repeat(99)}`, false],
    ['an object', `  {"a":"${'x'.repeat(80)}"}`, false],
  ])('are told apart: %s', (_, text, isProse) => {
    const one = marked(text);
    expect(one.texts?.isProse(one.outside)).toBe(isProse);
  });

  test.each(['\f100000', '\\f000001', '\\\\f100000'])(
    'are not to be had where a client writes %j',
    (text) => {
      const bytes = Buffer.from(JSON.stringify({ a: text, list: [{ one: { text: words } }] }));
      const outline = outlineOf(bytes, limits);
      expect(outline && MarkedTexts.of(outline, bytes)).toBeUndefined();
      const respelled = Buffer.from(bytes.toString().replace('\\f', '\\u000c'));
      const other = outlineOf(respelled, limits);
      expect(other && MarkedTexts.of(other, respelled)).toBeUndefined();
    },
  );
});
