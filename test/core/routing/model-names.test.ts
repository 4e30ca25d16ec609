import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { modelNames, namesProblem, publicNames, starsOf } from '../../../core/routing/model-names.ts';

describe('the public names of a provider’s model', () => {
  test.each([
    ['a list', ['x-*', 'y'], 'x-1', ['x-1']],
    ['an exact name of a list', ['x-*', 'y'], 'y', ['y']],
    ['a list that does not have it', ['x-*', 'y'], 'z', []],
    ['a map with stars', { 'gpt-*': 'openai/gpt-*' }, 'openai/gpt-5', ['gpt-5']],
    ['a map whose stars are several', { '*--*': 'v/*/*' }, 'v/a/b', ['a--b']],
    ['a map of several names', { 'a-*': 'm-*', 'b-*': 'm-*' }, 'm-1', ['a-1', 'b-1']],
    ['a map that does not fit', { 'gpt-*': 'openai/gpt-*' }, 'gpt-5', []],
    ['a star that could be anything', { 'any-*': 'gpt-5' }, 'gpt-5', []],
    ['a name that an entry before takes for another model', { 'x-1': 'other', 'x-*': 'm-*' }, 'm-1', []],
    ['a pattern that one before hides', { '*': 'a-*', 'x-*': 'm-*' }, 'm-1', []],
  ] as const)('in %s', (_what, models, upstreamModel, expected) => {
    expect(publicNames(models)(upstreamModel)).toEqual(expected);
  });

  test('lead back to that model, whatever the map', () => {
    const name = fc.string({ unit: fc.constantFrom('a', 'b', '-', '*'), minLength: 1, maxLength: 6 });
    const plain = fc.string({ unit: fc.constantFrom('a', 'b', '-'), minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(fc.dictionary(name, name), plain, (models, upstreamModel) => {
        for (const found of publicNames(models)(upstreamModel))
          expect(modelNames(models)(found)).toBe(upstreamModel);
      }),
    );
  });
});

describe('a pattern', () => {
  test.each([
    ['ab*ba', 'abba', ['']],
    ['ab*ba', 'abxba', ['x']],
    ['ab*ba', 'aba', undefined],
    ['ab*ba', 'xabba', undefined],
    ['ab*ba', 'abbax', undefined],
    ['a*a', 'a', undefined],
    ['*', '', ['']],
    ['a*b*c', 'abc', ['', '']],
    ['a*b*c', 'axbyc', ['x', 'y']],
    // The first star takes as little as it can.
    ['a*b*c', 'abbc', ['', 'b']],
    ['a*bc*c', 'abc', undefined],
    ['a*x*c', 'abc', undefined],
    ['**', 'ab', ['', 'ab']],
    ['abc', 'abc', []],
    ['abc', 'abcd', undefined],
  ])('%s has for %j what its stars stand for: %j', (pattern, name, stars) => {
    expect(starsOf(pattern, name)).toEqual(stars);
  });

  test('comes behind an exact name, and before the patterns behind it', () => {
    const names = modelNames({ 'a-*': 'first-*', 'a-1': 'exact', 'a-b-*': 'second-*', '*': 'rest' });
    expect(['a-1', 'a-2', 'a-b-3', 'x'].map(names)).toEqual(['exact', 'first-2', 'first-b-3', 'rest']);
    expect(modelNames({ 'a-*-*': '*/x/*' })('a-1-2')).toBe('1/x/2');
    expect(modelNames(['a-*', 'b'])('c')).toBeUndefined();
    expect(modelNames(['a-*', 'b'])('a-1')).toBe('a-1');
  });
});

describe('a map of names', () => {
  test('may have as many stars in a target as in its name, or fewer', () => {
    expect(namesProblem(['x-*', '*'])).toBeUndefined();
    expect(namesProblem({ 'x-*': 'y-*', 'a-*-*': 'b-*', 'any-*': 'one' })).toBeUndefined();
  });

  test('is refused with the entry whose target has more', () => {
    expect(namesProblem({ 'x-*': 'y-*', 'a-*': 'b-*-*' })).toContain('"b-*-*" has more stars than "a-*"');
    expect(namesProblem({ x: 'y*' })).toContain('"y*" has more stars than "x"');
  });
});
