import { DatabaseSync } from 'node:sqlite';
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openLedger } from '../../../core/state/ledger.ts';
import { openStores } from '../../../core/state/stores.ts';
import { startPostgres, withoutPostgres, type TestPostgres } from '../../support/postgres.ts';
import { ledgerSuite, settlementOf } from '../../suites/ledger-suite.ts';
import { temporaryDatabase } from './support.ts';

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
      const claim = await waiting;
      await ledger.settle([settlementOf('key_1', claim, 5)]);
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

  test('a server that hangs fails the claim; one that is back works', async () => {
    const stores = openStores(shared);
    const ledger = openLedger(stores);
    try {
      await ledger.reserve('key_hang', budgets, most);
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
