import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { fairShare, surplus } from '../../../core/state/fair-share.ts';

test('those who have little keep all, and the others share the rest', () => {
  expect(fairShare([1, 2, 100, 100], 43)).toBe(20);
  expect(fairShare([1, 2, 3], 6)).toBe(Number.POSITIVE_INFINITY);
  expect(fairShare([1, 1, 1], 2)).toBe(0);
});

const owned = fc.tuple(fc.constantFrom('', 'a', 'b', 'c'), fc.constantFrom('x', 'y', 'z'));

test('exactly as many are left as there is room for, and nobody loses any for another who has more', () => {
  fc.assert(
    fc.property(fc.array(owned, { maxLength: 200 }), fc.integer({ min: 1, max: 100 }), (owners, most) => {
      const items = owners.map((owner, index) => ({ owner, index }));
      const gone = new Set(surplus(items, most, ({ owner }) => owner));
      const left = items.filter((item) => !gone.has(item));
      expect(left).toHaveLength(Math.min(most, items.length));
      const counts = (list: readonly { readonly owner: readonly [string, string] }[]) =>
        Map.groupBy(list, ({ owner }) => owner[0]);
      const before = counts(items);
      const after = counts(left);
      const largest = Math.max(0, ...[...after.values()].map((list) => list.length));
      for (const [group, list] of before) {
        const kept = after.get(group)?.length ?? 0;
        if (kept < list.length) expect(kept).toBeGreaterThanOrEqual(largest - before.size);
      }
    }),
  );
});
