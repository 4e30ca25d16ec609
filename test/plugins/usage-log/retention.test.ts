import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { UsageLog } from '../../../core/money/usage-log/index.ts';
import { startPruning } from '../../../plugins/usage-log/retention.ts';
import { testTools } from '../_call.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

function pruning(prune: UsageLog['prune']) {
  const closers: (() => void | Promise<void>)[] = [];
  const { tools, lines } = testTools();
  startPruning({ prune } as UsageLog, { days: 1, records: 10 }, tools.log, (job) => void closers.push(job));
  const close = (): Promise<void[]> => Promise.all(closers.map((closer) => closer()));
  return { lines, close };
}

describe('old records', () => {
  test('are removed some time after the start and again and again, until the gateway closes', async () => {
    const prune = vi.fn<UsageLog['prune']>(() => Promise.resolve(3));
    const { lines, close } = pruning(prune);
    expect(prune).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(prune).toHaveBeenCalledWith({ days: 1, records: 10 });
    expect(lines).toMatchObject([{ level: 'info', removed: 3 }]);
    await vi.advanceTimersByTimeAsync(3_600_000);
    const times = prune.mock.calls.length;
    expect(times).toBeGreaterThan(3);
    await close();
    await vi.advanceTimersByTimeAsync(3_600_000);
    expect(prune).toHaveBeenCalledTimes(times);
  });

  test('that cannot be removed are a line in the log, and are tried again', async () => {
    const prune = vi.fn<UsageLog['prune']>(() => Promise.reject(new Error('gone')));
    const { lines } = pruning(prune);
    await vi.advanceTimersByTimeAsync(3_600_000);
    expect(prune.mock.calls.length).toBeGreaterThan(2);
    expect(lines[0]).toMatchObject({ level: 'error', error: { message: 'gone' } });
  });

  test('that are being removed when the gateway closes are waited for', async () => {
    const { promise, resolve } = Promise.withResolvers<number>();
    const { close } = pruning(() => promise);
    await vi.advanceTimersByTimeAsync(60_000);
    let closed = false;
    const closing = close().then(() => (closed = true));
    await nextTurn();
    expect(closed).toBe(false);
    resolve(0);
    await closing;
    expect(closed).toBe(true);
  });
});
