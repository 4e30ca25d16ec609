import { setImmediate as nextTurn } from 'node:timers/promises';
import type { UsageLog } from 'sluice/internal';
import { testPlugins, virtualClock, type VirtualClock } from 'sluice/testing';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import usageLog from '../../../plugins/usage-log/index.ts';

let clock: VirtualClock;
beforeEach(() => {
  clock = virtualClock();
});
afterEach(() => clock.restore());

/** In steps, as each look at the records sets the time of the next. */
async function hour(): Promise<void> {
  // oxlint-disable-next-line no-await-in-loop
  for (let minute = 0; minute < 60; minute += 5) await clock.advance(300_000);
}

const pruning = (prune: UsageLog['prune']) =>
  testPlugins(usageLog({ retention: { days: 1, records: 10 } }), {
    tools: { usageLog: { prune } as UsageLog },
  });

describe('old records', () => {
  test('are removed some time after the start and again and again, until the gateway closes', async () => {
    const prune = vi.fn<UsageLog['prune']>(() => Promise.resolve(3));
    const { lines, close } = await pruning(prune);
    expect(prune).not.toHaveBeenCalled();
    await clock.advance(60_000);
    expect(prune).toHaveBeenCalledWith({ days: 1, records: 10 });
    expect(lines).toMatchObject([{ level: 'info', removed: 3 }]);
    await hour();
    const times = prune.mock.calls.length;
    expect(times).toBeGreaterThan(3);
    await close();
    await hour();
    expect(prune).toHaveBeenCalledTimes(times);
  });

  test('that cannot be removed are a line in the log, and are tried again', async () => {
    const prune = vi.fn<UsageLog['prune']>(() => Promise.reject(new Error('gone')));
    const { lines, close } = await pruning(prune);
    await hour();
    expect(prune.mock.calls.length).toBeGreaterThan(2);
    expect(lines[0]).toMatchObject({ level: 'error', error: { message: 'gone' } });
    await close();
  });

  test('that are being removed when the gateway closes are waited for', async () => {
    const { promise, resolve } = Promise.withResolvers<number>();
    const { close } = await pruning(() => promise);
    await clock.advance(60_000);
    let closed = false;
    const closing = close().then(() => (closed = true));
    await nextTurn();
    expect(closed).toBe(false);
    resolve(0);
    await closing;
    expect(closed).toBe(true);
  });
});
