import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createFirstGroups } from '../../../../core/money/usage-log/first-groups.ts';
import type {
  UsageFilter,
  UsageGrouping,
  UsageSumsList,
  UsageSumsOptions,
} from '../../../../core/money/usage-log/index.ts';

const hour = 3_600_000;
const day = 24 * hour;
const now = Date.parse('2026-11-28T14:20:00Z');
const since = Date.parse('2026-11-27T15:00:00Z');
const count = 1_000;
const first = { order: 'calls', rest: false, limit: 10 } as const;

beforeEach(() => void vi.useFakeTimers({ now }));
afterEach(() => void vi.useRealTimers());

/** A log of keys that have so many calls in each hour of three days, and the questions to it. */
function logOf(callsIn: (key: number, hourOfDays: number) => number) {
  const start = Math.floor(since / day) * day - day;
  const calls = Array.from({ length: count }, (_, key) =>
    Array.from({ length: 96 }, (_hour, at) => (start + at * hour > now ? 0 : callsIn(key, at))),
  );
  const questions: { filter: UsageFilter; options: UsageSumsOptions }[] = [];
  const sums = (
    filter: UsageFilter,
    _by: UsageGrouping,
    options: UsageSumsOptions,
  ): Promise<UsageSumsList> => {
    questions.push({ filter, options });
    const { since: from = 0, until = Number.MAX_SAFE_INTEGER } = filter;
    const found = calls
      .map((each, key) => ({
        group: `key_${String(key).padStart(4, '0')}`,
        calls: each
          .filter((_, at) => start + at * hour >= from && start + at * hour < until)
          .reduce((sum, one) => sum + one, 0),
        failed: 0,
        refused: 0,
        input: 0,
        output: 0,
        microDollars: 0,
      }))
      .filter(({ group }) => options.groups?.includes(group) ?? true)
      .filter((one) => one.calls > 0)
      .toSorted((one, other) => other.calls - one.calls);
    return Promise.resolve({ sums: found.slice(0, options.groups === undefined ? options.limit : count) });
  };
  return { sums, questions };
}

const shapes = {
  'few have most of the calls': (key: number) => Math.floor(20_000 / (key + 1)),
  'others had many on the day before': (key: number, at: number) =>
    Math.floor(20_000 / (key + 1)) + (key >= 50 && key < 90 && at < 35 ? 9_000 : 0),
  'few have any': (key: number) => (key < 7 ? key : 0),
};

test.each(Object.keys(shapes) as (keyof typeof shapes)[])(
  'where %s, the keys with the most calls of a day are found without the sums of hours of all keys',
  async (shape) => {
    const { sums, questions } = logOf(shapes[shape]);
    const expected = await sums({ since }, 'keyId', first);
    questions.length = 0;
    expect(await createFirstGroups(sums)({ since }, 'keyId', first)).toEqual(expected);
    expect(questions.map(({ filter }) => filter.since)).toEqual([Math.floor(since / day) * day, since]);
    expect(questions[1]?.options.groups?.length).toBeLessThanOrEqual(100);
  },
);

test('where nobody called on the days, no key is added up: PostgreSQL refuses an empty list of keys', async () => {
  const { sums, questions } = logOf(() => 0);
  expect(await createFirstGroups(sums)({ since }, 'keyId', first)).toBeUndefined();
  expect(questions.map(({ options }) => options.groups)).toEqual([undefined]);
});

test('where a key may be missing, nothing is said, and the days are not asked again for ten minutes', async () => {
  // The most frequent keys of the last day are behind a hundred that had more calls on the day before it.
  const { sums, questions } = logOf((key, at) => (key < 120 ? (at < 35 ? 900 : 1) : 10));
  const find = createFirstGroups(sums);
  expect(await find({ since }, 'keyId', first)).toBeUndefined();
  questions.length = 0;
  expect(await find({ since }, 'keyId', first)).toBeUndefined();
  expect(questions).toEqual([]);
  vi.advanceTimersByTime(600_000);
  await find({ since }, 'keyId', first);
  expect(questions).toHaveLength(2);
});

test.each<[string, UsageFilter, UsageGrouping, UsageSumsOptions]>([
  ['an hour', { since: now - hour }, 'keyId', first],
  ['days that begin at midnight', { since: Math.floor(now / day) * day - 3 * day }, 'keyId', first],
  ['a model, which sums of days do not have', { since, model: 'demo' }, 'keyId', first],
  ['models, which are few', { since }, 'model', first],
  ['the keys of the highest cost', { since }, 'keyId', { ...first, order: 'cost' }],
  ['all keys together', { since }, 'keyId', { ...first, rest: true }],
  ['many keys', { since }, 'keyId', { ...first, limit: 200 }],
])('a question for %s is not asked of days', async (_name, filter, grouping, options) => {
  const { sums, questions } = logOf(() => 1);
  expect(await createFirstGroups(sums)(filter, grouping, options)).toBeUndefined();
  expect(questions).toEqual([]);
});
