import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { countedReport } from '../../../core/log/counted-report.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
afterEach(() => void vi.useRealTimers());

test('a frequent event is reported at once, and then every ten seconds at most with the number of those between', () => {
  const reports: (readonly [number, string])[] = [];
  const note = countedReport((count, event: string) => void reports.push([count, event]));
  for (let second = 0; second <= 25; second += 1) {
    note(`first of ${second}`);
    note(`second of ${second}`);
    vi.advanceTimersByTime(1_000);
  }
  expect(reports).toEqual([
    [1, 'first of 0'],
    [20, 'first of 10'],
    [20, 'first of 20'],
  ]);
});
