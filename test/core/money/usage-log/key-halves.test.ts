/** Sums by keys are the same whether one statement adds up all keys, or each half of them has its own. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { UsageFilter, UsageLog, UsageSumsOptions } from '../../../../core/money/usage-log/index.ts';
import { openUsageLog } from '../../../../core/money/usage-log/open.ts';
import { createSums } from '../../../../core/money/usage-log/sums.ts';
import { largeReads, operatorReads } from '../../../../core/state/database/long-reads.ts';
import { openStores, type Stores } from '../../../../core/state/stores.ts';
import { startPostgres, withoutPostgres, type TestPostgres } from '../../../support/postgres.ts';
import { insertRecords, usageRecord } from '../../../suites/usage-log-suite.ts';

const missing = withoutPostgres();
const hour = 3_600_000;
const day = 24 * hour;
const start = Math.floor(Date.now() / day) * day - 40 * day;

const questions: readonly (UsageFilter & UsageSumsOptions)[] = [
  { limit: 5 },
  { limit: 5, order: 'calls' },
  { limit: 5_000 },
  { limit: 5, since: start + 10 * hour, until: start + 20 * day + 90_000 },
  { limit: 5, model: 'model-1' },
  { limit: 5, outcome: 'failed' },
  { limit: 5, keyId: 'key_08' },
  { limit: 5, rest: false, order: 'calls' },
];

describe.skipIf(missing !== undefined)(
  `sums by keys on Postgres${missing === undefined ? '' : `, ${missing}`}`,
  () => {
    let server: TestPostgres;
    let stores: Stores;
    let whole: UsageLog['sums'];
    let inHalves: UsageLog['sums'];

    beforeAll(async () => {
      server = await startPostgres();
      stores = openStores(await server.createDatabaseWithTables());
      const records = Array.from({ length: 400 }, (_, index) =>
        usageRecord(`req_${String(index).padStart(6, '0')}`, {
          at: start + index * 2 * hour + (index % 60) * 60_000,
          keyId: `key_${String((index * index) % 23).padStart(2, '0')}`,
          model: `model-${index % 3}`,
          status: index % 11 === 0 ? 502 : 200,
          input: index,
          output: 1,
          microDollars: (index * 37) % 1_000,
          ...(index % 4 === 0 ? { chargedMicroDollars: index * 2 } : {}),
        }),
      );
      const log = openUsageLog(stores, { fold: 1 });
      await insertRecords(stores, records.slice(0, 380));
      // oxlint-disable-next-line no-await-in-loop -- one step after the other
      while (await log.addToSums());
      // These wait to be added, and some of their keys have no number.
      await insertRecords(
        stores,
        records
          .slice(380)
          .map((one, index) => (index % 2 === 0 ? one : { ...one, keyId: `key_new_${index}` })),
      );
      const { database } = stores;
      const ofKeys = (halvesFrom: number): UsageLog['sums'] =>
        createSums(operatorReads(database), largeReads(database), database.kind, { halvesFrom });
      whole = ofKeys(Infinity);
      inHalves = ofKeys(1);
    });
    afterAll(async () => {
      await stores?.close();
      await server?.close();
    });

    test.each(questions)('are the same in halves: %j', async ({ limit, order, rest, ...filter }) => {
      const options = {
        ...(limit === undefined ? {} : { limit }),
        ...(order === undefined ? {} : { order }),
        ...(rest === undefined ? {} : { rest }),
      };
      const expected = await whole(filter, 'keyId', options);
      expect(expected.sums.length).toBeGreaterThan(0);
      expect(await inHalves(filter, 'keyId', options)).toEqual(expected);
    });
  },
);
