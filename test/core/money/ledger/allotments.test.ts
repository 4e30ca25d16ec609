import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Budget } from '../../../../core/sdk/budget.ts';
import { startBookkeeper } from '../../../../core/money/ledger/bookkeeper.ts';
import type { Bookkeeper, Ledger, Reservation } from '../../../../core/money/ledger/index.ts';
import { BudgetExhausted } from '../../../../core/money/ledger/periods.ts';
import { MemoryDatabase } from '../../../simulate/database.ts';
import { settlementOf } from '../../../suites/ledger-suite.ts';

const budgets: readonly Budget[] = [{ unit: 'micro-dollar', period: 'total', amount: 10_000 }];
const lease = 60_000;
const amounts = (microDollars: number) => ({ microDollars, tokens: 0 });

let database: MemoryDatabase;
let reservations: number;
let bookkeepers: Bookkeeper[];

/** One process before the database that all share. */
function start(): Bookkeeper {
  const ledger: Ledger = {
    async reserve(keyId, of, most, length = lease, less = undefined, ahead = undefined) {
      reservations += 1;
      const request = {
        most,
        ...(less === undefined ? {} : { less }),
        ...(ahead === undefined ? {} : { ahead }),
      };
      const outcome = database.reserve(keyId, of, request, length, Date.now());
      if (outcome instanceof BudgetExhausted) throw outcome;
      return outcome;
    },
    settle: async (settlements) => database.settle(settlements, Date.now()),
    settleAfter: () => Promise.reject(new Error('Nothing is settled here together with something else.')),
    release: async (ids) => database.release(ids),
    giveBack: async (returns) => database.giveBack(returns),
    recalled: async () => database.recalled(),
    renew: async (some) => database.renew(some, Date.now()),
    sweep: async () => database.sweep(),
    states: async (keyId, of) => database.states(keyId, of, Date.now()),
  };
  const bookkeeper = startBookkeeper(ledger, (error) => expect.fail(error.message));
  bookkeepers.push(bookkeeper);
  return bookkeeper;
}

const reserve = (bookkeeper: Bookkeeper, microDollars = 10, mayShare = true): Promise<Reservation> =>
  bookkeeper.reserve('key_1', budgets, amounts(microDollars), lease, undefined, mayShare);

/** Reserves for calls that run at the same time. */
async function begin(bookkeeper: Bookkeeper, calls: number): Promise<readonly Reservation[]> {
  const begun: Reservation[] = [];
  // oxlint-disable-next-line no-await-in-loop -- each may be served from what the one before it reserved
  for (let call = 0; call < calls; call += 1) begun.push(await reserve(bookkeeper));
  return begun;
}

const charge = (bookkeeper: Bookkeeper, reservation: Reservation, microDollars: number): void =>
  bookkeeper.enqueue(settlementOf('key_1', reservation, microDollars));

function state(): readonly (number | undefined)[] {
  const [found] = database.states('key_1', budgets, Date.now());
  return [found?.spent, found?.reserved, found?.ahead];
}

beforeEach(() => {
  vi.useFakeTimers({ now: Date.UTC(2026, 10, 21, 12) });
  database = new MemoryDatabase(() => Date.now());
  reservations = 0;
  bookkeepers = [];
});
afterEach(async () => {
  await Promise.all([...bookkeepers.map((one) => one.close()), vi.advanceTimersByTimeAsync(10_000)]);
  vi.useRealTimers();
});

describe('calls of a busy key', () => {
  test('are served from memory, and charged in full', async () => {
    const bookkeeper = start();
    for (let call = 0; call < 100; call += 1) {
      // oxlint-disable-next-line no-await-in-loop -- one call after the other
      charge(bookkeeper, await reserve(bookkeeper), 3);
      // oxlint-disable-next-line no-await-in-loop -- as above
      await vi.advanceTimersByTimeAsync(5);
    }
    expect(reservations).toBeLessThan(10);
    await vi.advanceTimersByTimeAsync(100);
    expect(state()).toMatchObject([300, 0, expect.any(Number)]);
    expect(state()[2]).toBeGreaterThan(0);
    // A key that does not call any more has nothing reserved.
    await vi.advanceTimersByTimeAsync(2_000);
    expect(state()).toEqual([300, 0, 0]);
    expect(database.all()).toEqual([]);
  });

  test('show as reserved what they may come to, and not what is reserved ahead', async () => {
    const bookkeeper = start();
    const [first, ...others] = await begin(bookkeeper, 5);
    if (first !== undefined) charge(bookkeeper, first, 10);
    for (const one of others.slice(0, 2)) charge(bookkeeper, one, 4);
    await vi.advanceTimersByTimeAsync(100);
    expect(state().slice(0, 2)).toEqual([18, 20]);
    // What is free is given back though two calls go on.
    await vi.advanceTimersByTimeAsync(2_000);
    expect(state()).toEqual([18, 20, 0]);
  });

  test('keep what is reserved for them when another one costs more than was reserved for it', async () => {
    const bookkeeper = start();
    const calls = await begin(bookkeeper, 4);
    const [dear] = calls.slice(2);
    if (dear !== undefined) charge(bookkeeper, dear, 9_000);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(state()).toEqual([9_000, 30, 0]);
  });

  test('each have a reservation of their own where it is settled elsewhere', async () => {
    const bookkeeper = start();
    for (let call = 0; call < 5; call += 1)
      // oxlint-disable-next-line no-await-in-loop -- one call after the other
      expect(await reserve(bookkeeper, 10, false)).not.toHaveProperty('ahead');
    expect(database.all()).toHaveLength(5);
  });

  test('each reserve in the database near the limit', async () => {
    const bookkeeper = start();
    const calls: Reservation[] = [];
    // oxlint-disable-next-line no-await-in-loop -- one call after the other
    for (let call = 0; call < 5; call += 1) calls.push(await reserve(bookkeeper, 2_000));
    expect(reservations).toBe(5);
    expect(state()).toEqual([0, 10_000, 0]);
  });

  test('whose end nobody reports lose their reservations after the lease', async () => {
    const bookkeeper = start();
    for (const one of await begin(bookkeeper, 4)) bookkeeper.watch(one)();
    await vi.advanceTimersByTimeAsync(lease - 2_000);
    expect(state()[1]).toBe(40);
    await vi.advanceTimersByTimeAsync(4_000);
    expect(state()).toEqual([0, 0, 0]);
  });

  test('keep their reservations as long as they run', async () => {
    const bookkeeper = start();
    for (const one of await begin(bookkeeper, 4)) bookkeeper.watch(one);
    await vi.advanceTimersByTimeAsync(5 * lease);
    // The first one has a reservation of its own, which is watched too.
    expect(state()).toEqual([0, 40, 0]);
  });
});

describe('what is reserved ahead', () => {
  test('is given back for a call of another process, which is let in within a fraction of a second', async () => {
    const [one, other] = [start(), start()];
    await begin(one, 3);
    expect(state()[2]).toBeGreaterThan(100);
    const large = reserve(other, 10_000 - 30);
    await vi.advanceTimersByTimeAsync(300);
    await expect(large).resolves.toMatchObject({ most: amounts(9_970) });
    expect(state()).toEqual([0, 10_000, 0]);
  });

  test('is given back when the process ends, and nothing is reserved ahead from then on', async () => {
    const bookkeeper = start();
    const [first] = await begin(bookkeeper, 3);
    const closing = bookkeeper.close();
    await reserve(bookkeeper);
    await vi.advanceTimersByTimeAsync(100);
    await closing;
    expect(first).toBeDefined();
    expect(state()).toEqual([0, 40, 0]);
  });

  test('of a process that was killed is free for others when its lease is over', async () => {
    const other = start();
    database.reserve('key_1', budgets, { most: amounts(10), ahead: amounts(1_000) }, lease, Date.now());
    const refused = reserve(other, 9_500).catch((error: unknown) => error);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(await refused).toBeInstanceOf(BudgetExhausted);
    await vi.advanceTimersByTimeAsync(lease);
    await expect(reserve(other, 9_500)).resolves.toBeDefined();
  });
});
