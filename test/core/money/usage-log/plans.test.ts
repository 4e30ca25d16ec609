/** Lists read few records, however many there are. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { UsageFilter, UsageLog } from '../../../../core/money/usage-log/index.ts';
import { openUsageLog } from '../../../../core/money/usage-log/open.ts';
import { lackingIndexes } from '../../../../core/money/usage-log/partition-indexes.ts';
import { makePartitions } from '../../../../core/money/usage-log/partitions.ts';
import { openStores, type Stores } from '../../../../core/state/stores.ts';
import { explain } from '../../../ages/plans.ts';
import { startPostgres, withoutPostgres, type TestPostgres } from '../../../support/postgres.ts';
import { insertRecords, usageRecord } from '../../../suites/usage-log-suite.ts';

const hour = 3_600_000;
const count = 12_000;
/** Two days ago, at the beginning of a day. */
const since = Math.floor(Date.now() / (24 * hour)) * 24 * hour - 48 * hour;

/** Calls of a day, of which a few are rare in each respect. */
async function fill(stores: Stores): Promise<void> {
  const { database } = stores;
  if (database.kind === 'postgres') {
    await makePartitions(database, 30, since - 72 * hour);
    await makePartitions(database, 30);
  }
  for (let from = 0; from < count; from += 2_000)
    await insertRecords(
      stores,
      Array.from({ length: 2_000 }, (_, offset) => {
        const index = from + offset;
        const isRare = index % 3_000 === 7;
        const isOfTeam = index % 6_000 === 11;
        // In 20 hours, each of which has 500 calls.
        const isSeldom = index % 600 === 13;
        return usageRecord(`r${String(index).padStart(6, '0')}`, {
          at: since + index * 7_000,
          keyId: isRare ? 'rare' : isOfTeam ? 'small' : isSeldom ? 'of a small one' : 'busy',
          model: isRare ? 'seldom' : 'common',
          channel: 'first',
          ...(isOfTeam && { team: 'small' }),
          ...(isSeldom && { organisation: 'small' }),
          tags: ['all', isSeldom ? 'seldom' : `tag ${index % 7}`],
          endUser: isSeldom ? 'seldom' : `user ${index % 3_001}`,
          status: index % 4_000 === 9 ? 418 : index % 100 === 0 ? 500 : 200,
          ms: index % 2_000 === 5 ? 90_000 + index : 1_000 + (index % 5_000),
          microDollars: index % 2_000 === 6 ? 900_000 + index : index % 700,
        });
      }),
    );
  // Most end users of an hour have no sums of their own.
  const log = openUsageLog(stores, { subjects: { tenant: 20, all: 20, leastOfTenant: 2 } });
  while (await log.addToSums());
}

type List = (log: UsageLog) => Promise<{ readonly records: readonly unknown[] }>;
const page =
  (filter: UsageFilter): List =>
  (log) =>
    log.page(filter, 20);

/** Lists, and how many records they have. */
const lists: readonly (readonly [name: string, list: List, records: number])[] = [
  ['a model with few calls', page({ model: 'seldom' }), 4],
  ['a model of which a part is named', page({ modelPart: 'SELD' }), 4],
  ['a model without calls', page({ model: 'nothing' }), 0],
  ['a team with few calls, of a model with many', page({ team: 'small', model: 'common' }), 2],
  ['an end user with few calls', page({ endUser: 'seldom' }), 20],
  ['an end user without calls', page({ endUser: 'nobody' }), 0],
  ['a tag with few calls', page({ tag: 'seldom' }), 20],
  ['a tag without calls', page({ tag: 'nothing' }), 0],
  ['a tag with few calls, of a model with many', page({ tag: 'seldom', model: 'common' }), 20],
  ['an organisation with few calls', page({ organisation: 'small' }), 20],
  ['a tag that all calls have', page({ tag: 'all' }), 20],
  ['a status with few calls', page({ status: 418 }), 3],
  ['a status with few calls, of a busy key', page({ status: 418, keyId: 'busy' }), 3],
  ['long calls', page({ minMs: 90_000 }), 6],
  ['long calls of a channel', page({ minMs: 90_000, channel: 'first' }), 6],
  ['expensive calls', page({ minMicroDollars: 900_000 }), 6],
  ['calls in a narrow range of cost', page({ minMicroDollars: 901_000, maxMicroDollars: 905_000 }), 2],
  ['the longest', (log) => log.largest({}, 'ms', 6), 6],
  ['the most expensive', (log) => log.largest({}, 'microDollars', 6), 6],
  ['the longest of a rare model', (log) => log.largest({ model: 'seldom' }, 'ms', 20), 4],
  ['the longest of a rare end user', (log) => log.largest({ endUser: 'seldom' }, 'ms', 20), 20],
  ['the longest of a rare tag', (log) => log.largest({ tag: 'seldom' }, 'ms', 20), 20],
  ['the longest of a small organisation', (log) => log.largest({ organisation: 'small' }, 'ms', 20), 20],
];

/** Runs a list and returns the statements about records that it made. */
async function statementsOf(
  stores: Stores,
  list: List,
  records: number,
): Promise<readonly (readonly [sql: string, values: readonly (string | number)[]])[]> {
  const { database } = stores;
  const made: [string, readonly (string | number)[]][] = [];
  const { read } = database;
  const noting = (sql: string, values: readonly never[] = [], ...more: readonly never[]) => {
    if (sql.includes('usage_records') || sql.includes('usage_calls')) made.push([sql, values]);
    return (read as (...given: readonly unknown[]) => never)(sql, values, ...more);
  };
  Object.assign(database, { read: noting });
  try {
    const found = await list(openUsageLog(stores, { slices: 4 }));
    expect(found.records).toHaveLength(records);
    expect(found).not.toHaveProperty('searchedSince');
  } finally {
    Object.assign(database, { read });
  }
  expect(made.length).toBeLessThan(12);
  return made;
}

describe('in an SQLite file', () => {
  let stores: Stores;
  let folder: string;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-test-'));
    stores = openStores(`sqlite:${join(folder, 'sluice.db')}`);
    await fill(stores);
  });
  afterAll(async () => {
    await stores?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  test.each(lists)('%s are found by an index', async (_name, list, records) => {
    const { database } = stores;
    for (const [sql, values] of await statementsOf(stores, list, records)) {
      const plan = await database.read(`EXPLAIN QUERY PLAN ${sql}`, values as never);
      const looks = (plan as readonly { readonly detail: string }[])
        .map(({ detail }) => detail)
        .filter((detail) => /usage_records|\br\b/.test(detail));
      expect(looks).not.toEqual([]);
      for (const look of looks)
        expect(look).toMatch(
          /USING (?:COVERING )?INDEX usage_records_(?:kind|failures|ms|micro_dollars|id \(id=)|PRIMARY KEY \((?:at=\? AND id=\?|at>\? AND at<\?)\)/,
        );
    }
  });
});

const missing = withoutPostgres();
describe.skipIf(missing !== undefined)(`in PostgreSQL${missing === undefined ? '' : `, ${missing}`}`, () => {
  let server: TestPostgres;
  let stores: Stores;
  beforeAll(async () => {
    server = await startPostgres();
    stores = openStores(await server.createDatabase());
    await fill(stores);
    if (stores.database.kind === 'postgres') await stores.database.query('ANALYZE', [], { patience: 60_000 });
  });
  afterAll(async () => {
    await stores?.close();
    await server?.close();
  });

  test.each(lists)('%s read few rows', async (_name, list, records) => {
    const { database } = stores;
    if (database.kind !== 'postgres') throw new Error('This test needs PostgreSQL.');
    const all = await statementsOf(stores, list, records);
    let rows = 0;
    for (const [sql, values] of all) {
      // Small tables are read as a whole otherwise.
      const found = await explain(
        database,
        sql.replaceAll(/\$\d+/g, '?'),
        values,
        'SET LOCAL enable_seqscan = off',
      );
      rows += found.rows;
    }
    // Entries are counted up to 1,250, of each index that may serve.
    expect(rows).toBeLessThan(6_000);
  });
});

test.skipIf(missing !== undefined)(
  'partitions of an older version get their indexes, and lists do without until then',
  async () => {
    const server = await startPostgres();
    onTestFinished(() => server.close());
    const stores = openStores(await server.createDatabase());
    onTestFinished(() => stores.close());
    await fill(stores);
    const { database } = stores;
    if (database.kind !== 'postgres') throw new Error('This test needs PostgreSQL.');
    const day = new Date(since).toISOString().slice(0, 10).replaceAll('-', '');
    await database.query(`DROP INDEX usage_records_${day}_3, usage_records_${day}_5`);
    for (const { pages } of await database.query(lackingIndexes)) expect(Number(pages)).toBeGreaterThan(50);
    const ids = async (): Promise<unknown> =>
      (await openUsageLog(stores).page({ model: 'seldom' }, 9)).records.map(({ id }) => id);
    const before = await ids();
    expect(before).toHaveLength(4);
    expect((await openUsageLog(stores, { slices: 4 }).largest({}, 'ms', 3)).comparedSince).toBeGreaterThan(
      since,
    );
    await makePartitions(database, 30);
    expect(await ids()).toEqual(before);
    expect(await openUsageLog(stores, { slices: 4 }).largest({}, 'ms', 3)).not.toHaveProperty(
      'comparedSince',
    );
  },
);
