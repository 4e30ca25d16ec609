import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { openUsageLog } from '../../../../core/money/usage-log/open.ts';
import { makePartitions, partedTables, partitionsOf } from '../../../../core/money/usage-log/partitions.ts';
import type { PostgresDatabase } from '../../../../core/state/database/postgres.ts';
import { openStores, type Stores } from '../../../../core/state/stores.ts';
import { startPgBouncer, withoutPgBouncer } from '../../../support/pgbouncer.ts';
import { startPostgres, withoutPostgres, type TestPostgres } from '../../../support/postgres.ts';
import { makeOlder, olderInsertion } from '../../../suites/older-usage-log.ts';
import { insertRecords, usageRecord } from '../../../suites/usage-log-suite.ts';

const missing = withoutPostgres();
const day = 86_400_000;
const today = Math.floor(Date.now() / day) * day;

describe.skipIf(missing !== undefined)(
  `partitions of the usage log${missing === undefined ? '' : `, ${missing}`}`,
  () => {
    let server: TestPostgres;
    let address: string;
    let stores: Stores;

    beforeAll(async () => {
      server = await startPostgres();
    });
    afterAll(() => server?.close());
    beforeEach(async () => {
      address = await server.createDatabaseWithTables();
    });

    const open = async (): Promise<PostgresDatabase> => {
      const opened = openStores(address);
      stores = opened;
      onTestFinished(() => opened.close());
      await stores.ready();
      if (stores.database.kind !== 'postgres') throw new Error('This test needs PostgreSQL.');
      return stores.database;
    };
    const names = async (database: PostgresDatabase): Promise<string[]> =>
      (await partitionsOf(database, 'usage_records')).map(({ name }) => name);
    const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10).replaceAll('-', '');
    const whereIs = async (database: PostgresDatabase, id: string): Promise<string> => {
      const [row] = await database.query(
        'SELECT tableoid::regclass::text AS name FROM usage_records WHERE id = $1',
        [id],
      );
      return String(row?.['name']);
    };

    test('take the records of their days, those of an older version too, and what is older or far ahead has its place', async () => {
      await makeOlder(address, 'usage-log-5', [usageRecord('before', { at: today - 300 * day })]);
      const database = await open();
      await insertRecords(stores, [usageRecord('first', { at: today })]);
      await Promise.all([1, 2, 3].map(() => makePartitions(database, 30)));
      await makePartitions(database, 30);
      for (const table of partedTables)
        expect((await partitionsOf(database, table)).map(({ name }) => name)).toEqual([
          `${table}_before`,
          `${table}_${dayOf(today + 2 * day)}`,
          `${table}_${dayOf(today + 3 * day)}`,
          `${table}_other`,
        ]);
      await insertRecords(stores, [
        usageRecord('soon', { at: today + 2 * day }),
        usageRecord('far', { at: today + 9 * day }),
      ]);
      await database.query(olderInsertion([usageRecord('older', { at: today + 3 * day })]));
      const found = await Promise.all(
        ['before', 'first', 'soon', 'older', 'far'].map((id) => whereIs(database, id)),
      );
      expect(found).toEqual([
        'usage_records_before',
        'usage_records_before',
        `usage_records_${dayOf(today + 2 * day)}`,
        `usage_records_${dayOf(today + 3 * day)}`,
        'usage_records_other',
      ]);
      // Its day comes.
      await makePartitions(database, 30, today + 7 * day);
      expect(await whereIs(database, 'far')).toBe(`usage_records_${dayOf(today + 9 * day)}`);
      const log = openUsageLog(stores);
      expect((await log.page({}, 10)).records.map(({ id }) => id)).toEqual([
        'far',
        'older',
        'soon',
        'first',
        'before',
      ]);
      expect((await log.page({ keyId: 'k' }, 10)).records).toEqual([]);
      expect((await log.sums({}, 'model')).sums).toMatchObject([{ calls: 5 }]);
      // Written again, in each kind of partition.
      for (const [id, at] of [
        ['soon', today + 2 * day],
        ['far', today + 9 * day],
        ['first', today],
      ] as const)
        expect(await insertRecords(stores, [usageRecord(id, { at, status: 500 })])).toEqual(new Set());
    });

    test('are removed as a whole when all of their records are too old, with details, and the sums stay', async () => {
      const database = await open();
      await makePartitions(database, 30, today - 40 * day);
      await makePartitions(database, 30);
      const records = Array.from({ length: 38 }, (_, days) =>
        usageRecord(`r${days}`, { at: today - days * day + 1_000, keyId: 'k', request: 'body' }),
      );
      await insertRecords(stores, records);
      const log = openUsageLog(stores);
      const before = (await log.sums({}, 'keyId')).sums;
      const { records: removed } = await log.prune({ days: 30, records: 1_000, sumDays: 365 });
      // The day of which a part is too old stays until all of it is.
      expect(removed).toBe(7);
      expect(await names(database)).not.toContain(`usage_records_${dayOf(today - 31 * day)}`);
      expect(await names(database)).toContain(`usage_records_${dayOf(today - 30 * day)}`);
      expect((await log.page({ keyId: 'k' }, 100)).records).toHaveLength(31);
      const [details] = await database.query('SELECT COUNT(*)::int AS count FROM usage_details');
      expect(details).toEqual({ count: 31 });
      expect((await log.sums({}, 'keyId')).sums).toEqual(before);
      const [kept] = await log.standing({ days: 30, records: 1_000, sumDays: 365 });
      expect(kept).toMatchObject({ rows: 31, overdueSeconds: 0 });
      // Fewer days, or fewer records, are kept to the record.
      await log.prune({ days: 2, records: 1_000, sumDays: 365 });
      expect((await log.page({}, 100)).records.every(({ at }) => at > Date.now() - 2 * day)).toBe(true);
      await log.prune({ days: 30, records: 1, sumDays: 365 });
      expect((await log.page({}, 100)).records.map(({ id }) => id)).toEqual(['r0']);
    });

    test('that somebody reads stay, and calls are recorded meanwhile', async () => {
      const database = await open();
      await makePartitions(database, 30, today - 40 * day);
      await makePartitions(database, 30);
      await insertRecords(stores, [usageRecord('old', { at: today - 38 * day })]);
      const log = openUsageLog(stores);
      const read = database.transaction(async (session) => {
        await session.query('SELECT COUNT(*) FROM usage_records');
        const pruned = log.prune({ days: 30, records: 1_000, sumDays: 365 });
        await insertRecords(stores, [usageRecord('new', { at: today })]);
        await session.query('SELECT 1');
        return { pruned };
      });
      const { pruned } = await read;
      await pruned;
      await log.prune({ days: 30, records: 1_000, sumDays: 365 });
      expect((await log.page({}, 10)).records.map(({ id }) => id)).toEqual(['new']);
    });

    test.skipIf(withoutPgBouncer() !== undefined)(
      'are made and removed behind PgBouncer in transaction mode',
      async () => {
        const bouncer = await startPgBouncer(address.replace(/\?.*/, ''));
        onTestFinished(() => bouncer.close());
        address = bouncer.through(address);
        const database = await open();
        await makePartitions(database, 30, today - 40 * day);
        await makePartitions(database, 30);
        await insertRecords(stores, [
          usageRecord('old', { at: today - 36 * day }),
          usageRecord('new', { at: today }),
        ]);
        const log = openUsageLog(stores);
        expect(await log.prune({ days: 30, records: 1_000, sumDays: 365 })).toMatchObject({ records: 1 });
        expect((await log.page({}, 10)).records.map(({ id }) => id)).toEqual(['new']);
        expect(await names(database)).not.toContain(`usage_records_${dayOf(today - 36 * day)}`);
      },
    );

    test('lose what an older gateway removes by ranges, and nothing else', async () => {
      const database = await open();
      await makePartitions(database, 30, today - 40 * day);
      await makePartitions(database, 30);
      const at = today - 36 * day;
      await insertRecords(stores, [usageRecord('old', { at }), usageRecord('new', { at: today })]);
      await database.query(
        `DELETE FROM usage_records WHERE at >= 0 AND at <= ${at} AND (at, id) <= (${at}, 'old')`,
      );
      expect((await openUsageLog(stores).page({}, 10)).records.map(({ id }) => id)).toEqual(['new']);
    });

    test('of records that are kept for years are of several days', async () => {
      const database = await open();
      await makePartitions(database, 3_650);
      await makePartitions(database, 3_650, today + 400 * day);
      expect((await names(database)).length).toBeLessThan(20);
    });
  },
);
