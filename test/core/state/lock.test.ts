import { expect, onTestFinished, test, vi } from 'vitest';
import { whileLocked, type LockOptions } from '../../../core/state/lock.ts';
import { rows, sqlOf } from '../../../core/state/database/sql.ts';
import { openStores, type Stores } from '../../../core/state/stores.ts';
import { eventually } from '../../support/eventually.ts';

const options: LockOptions = {
  namespace: 'locks',
  key: 'one',
  lifeMs: 60_000,
  patienceMs: 0,
  refusal: () => new Error('busy'),
};

function open(): Stores {
  const stores = openStores('sqlite::memory:');
  onTestFinished(() => stores.close());
  return stores;
}

/** Lets virtual minutes pass, one after the other, in each of which a lock is renewed. */
async function passMinutes(count: number): Promise<void> {
  for (let step = 0; step < count * 6; step += 1) await vi.advanceTimersByTimeAsync(10_000);
}

function fakeClock(): void {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'Date'] });
  onTestFinished(() => void vi.useRealTimers());
}

test('work that takes longer than the life of its lock keeps it', async () => {
  fakeClock();
  const stores = open();
  const { promise: over, resolve: end } = Promise.withResolvers<string>();
  const first = whileLocked(stores, options, () => over);
  await eventually(() => expect(whileLocked(stores, options, async () => 'second')).rejects.toThrow('busy'));
  await passMinutes(5);
  await expect(whileLocked(stores, options, async () => 'second')).rejects.toThrow('busy');
  end('first');
  expect(await first).toBe('first');
  await vi.advanceTimersByTimeAsync(10);
  expect(await whileLocked(stores, options, async () => 'second')).toBe('second');
});

test('the lock of a process that was killed expires, and its holder does not take it back', async () => {
  fakeClock();
  const stores = open();
  // As a process that was killed has left it.
  await stores.add('locks', 'one', 'killed', 60_000);
  await expect(whileLocked(stores, options, async () => 'next')).rejects.toThrow('busy');
  await passMinutes(2);
  expect(await whileLocked(stores, options, async () => 'next')).toBe('next');
});

test('work that fails gives its lock back, and a database that fails afterwards does not hide its result', async () => {
  const stores = open();
  await expect(whileLocked(stores, options, () => Promise.reject(new Error('of the work')))).rejects.toThrow(
    'of the work',
  );
  const { run } = sqlOf(stores.database);
  const refuse = "BEGIN SELECT RAISE(ABORT, 'down'); END";
  await run(() => rows(`CREATE TRIGGER refused BEFORE DELETE ON keyv ${refuse}`));
  expect(await whileLocked(stores, { ...options, patienceMs: 60_000 }, async () => 'done')).toBe('done');
});
