import { describe, expect, test, vi } from 'vitest';
import type { JsonValue } from '../../../core/model/json.ts';
import { onceForShared, shareValue } from '../../../core/performance/shared-values.ts';

describe('what is computed of a value', () => {
  const plain = (value: JsonValue): number => JSON.stringify(value).length;

  test('is computed once where calls share the value, also of a part of it', () => {
    const compute = vi.fn<typeof plain>(plain);
    const remembering = onceForShared(compute);
    const inner = { type: 'object', properties: {} };
    const tools = shareValue([{ name: 'read', parameters: inner }]);
    expect([remembering(tools), remembering(tools)]).toEqual([plain(tools), plain(tools)]);
    expect([remembering(inner), remembering(inner)]).toEqual([plain(inner), plain(inner)]);
    expect(compute).toHaveBeenCalledTimes(2);
  });

  test('is computed again for a value of one call, which may have changed', () => {
    const remembering = onceForShared(plain);
    const own: { text: string } = { text: 'a' };
    expect(remembering(own)).toBe(12);
    own.text = 'abc';
    expect(remembering(own)).toBe(14);
    const frozen = Object.freeze({ inner: own });
    expect(remembering(frozen)).toBe(plain(frozen));
    own.text = 'a';
    expect(remembering(frozen)).toBe(plain(frozen));
  });

  test('is computed of texts, numbers and nothing too', () => {
    const remembering = onceForShared(plain);
    expect(['a', 1, true, null].map(remembering)).toEqual([3, 1, 4, 4]);
  });
});

test('nobody can change a value that calls share', () => {
  const value = shareValue({ list: [{ text: 'a' }] }) as { list: { text: string }[] };
  expect(() => {
    for (const one of value.list) one.text = 'b';
  }).toThrow(TypeError);
  expect(() => value.list.push({ text: 'c' })).toThrow(TypeError);
});
