import { DatabaseSync } from 'node:sqlite';
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { openLedger } from '../../../../core/money/ledger/open.ts';
import { BudgetExhausted } from '../../../../core/money/ledger/periods.ts';
import { openPostgresLedger } from '../../../../core/money/ledger/postgres.ts';
import { freeTimesIn } from '../../../../core/money/ledger/postgres-windows.ts';
import { freeAt } from '../../../../core/money/ledger/windows.ts';
import type { PostgresDatabase } from '../../../../core/state/database/postgres.ts';
import { openStores } from '../../../../core/state/stores.ts';
import { startPostgres, withoutPostgres, type TestPostgres } from '../../../support/postgres.ts';
import { ledgerSuite, settlementOf } from '../../../suites/ledger-suite.ts';
import { temporaryDatabase } from '../../state/support.ts';

const missing = withoutPostgres();
const budgets = [{ unit: 'micro-dollar', period: 'day', amount: 1_000 }] as const;
const most = { microDollars: 10, tokens: 1 };

describe('on an SQLite file', () => {
  ledgerSuite(temporaryDatabase, 3);

  test('a writer that does not end is waited for without the event loop, and not for ever', async () => {
    const url = temporaryDatabase();
    const stores = openStores(url);
    const ledger = openLedger(stores);
    const other = new DatabaseSync(url.slice('sqlite:'.length));
    let ticks = 0;
    const ticking = setInterval(() => (ticks += 1), 5);
    try {
      other.exec('BEGIN IMMEDIATE');
      await expect(ledger.reserve('key_1', budgets, most)).rejects.toThrow('The database is busy');
      expect(ticks).toBeGreaterThan(0);

      const waiting = ledger.reserve('key_1', budgets, most);
      await setTimeout(200);
      other.exec('COMMIT');
      const reservation = await waiting;
      await ledger.settle([settlementOf('key_1', reservation, 5)]);
      expect(await ledger.states('key_1', budgets)).toMatchObject([{ spent: 5, reserved: 0 }]);
    } finally {
      clearInterval(ticking);
      other.close();
      await stores.close();
    }
  });

  test('a closed database rejects, and does not throw', async () => {
    const stores = openStores(temporaryDatabase());
    const ledger = openLedger(stores);
    await stores.close();
    await expect(ledger.reserve('key_1', budgets, most)).rejects.toThrow(/not open|finalized/);
    await expect(ledger.settle([settlementOf('key_1', undefined, 5)])).rejects.toThrow(/not open|finalized/);
    await expect(ledger.sweep()).rejects.toThrow(/not open|finalized/);
    await expect(ledger.states('key_1', budgets)).rejects.toThrow(/not open|finalized/);
  });
});

describe('in memory', () => {
  ledgerSuite(() => 'sqlite::memory:', 1);
});

describe.skipIf(missing !== undefined)(`on Postgres${missing === undefined ? '' : `, ${missing}`}`, () => {
  let server: TestPostgres;
  let shared: string;
  beforeAll(async () => {
    server = await startPostgres();
    shared = await server.createDatabase();
  });
  afterAll(() => server.close());

  ledgerSuite(() => shared, 3);

  test('a gateway whose clock is hours ahead gives away no claim of another’s, nor keeps one for longer', async () => {
    const [one, ahead] = [openStores(shared), openStores(shared)];
    const at = (hours: number) =>
      vi.useFakeTimers({ toFake: ['Date'], now: Date.UTC(2026, 10, 21, 12 + hours) });
    const room = { microDollars: 1_000, tokens: 1 };
    try {
      at(0);
      const ledger = openLedger(one);
      const reservation = await ledger.reserve('key_skew', budgets, room, 60_000);
      at(8);
      const other = openLedger(ahead);
      await other.sweep();
      await expect(other.reserve('key_skew', budgets, most)).rejects.toThrow('reserved for running calls');
      expect(await other.renew([reservation])).toEqual([]);
      at(0);
      await ledger.release([reservation.id]);
      at(8);
      await other.reserve('key_skew', budgets, room, 1);
      at(0);
      await expect.poll(() => ledger.reserve('key_skew', budgets, room).catch(() => undefined)).toBeDefined();
    } finally {
      vi.useRealTimers();
      await one.close();
      await ahead.close();
    }
  });

  test('a claim waits as long for a silent server as the address of the database says', async () => {
    const stores = openStores(await server.createDatabase());
    const ledger = openLedger(stores);
    try {
      await ledger.states('key_slow', budgets);
      server.pause();
      const reservation = ledger.reserve('key_slow', budgets, most);
      // Longer than the patience that operators get who say nothing.
      await Promise.race([reservation.catch(() => {}), setTimeout(1500)]);
      server.resume();
      expect(await reservation).toMatchObject({ keyId: 'key_slow' });
    } finally {
      server.resume();
      await stores.close();
    }
  });

  test('a server that hangs fails the claim; one that is back works', async () => {
    const stores = openStores(await server.createDatabase('hasty'));
    const ledger = openLedger(stores);
    try {
      // A busy machine may take longer than an operator's patience by default, before and after.
      await expect.poll(() => ledger.reserve('key_hang', budgets, most).catch(() => undefined)).toBeDefined();
      server.pause();
      await expect(ledger.reserve('key_hang', budgets, most)).rejects.toThrow('database');
      server.resume();
      await expect.poll(() => ledger.reserve('key_hang', budgets, most).catch(() => undefined)).toBeDefined();
    } finally {
      server.resume();
      await stores.close();
    }
  });
});

test('calls of several end users of a key wait for one connection to Postgres, and not for one each', async () => {
  let transactions = 0;
  const database = {
    patience: 1,
    transaction: () => {
      transactions += 1;
      return new Promise(() => {});
    },
  } as unknown as PostgresDatabase;
  const ledger = openPostgresLedger(database);
  const reservations = ['ada', 'bob', 'carol'].map((user) =>
    ledger.reserve(
      'key_1',
      [{ ...budgets[0], owner: { id: `usr_${user}`, name: user, scope: 'key_1' } }],
      most,
    ),
  );
  expect((await Promise.allSettled(reservations)).map(({ status }) => status)).toEqual(
    reservations.map(() => 'rejected'),
  );
  expect(transactions).toBe(1);
});

describe('a rolling window', () => {
  const rolling = { unit: 'micro-dollar', period: 'hours', hours: 5, amount: 100 } as const;

  test('is read once for all calls that it refuses together', async () => {
    const read: unknown[] = [];
    const withTime = freeTimesIn(
      {
        query: (_sql: string, [holder]: readonly unknown[] = []) => {
          read.push(holder);
          return Promise.resolve([{ since: '0', micro_dollars: '60', tokens: '1' }]);
        },
      } as Parameters<typeof freeTimesIn>[0],
      0,
    );
    const full = { budget: rolling, since: 0, needed: 10, sentence: 'It is full.' };
    for (const key of ['key_1', 'key_1', 'key_2'])
      // oxlint-disable-next-line no-await-in-loop -- one after the other, as the ledger does
      expect(await withTime(new BudgetExhausted('Full.', false, full), key)).toMatchObject({
        message: 'It is full. Enough of it is available at 1970-01-01 05:05 UTC.',
      });
    expect(read).toEqual(['key_1', 'key_2']);
  });

  test('does not have what was given back, beyond what was charged then, free later', () => {
    const minute = 60_000;
    const buckets = [
      { since: 0, spent: -50 },
      { since: 5 * minute, spent: 60 },
    ];
    expect(freeAt(5, buckets, 60)).toBe(310 * minute);
  });
});
