import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openStores } from '../../../../core/state/stores.ts';
import { openUsageLog } from '../../../../core/money/usage-log/open.ts';
import { startPostgres, withoutPostgres, type TestPostgres } from '../../../support/postgres.ts';
import { insertRecords, newYear, usageLogSuite, usageRecord } from '../../../suites/usage-log-suite.ts';
import { tries } from '../../../support/tries.ts';
import { temporaryDatabase } from '../../state/support.ts';

const missing = withoutPostgres();

describe('on an SQLite file', () => {
  usageLogSuite(temporaryDatabase);

  test('records that an older version has written are found by tag, end user and organisation after the upgrade, and forgotten when they go', async () => {
    const url = temporaryDatabase();
    const older = openStores(url);
    const at = Date.now() - 5 * 86_400_000;
    const named = { tags: ['blue', 'green'], endUser: 'ann', organisation: 'org_1' };
    try {
      await older.ready();
      if (older.database.kind !== 'sqlite') throw new Error('This test needs SQLite.');
      older.database.connection.exec(
        `DROP TRIGGER usage_records_of_subjects; DROP TABLE usage_subject_records;
         DELETE FROM sluice_additions WHERE name = 'usage-subject-records-1'`,
      );
      await insertRecords(older, [
        usageRecord('first', { ...named, at }),
        usageRecord('second', { ...named, at: at + 1 }),
        usageRecord('other', { at }),
      ]);
    } finally {
      await older.close();
    }
    const stores = openStores(url);
    try {
      await stores.ready();
      const log = openUsageLog(stores);
      await insertRecords(stores, [usageRecord('third', { ...named, at: Date.now() })]);
      while (await log.addToSums());
      for (const filter of [{ tag: 'green' }, { endUser: 'ann' }, { organisation: 'org_1' }])
        expect((await log.page(filter, 5)).records.map(({ id }) => id)).toEqual(['third', 'second', 'first']);
      await log.prune({ days: 1, records: 100, sumDays: 30 });
      if (stores.database.kind !== 'sqlite') throw new Error('This test needs SQLite.');
      const left = stores.database.connection
        .prepare('SELECT subject FROM usage_subject_records ORDER BY subject')
        .all();
      expect(left.map(({ subject }) => subject)).toEqual(['ann', 'blue', 'green', 'org_1']);
    } finally {
      await stores.close();
    }
  });

  test('many records: what the overview and a page of the log take is printed, and calls go on meanwhile', async () => {
    const stores = openStores(temporaryDatabase());
    try {
      const log = openUsageLog(stores);
      const count = tries(100_000);
      const day = 86_400_000;
      const begun = performance.now();
      for (let from = 0; from < count; from += 500) {
        const records = Array.from({ length: 500 }, (_, offset) => {
          const index = from + offset;
          // Any spread of times will do, the same in every run.
          const ms = 20 + ((index * 7919) % 10_000);
          return usageRecord(`req_0123456789abcdef${String(index).padStart(8, '0')}`, {
            at: newYear + Math.floor((index * day) / count),
            keyId: `key_${index % 40}`,
            model: `model-${index % 12}`,
            upstreamModel: `model-${index % 12}-2026`,
            channel: `channel-${index % 5}`,
            status: index % 23 === 0 ? 502 : 200,
            input: 1000 + (index % 777),
            output: index % 500,
            microDollars: 1234,
            price: { model: 'model-*', input: 3, output: 15 },
            ms,
            firstMs: ms / 3,
          });
        });
        await insertRecords(stores, records);
      }
      const written = performance.now() - begun;

      let longest = 0;
      let last = performance.now();
      const watcher = setInterval(() => {
        const now = performance.now();
        longest = Math.max(longest, now - last);
        last = now;
      }, 1);
      const timed = async <T>(work: () => Promise<T>): Promise<[T, number]> => {
        const start = performance.now();
        return [await work(), performance.now() - start];
      };
      const range = { since: newYear, until: newYear + day };
      const [{ sums: buckets }, overTime] = await timed(() => log.sums(range, { bucket: day / 60 }));
      const [{ sums: models }, byModel] = await timed(() => log.sums(range, 'model'));
      const [, overview] = await timed(() =>
        Promise.all(
          ([{ bucket: day / 60 }, 'model', 'keyId', 'channel', 'status'] as const).map((grouping) =>
            log.sums(range, grouping),
          ),
        ),
      );
      const [page, filtered] = await timed(() =>
        log.page({ ...range, model: 'model-3', keyId: 'key_3', outcome: 'failed' }, 50),
      );
      const [, first] = await timed(() => log.page({}, 50));
      clearInterval(watcher);

      const shown = (ms: number): string => `${ms.toFixed(1)} ms`;
      console.log(
        [
          `usage log, ${count} records on SQLite: written at ${((written * 1000) / count).toFixed(1)} us each`,
          `overview ${shown(overview)} (60 buckets, models, keys, channels and statuses; 60 buckets alone ${shown(overTime)}, models alone ${shown(byModel)})`,
          `filtered page ${shown(filtered)}, first page ${shown(first)}`,
          `longest stop of the event loop ${shown(longest)}`,
        ].join('; '),
      );
      expect(buckets).toHaveLength(60);
      expect(buckets.reduce((sum, { calls }) => sum + calls, 0)).toBe(count);
      expect(models).toHaveLength(12);
      expect(models.reduce((sum, { microDollars }) => sum + microDollars, 0)).toBe(count * 1234);
      const fitting = Array.from({ length: count }, (_, index) => index).filter(
        (index) => index % 12 === 3 && index % 40 === 3 && index % 23 === 0,
      );
      expect(fitting).not.toEqual([]);
      let found = page.records.length;
      for (let { next } = page; next !== undefined;) {
        const further = await log.page(
          { ...range, model: 'model-3', keyId: 'key_3', outcome: 'failed' },
          50,
          next,
        );
        found += further.records.length;
        ({ next } = further);
      }
      expect(found).toBe(fitting.length);
    } finally {
      await stores.close();
    }
  });
});

describe.skipIf(missing !== undefined)(`on Postgres${missing === undefined ? '' : `, ${missing}`}`, () => {
  let server: TestPostgres;

  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server?.close());

  usageLogSuite(
    () => server.createDatabaseWithTables(),
    () => server.createDatabase(),
  );
});
