import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { matchesModel } from '../../../core/state/api-keys/index.ts';
import { overlap } from '../../../plugins/admin/globs.ts';

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
  expect(overlap(one, other)).toBe(expected);
  expect(overlap(other, one)).toBe(expected);
});

test('a pattern overlaps with a name exactly when it matches it', () => {
  const word = fc.string({ unit: fc.constantFrom('a', 'b', '*'), maxLength: 6 });
  const name = fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 6 });
  fc.assert(
    fc.property(word, name, (pattern, text) => {
      expect(overlap(pattern, text)).toBe(matchesModel([pattern], text));
    }),
  );
});

test('patterns overlap exactly when some text fits both', () => {
  const letters = ['a', 'b'];
  const texts = [''];
  for (let index = 0; (texts[index]?.length ?? 9) < 8; index += 1)
    texts.push(...letters.map((letter) => `${texts[index]}${letter}`));
  const word = fc.string({ unit: fc.constantFrom('a', 'b', '*'), maxLength: 4 });
  fc.assert(
    fc.property(word, word, (one, other) => {
      const common = texts.some((text) => matchesModel([one], text) && matchesModel([other], text));
      expect(overlap(one, other)).toBe(common);
    }),
  );
});
