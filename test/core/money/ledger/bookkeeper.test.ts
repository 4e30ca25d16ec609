import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { BudgetExhausted } from '../../../../core/money/ledger/periods.ts';
import {
  type Ledger,
  type Reservation,
  type Settlement,
  type Bookkeeper,
} from '../../../../core/money/ledger/index.ts';
import { startBookkeeper } from '../../../../core/money/ledger/bookkeeper.ts';
import { settlementOf } from '../../../suites/ledger-suite.ts';

/** A ledger that remembers what it was asked, and fails while it is told to. */
class ScriptedLedger implements Ledger {
  readonly batches: (readonly Settlement[])[] = [];
  readonly released: string[] = [];
  readonly renewed: string[] = [];
  /** Ids of claims that are lost when they are renewed next. */
  lost: string[] = [];
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
  async renew(reservations: readonly Reservation[]): Promise<readonly string[]> {
    if (this.failing) throw new Error('disk full');
    this.renewed.push(...reservations.map(({ id }) => id));
    const { lost } = this;
    this.lost = [];
    return lost;
  }
  async sweep(): Promise<number> {
    this.sweeps += 1;
    return 0;
  }
  /** There is room as soon as everything that was booked is settled, or given back. */
  room: () => boolean = () => true;
  claimed = true;
  async reserve(keyId: string): Promise<Reservation> {
    this.requestCount += 1;
    if (!this.room()) throw new BudgetExhausted('The budget is used up.', this.claimed);
    return { ...reservationOf(`rsv_${this.requestCount}`, 60_000), keyId };
  }
  requestCount = 0;
  states(): Promise<never> {
    return Promise.reject(new Error('Nobody looks here.'));
  }
  async giveBack(): Promise<void> {}
  async recalled(): Promise<readonly string[]> {
    return [];
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
const reservationOf = (id: string, lease: number): Reservation => ({
  id,
  keyId: 'key_1',
  most: { microDollars: 1, tokens: 1 },
  lease,
});

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
    for (let number = 0; number < 1_200; number += 1) bookkeeper.enqueue(paid());
    expect(ledger.batches).toEqual([]);
    expect(bookkeeper.waiting).toBe(1_200);
    await vi.advanceTimersByTimeAsync(25);
    expect(ledger.batches.map(({ length }) => length)).toEqual([500, 500, 200]);
    expect(new Set(ledger.settled).size).toBe(1_200);
    expect(bookkeeper.waiting).toBe(0);
  });

  test('wait while the database fails, are tried ever more rarely, and are made when it is back', async () => {
    start();
    ledger.failing = true;
    const settlements = [paid(), paid(), paid()];
    for (const one of settlements) bookkeeper.enqueue(one);
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
    for (const one of settlements) bookkeeper.enqueue(one);
    await vi.advanceTimersByTimeAsync(30_000);
    expect(ledger.settled).toHaveLength(19);
    expect(bookkeeper.waiting).toBe(1);
  });

  test('beyond what may wait say that no call should be taken; what costs nothing is let go of', async () => {
    start({ most: 3 });
    ledger.failing = true;
    for (let number = 0; number < 3; number += 1) bookkeeper.enqueue(paid());
    expect(bookkeeper.full).toBe(true);
    bookkeeper.enqueue(free());
    bookkeeper.enqueue(paid());
    bookkeeper.enqueue({ ...free(), reservation: 'rsv_1' });
    expect(bookkeeper.waiting).toBe(5);
    ledger.failing = false;
    await vi.advanceTimersByTimeAsync(1_000);
    expect(bookkeeper.full).toBe(false);
    expect(ledger.settled).toHaveLength(5);
    expect(reports.map(({ message }) => message)).toEqual([
      '1 calls without cost were not recorded: too many were waiting.',
    ]);
  });

  test.each([
    ['tokens without a price', 0, 7],
    ['money without tokens', 7, 0],
  ])('beyond what may wait keep %s: budgets count them', async (_what, microDollars, tokens) => {
    start({ most: 1 });
    ledger.failing = true;
    bookkeeper.enqueue(paid());
    const settlement = settlementOf('key_1', undefined, microDollars, tokens);
    bookkeeper.enqueue(settlement);
    expect(bookkeeper.waiting).toBe(2);
    ledger.failing = false;
    await vi.advanceTimersByTimeAsync(1_000);
    expect(ledger.settled).toContain(settlement.record.id);
  });

  test('are all made at the end of the process', async () => {
    start();
    for (let number = 0; number < 700; number += 1) bookkeeper.enqueue(paid());
    bookkeeper.release('rsv_1');
    await bookkeeper.close();
    expect(ledger.settled).toHaveLength(700);
    expect(ledger.released).toEqual(['rsv_1']);
  });

  test('that still cannot be made at the end are reported, and the process ends', async () => {
    start({ patience: 2_000 });
    ledger.failing = true;
    bookkeeper.enqueue(paid());
    const closing = bookkeeper.close();
    await vi.advanceTimersByTimeAsync(5_000);
    await closing;
    expect(reports.at(-1)?.message).toBe('1 calls could not be charged before the gateway stopped.');
  });
});

describe('a call is let in', () => {
  const reserve = () => bookkeeper.reserve('key_1', [], { microDollars: 1, tokens: 1 });

  test('at once where there is room, and nothing is settled for its sake', async () => {
    start();
    bookkeeper.enqueue(paid());
    await reserve();
    expect([ledger.requestCount, ledger.tries]).toEqual([1, 0]);
  });

  test.each<[string, () => void, () => boolean]>([
    ['has ended', () => bookkeeper.enqueue(paid()), () => ledger.settled.length > 0],
    ['came to nothing', () => bookkeeper.release('rsv_9'), () => ledger.released.length > 0],
  ])('when only a call stands in its way that %s', async (_what, end, room) => {
    start({ gather: 600_000 });
    ledger.room = room;
    end();
    const reserved = reserve();
    await vi.advanceTimersByTimeAsync(100);
    await expect(reserved).resolves.toMatchObject({ keyId: 'key_1' });
    expect(ledger.requestCount).toBe(2);
  });

  test('when another process settles meanwhile', async () => {
    start();
    const since = performance.now();
    ledger.room = () => performance.now() - since >= 50;
    const reserved = reserve();
    await vi.advanceTimersByTimeAsync(100);
    await expect(reserved).resolves.toBeDefined();
  });

  test.each([true, false])(
    'or refused: soon, and at once where no settlement can help (claims in the way: %s)',
    async (claimed) => {
      start();
      ledger.room = () => false;
      ledger.claimed = claimed;
      const refused = reserve().catch((error: unknown) => error);
      await vi.advanceTimersByTimeAsync(claimed ? 100 : 0);
      expect(await refused).toBeInstanceOf(BudgetExhausted);
      expect(ledger.requestCount).toBe(claimed ? 2 : 1);
    },
  );

  test('or refused within about a second though the database takes no settlements', async () => {
    start({ gather: 600_000 });
    ledger.room = () => false;
    vi.spyOn(ledger, 'settle').mockReturnValue(new Promise(() => {}));
    bookkeeper.enqueue(paid());
    const refused = reserve().catch((error: unknown) => error);
    await vi.advanceTimersByTimeAsync(1_100);
    expect(await refused).toBeInstanceOf(BudgetExhausted);
    start();
  });
});

describe('claims', () => {
  test('of running calls are renewed three times a lease, until the call has ended', async () => {
    start();
    const unwatch = bookkeeper.watch(reservationOf('rsv_1', 60_000));
    await vi.advanceTimersByTimeAsync(61_000);
    expect(ledger.renewed).toEqual(['rsv_1', 'rsv_1', 'rsv_1']);
    unwatch();
    await vi.advanceTimersByTimeAsync(61_000);
    expect(ledger.renewed).toHaveLength(3);
  });

  test('that had run out are told of; one whose call ended meanwhile is given back', async () => {
    start();
    bookkeeper.watch(reservationOf('rsv_1', 60_000));
    const unwatch = bookkeeper.watch(reservationOf('rsv_2', 60_000));
    ledger.lost = ['rsv_1', 'rsv_2'];
    const renew = ledger.renew.bind(ledger);
    vi.spyOn(ledger, 'renew').mockImplementationOnce((claims) => {
      unwatch();
      return renew(claims);
    });
    await vi.advanceTimersByTimeAsync(21_000);
    expect(reports.map(({ message }) => message)).toEqual([
      expect.stringContaining('The reservations of 2 running calls had expired and were made again'),
    ]);
    expect(ledger.released).toEqual(['rsv_2']);
  });

  test('are renewed though the clock of the machine is set back', async () => {
    start();
    bookkeeper.watch(reservationOf('rsv_1', 60_000));
    vi.setSystemTime(Date.now() - 86_400_000);
    await vi.advanceTimersByTimeAsync(21_000);
    expect(ledger.renewed).toEqual(['rsv_1']);
  });

  test('are renewed as soon as the database is back', async () => {
    start();
    bookkeeper.watch(reservationOf('rsv_1', 6_000));
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
    bookkeeper.watch(reservationOf('rsv_1', 3_000))();
    await vi.advanceTimersByTimeAsync(5_200);
    expect(ledger.sweeps).toBeGreaterThanOrEqual(6);
  });

  test('of calls that came to nothing are given back, behind the settlements that wait', async () => {
    start();
    bookkeeper.enqueue(paid());
    bookkeeper.release('rsv_1');
    await vi.advanceTimersByTimeAsync(60);
    expect(ledger.settled).toHaveLength(1);
    expect(ledger.released).toEqual(['rsv_1']);
  });
});
