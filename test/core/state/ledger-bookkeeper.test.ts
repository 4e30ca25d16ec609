import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Ledger, Settlement } from '../../../core/state/ledger.ts';
import { startBookkeeper, type Bookkeeper } from '../../../core/state/ledger-bookkeeper.ts';
import { settlementOf } from '../../suites/ledger-suite.ts';

/** A ledger that remembers what it was asked, and fails while it is told to. */
class ScriptedLedger implements Ledger {
  readonly batches: (readonly Settlement[])[] = [];
  readonly released: string[] = [];
  readonly renewed: string[] = [];
  sweeps = 0;
  tries = 0;
  failing = false;
  /** The id of a record that can never be written. */
  poison: string | undefined;

  async settle(settlements: readonly Settlement[]): Promise<void> {
    this.tries += 1;
    if (this.failing || settlements.some(({ record }) => record.id === this.poison))
      throw new Error('disk full');
    this.batches.push(settlements);
  }
  settleAfter(): Promise<never> {
    return Promise.reject(new Error('Nothing is settled here together with something else.'));
  }
  async release(reservations: readonly string[]): Promise<void> {
    if (this.failing) throw new Error('disk full');
    this.released.push(...reservations);
  }
  async renew(reservations: readonly string[]): Promise<void> {
    if (this.failing) throw new Error('disk full');
    this.renewed.push(...reservations);
  }
  async sweep(): Promise<number> {
    this.sweeps += 1;
    return 0;
  }
  reserve(): Promise<never> {
    return Promise.reject(new Error('Nobody reserves here.'));
  }
  states(): Promise<never> {
    return Promise.reject(new Error('Nobody looks here.'));
  }

  get settled(): string[] {
    return this.batches.flat().map(({ record }) => record.id);
  }
}

let ledger: ScriptedLedger;
let reports: Error[];
let bookkeeper: Bookkeeper;
const start = (options = {}): void => {
  bookkeeper = startBookkeeper(ledger, (error) => reports.push(error), options);
};
const paid = (): Settlement => settlementOf('key_1', undefined, 10);
const free = (): Settlement => settlementOf('key_1', undefined, 0);
const claim = (id: string, lease: number) => ({ id, lease, expiresAt: Date.now() + lease });

beforeEach(() => {
  vi.useFakeTimers();
  ledger = new ScriptedLedger();
  reports = [];
});
afterEach(async () => {
  ledger.failing = false;
  ledger.poison = undefined;
  await Promise.all([bookkeeper.close(), vi.advanceTimersByTimeAsync(10_000)]);
  vi.useRealTimers();
});

describe('settlements', () => {
  test('are gathered for a moment and made together, a bounded number at a time', async () => {
    start();
    for (let number = 0; number < 1_200; number += 1) bookkeeper.book(paid());
    expect(ledger.batches).toEqual([]);
    expect(bookkeeper.waiting).toBe(1_200);
    await vi.advanceTimersByTimeAsync(50);
    expect(ledger.batches.map(({ length }) => length)).toEqual([500, 500, 200]);
    expect(new Set(ledger.settled).size).toBe(1_200);
    expect(bookkeeper.waiting).toBe(0);
  });

  test('wait while the database fails, are tried ever more rarely, and are made when it is back', async () => {
    start();
    ledger.failing = true;
    const settlements = [paid(), paid(), paid()];
    for (const one of settlements) bookkeeper.book(one);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(bookkeeper.waiting).toBe(3);
    expect(ledger.tries).toBeGreaterThan(5);
    expect(ledger.tries).toBeLessThan(25);
    expect(reports).toHaveLength(1);
    ledger.failing = false;
    await vi.advanceTimersByTimeAsync(5_000);
    expect(new Set(ledger.settled)).toEqual(new Set(settlements.map(({ record }) => record.id)));
    expect(bookkeeper.waiting).toBe(0);
  });

  test('are not held up by one that can never be made', async () => {
    start();
    const settlements = Array.from({ length: 20 }, paid);
    ledger.poison = settlements[3]?.record.id;
    for (const one of settlements) bookkeeper.book(one);
    await vi.advanceTimersByTimeAsync(30_000);
    expect(ledger.settled).toHaveLength(19);
    expect(bookkeeper.waiting).toBe(1);
  });

  test('beyond what may wait say that no call should be taken; what costs nothing is let go of', async () => {
    start({ most: 3 });
    ledger.failing = true;
    for (let number = 0; number < 3; number += 1) bookkeeper.book(paid());
    expect(bookkeeper.full).toBe(true);
    bookkeeper.book(free());
    bookkeeper.book(paid());
    bookkeeper.book({ ...free(), reservation: 'rsv_1' });
    expect(bookkeeper.waiting).toBe(5);
    ledger.failing = false;
    await vi.advanceTimersByTimeAsync(1_000);
    expect(bookkeeper.full).toBe(false);
    expect(ledger.settled).toHaveLength(5);
    expect(reports.map(({ message }) => message)).toEqual([
      '1 calls that cost nothing were not recorded: too many waited.',
    ]);
  });

  test('are all made at the end of the process', async () => {
    start();
    for (let number = 0; number < 700; number += 1) bookkeeper.book(paid());
    bookkeeper.release('rsv_1');
    await bookkeeper.close();
    expect(ledger.settled).toHaveLength(700);
    expect(ledger.released).toEqual(['rsv_1']);
  });

  test('that still cannot be made at the end are reported, and the process ends', async () => {
    start({ patience: 2_000 });
    ledger.failing = true;
    bookkeeper.book(paid());
    const closing = bookkeeper.close();
    await vi.advanceTimersByTimeAsync(5_000);
    await closing;
    expect(reports.at(-1)?.message).toBe('1 calls could not be charged before the gateway ended.');
  });
});

describe('claims', () => {
  test('of running calls are renewed three times a lease, until the call has ended', async () => {
    start();
    const unwatch = bookkeeper.watch(claim('rsv_1', 60_000));
    await vi.advanceTimersByTimeAsync(61_000);
    expect(ledger.renewed).toEqual(['rsv_1', 'rsv_1', 'rsv_1']);
    unwatch();
    await vi.advanceTimersByTimeAsync(61_000);
    expect(ledger.renewed).toHaveLength(3);
  });

  test('are renewed as soon as the database is back', async () => {
    start();
    bookkeeper.watch(claim('rsv_1', 6_000));
    ledger.failing = true;
    await vi.advanceTimersByTimeAsync(5_000);
    ledger.failing = false;
    await vi.advanceTimersByTimeAsync(300);
    expect(ledger.renewed).toEqual(['rsv_1']);
  });

  test('that were left by others are swept at the start and now and then, oftener where leases are short', async () => {
    start();
    await vi.advanceTimersByTimeAsync(300);
    expect(ledger.sweeps).toBe(1);
    await vi.advanceTimersByTimeAsync(41_000);
    expect(ledger.sweeps).toBe(3);
    bookkeeper.watch(claim('rsv_1', 3_000))();
    await vi.advanceTimersByTimeAsync(5_200);
    expect(ledger.sweeps).toBeGreaterThanOrEqual(6);
  });

  test('of calls that came to nothing are given back, behind the settlements that wait', async () => {
    start();
    bookkeeper.book(paid());
    bookkeeper.release('rsv_1');
    await vi.advanceTimersByTimeAsync(60);
    expect(ledger.settled).toHaveLength(1);
    expect(ledger.released).toEqual(['rsv_1']);
  });
});
