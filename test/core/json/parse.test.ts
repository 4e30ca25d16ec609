import { describe, expect, test } from 'vitest';
import { parseJson, parseObject } from '../../../core/json/parse.ts';

const lists = (levels: number, inside = '1'): string => '['.repeat(levels) + inside + ']'.repeat(levels);
/** Longer than text that is parsed without a look at its depth. */
const long = 'x'.repeat(4000);

describe('JSON of a provider', () => {
  test('that is nested too deeply is not parsed', () => {
    expect(() => parseJson(lists(1_000_000))).toThrow('nested deeper than 1000 levels');
    expect(parseObject(`{"a":${lists(1_000_000)}}`)).toBeUndefined();
    expect(parseObject(`${'{"a":'.repeat(5000)}1${'}'.repeat(5000)}`)).toBeUndefined();
  });

  test('is parsed to the limit', () => {
    expect(parseObject(`{"a":${lists(999, `"${long}"`)}}`)).toBeDefined();
    expect(parseObject(`{"a":${lists(1000, `"${long}"`)}}`)).toBeUndefined();
  });

  test.each([
    ['brackets in a text', { a: '[{'.repeat(5000) }],
    ['quotes and backslashes in a text', { a: '\\"[\\\\"{\\'.repeat(2000), b: '[' }],
    ['many lists side by side', { a: Array.from({ length: 5000 }, () => [[]]) }],
    ['names with brackets', { [`${'['.repeat(3000)}"`]: 1 }],
  ])('with %s is no deeper for it', (_name, value) => {
    expect(parseObject(JSON.stringify(value))).toEqual(value);
    expect(parseObject(JSON.stringify(value, undefined, 2))).toEqual(value);
  });

  test('that is none is not parsed, wherever its text ends', () => {
    for (const text of ['', `{"a":"${long}`, `{"a":"${long}\\"`, `${long}"`, `[${'[]'.repeat(2000)}`])
      expect(parseObject(text)).toBeUndefined();
  });
});
