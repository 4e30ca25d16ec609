import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { OpenString, stringEnd } from '../../../core/json/strings.ts';
import { tries } from '../../support/tries.ts';

const seed = 20_261_122;

/** Texts in which quotes and backslashes stand alone, in rows, and far apart. */
const texts = fc
  .array(fc.tuple(fc.constantFrom('"', '\\', '\\"', 'a', 'é', '{'), fc.integer({ min: 1, max: 90 })), {
    maxLength: 8,
  })
  .map((rows) => rows.map(([text, count]) => text.repeat(count)).join(''));

test('a string ends where JSON says', () => {
  fc.assert(
    fc.property(texts, texts, (before, text) => {
      const [first, second] = [JSON.stringify(before), JSON.stringify(text)];
      const bytes = Buffer.from(`${first}${second}`);
      const end = stringEnd(bytes, 0);
      expect(end).toBe(Buffer.byteLength(first) - 1);
      expect(stringEnd(bytes, end + 1)).toBe(bytes.length - 1);
      expect(stringEnd(first + second, 0)).toBe(first.length - 1);
      expect(stringEnd(first + second, first.length)).toBe(first.length + second.length - 1);
    }),
    { seed, numRuns: tries(500) },
  );
});

test('a string that is cut has no end', () => {
  fc.assert(
    fc.property(texts, fc.nat(), (text, cut) => {
      const bytes = Buffer.from(JSON.stringify(text));
      expect(stringEnd(bytes.subarray(0, 1 + (cut % (bytes.length - 1))), 0)).toBe(-1);
      const json = JSON.stringify(text);
      expect(stringEnd(json.slice(0, 1 + (cut % (json.length - 1))), 0)).toBe(-1);
    }),
    { seed, numRuns: tries(500) },
  );
});

test('a string ends at the same place in whatever pieces it comes', () => {
  fc.assert(
    fc.property(texts, fc.array(fc.nat({ max: 50 }), { maxLength: 40 }), (text, lengths) => {
      const bytes = Buffer.from(`${JSON.stringify(text)},"x"`);
      const string = new OpenString();
      string.open();
      let at = 1;
      for (const length of [...lengths, bytes.length]) {
        const piece = bytes.subarray(at, at + length);
        const end = string.pass(piece, 0);
        at += end;
        if (!string.isOpen) break;
        expect(end).toBe(piece.length);
      }
      expect(string.isOpen).toBe(false);
      expect(at).toBe(stringEnd(bytes, 0));
    }),
    { seed, numRuns: tries(1000) },
  );
});
