import { expect, test } from 'vitest';
import { sumUsage } from '../../../core/model/usage.ts';

test('what two calls used together is the sum of every count, long cache writes included', () => {
  const one = { input: 1, output: 2, cacheRead: 3, cacheWrite: 4, reasoning: 5, cacheWriteLong: 2 };
  const other = { input: 10, output: 20, cacheRead: 30, cacheWrite: 40, reasoning: 50, estimated: true };
  expect(sumUsage(one, other)).toEqual({
    input: 11,
    output: 22,
    cacheRead: 33,
    cacheWrite: 44,
    reasoning: 55,
    cacheWriteLong: 2,
    estimated: true,
  });
  expect(sumUsage({ ...one, raw: {}, format: 'x' }, one)).not.toHaveProperty('raw');
});
