import { expect, test } from 'vitest';
import type { UsageLog } from '../../../core/money/usage-log/index.ts';
import { querySums } from '../../../plugins/admin/usage-sums.ts';
import { overviewQuery, usageFilter } from '../../../plugins/admin/schemas/index.ts';
import { daysOf } from '../../../plugins/admin/zone-days.ts';

const hour = 3_600_000;

test('days of a zone are 23 and 25 hours long when its clocks change', () => {
  const lengths = (since: string, until: string) =>
    daysOf('Europe/Berlin', Date.parse(since), Date.parse(until)).map((one) => [
      one.date,
      (one.until - one.since) / hour,
    ]);
  expect(lengths('2026-03-28T12:00Z', '2026-03-30T12:00Z')).toEqual([
    ['2026-03-28', 24],
    ['2026-03-29', 23],
    ['2026-03-30', 24],
  ]);
  expect(lengths('2026-10-24T22:00Z', '2026-10-25T22:00Z')).toEqual([['2026-10-25', 25]]);
});

test('a day whose midnight is skipped begins at one', () => {
  const [first] = daysOf(
    'America/Santiago',
    Date.parse('2026-09-06T12:00Z'),
    Date.parse('2026-09-06T13:00Z'),
  );
  expect(first).toEqual({
    date: '2026-09-06',
    since: Date.parse('2026-09-06T04:00Z'),
    until: Date.parse('2026-09-07T03:00Z'),
  });
});

test('a zone that does not exist, and a time of years, are refused', () => {
  expect(() => daysOf('Mars/Olympus', 0, hour)).toThrow('There is no time zone Mars/Olympus.');
  expect(() => daysOf('UTC', 0, 401 * 24 * hour)).toThrow('more than 400 days');
});

test('sums by days of a zone with half hours say that they are not exact, where there are sums of hours alone', async () => {
  const since = Date.parse('2026-01-10T18:30Z');
  const totals = { calls: 1, failed: 0, refused: 0, input: 1, output: 1, microDollars: 1 };
  const usageLog: Pick<UsageLog, 'sums'> = {
    sums: () =>
      Promise.resolve({
        sums: [since + hour / 2, since + 30.5 * hour].map((group) => ({ ...totals, group })),
      }),
  };
  const daysIn = (zone: string) =>
    querySums(usageLog, { since, until: since + 48 * hour }, { by: 'day', zone }, {});
  expect(await daysIn('Asia/Kolkata')).toMatchObject({
    exact: false,
    sums: [
      { group: since, calls: 1 },
      { group: since + 24 * hour, calls: 1 },
    ],
  });
  expect(await daysIn('Asia/Tokyo')).not.toHaveProperty('exact');
});

test('times without days around them are refused', () => {
  const last = Date.UTC(10_000, 0) - 1;
  for (const zone of ['Pacific/Kiritimati', 'Pacific/Niue', 'UTC'])
    expect(daysOf(zone, last - hour, last).length).toBeGreaterThan(0);
  for (const since of [last + 1, 8.64e15, Number.MAX_SAFE_INTEGER])
    for (const one of [{ since: String(since) }, { until: String(since) }]) {
      expect(overviewQuery.safeParse(one).success).toBe(false);
      expect(usageFilter.safeParse(one).success).toBe(false);
    }
  expect(overviewQuery.safeParse({ since: String(last) }).success).toBe(true);
});
