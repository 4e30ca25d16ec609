import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { matchesModel, mayUseSome, patternsOverlap } from '../../../core/sdk/allowed-models.ts';
import { tries } from '../../support/tries.ts';

test.each([
  ['a', 'a', true],
  ['a', 'b', false],
  ['a*', '*b', true],
  ['a*c', 'ab*', true],
  ['a*', 'b*', false],
  ['', '*', true],
  ['', 'a', false],
  ['*x*', 'a*b', true],
  ['ab', 'a*b*c', false],
  ['gpt-*', 'gpt-4o', true],
])('%s and %s have a text in common: %s', (one, other, expected) => {
  expect(patternsOverlap(one, other)).toBe(expected);
  expect(patternsOverlap(other, one)).toBe(expected);
});

test('a pattern overlaps with a name exactly when it matches it', () => {
  const word = fc.string({ unit: fc.constantFrom('a', 'b', '*'), maxLength: 6 });
  const name = fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 6 });
  fc.assert(
    fc.property(word, name, (pattern, text) => {
      expect(patternsOverlap(pattern, text)).toBe(matchesModel([pattern], text));
    }),
  );
});

/** Returns every text of these letters with at most so many of them. */
function textsOf(letters: readonly string[], longest: number): readonly string[] {
  const texts = [''];
  for (const text of texts) if (text.length < longest) texts.push(...letters.map((letter) => text + letter));
  return texts;
}

test('two patterns overlap exactly when some text fits both', () => {
  // The shortest common text has at most as many letters as both patterns together.
  const texts = textsOf(['a', 'b'], 10);
  const pattern = fc.string({ unit: fc.constantFrom('a', 'b', '*'), maxLength: 5 });
  fc.assert(
    fc.property(pattern, pattern, (one, other) => {
      const common = texts.some((text) => matchesModel([one], text) && matchesModel([other], text));
      expect(patternsOverlap(one, other)).toBe(common);
    }),
    { numRuns: tries(1000) },
  );
});

test('a key may use what is served exactly when one of its models is served, by name or by pattern', () => {
  const texts = textsOf(['a', 'b'], 6);
  const patterns = fc.array(fc.string({ unit: fc.constantFrom('a', 'b', '*'), maxLength: 3 }), {
    maxLength: 3,
  });
  fc.assert(
    fc.property(patterns, patterns, (allowed, served) => {
      const common = texts.some((text) => matchesModel(allowed, text) && matchesModel(served, text));
      expect(mayUseSome(allowed, served)).toBe(common);
    }),
    { numRuns: tries(1000) },
  );
  expect(mayUseSome(undefined, [])).toBe(true);
  expect(mayUseSome([], ['*'])).toBe(false);
});
