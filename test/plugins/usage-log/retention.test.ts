import { setImmediate as nextTurn } from 'node:timers/promises';
import { testPlugins, virtualClock, type VirtualClock } from 'sluice/testing';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { UsageLog } from '../../../core/money/usage-log/index.ts';
import { Upkeep } from '../../../core/state/upkeep.ts';
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

const upkeep = new Upkeep();
const rule = 'Records are kept for a day.';
const standing: UsageLog['standing'] = () =>
  Promise.resolve([{ what: 'usage-records', rule, overdueSeconds: 5, warning: 'The oldest is old.' }]);

const pruning = (prune: UsageLog['prune'], addToSums: UsageLog['addToSums'] = () => Promise.resolve(false)) =>
  testPlugins(usageLog({ retention: { days: 1, records: 10, sumDays: 100 } }), {
    tools: { usageLog: { prune, addToSums, standing } as UsageLog, upkeep },
  });

describe('old records', () => {
  test('are removed some time after the start and again and again, until the gateway closes', async () => {
    const prune = vi.fn<UsageLog['prune']>(() => Promise.resolve({ records: 3, sums: 1 }));
    const { lines, close } = await pruning(prune);
    expect(prune).not.toHaveBeenCalled();
    await clock.advance(60_000);
    expect(prune).toHaveBeenCalledWith({ days: 1, records: 10, sumDays: 100 });
    expect(lines).toMatchObject([{ level: 'info', records: 3, sums: 1 }]);
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
    const { promise, resolve } = Promise.withResolvers<{ records: number; sums: number }>();
    const { close } = await pruning(() => promise);
    await clock.advance(60_000);
    let closed = false;
    const closing = close().then(() => (closed = true));
    await nextTurn();
    expect(closed).toBe(false);
    resolve({ records: 0, sums: 0 });
    await closing;
    expect(closed).toBe(true);
  });
});

describe('records are added to the sums', () => {
  test('every second, and at once where more wait', async () => {
    let left = 5;
    const addToSums = vi.fn<UsageLog['addToSums']>(() => Promise.resolve((left -= 1) > 0));
    const { close } = await pruning(() => Promise.resolve({ records: 0, sums: 0 }), addToSums);
    await clock.advance(1_000);
    for (let step = 0; step < 5; step += 1) await clock.advance(20);
    expect(left).toBeLessThanOrEqual(0);
    const times = addToSums.mock.calls.length;
    await clock.advance(1_000);
    expect(addToSums.mock.calls.length).toBeGreaterThan(times);
    await close();
  });

  test('also after a failure, of which the log tells once', async () => {
    const addToSums = vi.fn<UsageLog['addToSums']>(() => Promise.reject(new Error('gone')));
    const { lines, close } = await pruning(() => Promise.resolve({ records: 0, sums: 0 }), addToSums);
    for (let step = 0; step < 5; step += 1) await clock.advance(1_000);
    expect(addToSums.mock.calls.length).toBeGreaterThan(2);
    expect(lines).toMatchObject([{ level: 'error', error: { message: 'gone' } }]);
    await close();
  });
});

test('how records stand to their rule is said from time to time', async () => {
  const { close } = await pruning(() => Promise.resolve({ records: 0, sums: 0 }));
  await clock.advance(10_000);
  expect(upkeep.all()).toMatchObject([{ what: 'usage-records', rule, overdueSeconds: 5 }]);
  expect(upkeep.warned).toMatchObject([{ warning: 'The oldest is old.' }]);
  await close();
});
