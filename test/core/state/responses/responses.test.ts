import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openResponseStore } from '../../../../core/state/responses/open.ts';
import { openStores } from '../../../../core/state/stores.ts';
import { responsesSuite } from '../../../suites/responses-suite.ts';
import { startPostgres, withoutPostgres, type TestPostgres } from '../../../support/postgres.ts';
import { connectionOf } from '../../../support/sqlite.ts';
import { temporaryDatabase } from '../support.ts';
import { eventually } from '../../../support/eventually.ts';

const now = Math.floor(Date.now() / 1000);

describe('responses on SQLite', () => {
  responsesSuite({
    newUrl: () => Promise.resolve(temporaryDatabase()),
    execute: (stores, sql) => Promise.resolve(connectionOf(stores).prepare(sql).all()),
    text: (length) => `hex(zeroblob(${length / 2}))`,
    refuseLast: `CREATE TRIGGER full BEFORE INSERT ON conversation_items WHEN NEW.item = 'last'
      BEGIN SELECT RAISE(ABORT, 'disk full'); END`,
  });
});

const missing = withoutPostgres();
describe.skipIf(missing !== undefined)(`responses on Postgres ${missing ?? ''}`, () => {
  let server: TestPostgres;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server.close());

  responsesSuite({
    newUrl: () => server.createDatabaseWithTables(),
    execute: ({ database }, sql) => {
      if (database.kind !== 'postgres') throw new Error('These stores are not on Postgres.');
      return database.query(sql, [], { patience: 10_000 });
    },
    text: (length) => `repeat('0', ${length})`,
    refuseLast: `ALTER TABLE conversation_items ADD CONSTRAINT "disk full" CHECK (item <> 'last')`,
  });

  test('a chain is found by the keys of its turns, also where nothing is known of the tables yet', async () => {
    const url = await server.createDatabase();
    const stores = openStores(url);
    const store = openResponseStore(stores);
    const common = { owner: 'alice', createdAt: now, expiresAt: now + 1000, response: {}, input: [] };
    await store.save({ ...common, id: 't0' });
    await server.run(url, 'ALTER TABLE responses SET (autovacuum_enabled = false)');
    for (let number = 1; number < 300; number += 1)
      await store.save({ ...common, id: `t${number}`, previous: `t${number - 1}` });
    const read = async () => {
      const [row] = await server.run(
        url,
        "SELECT sum(idx_tup_read) AS read FROM pg_stat_user_indexes WHERE relname = 'responses'",
      );
      return Number(row?.['read']);
    };
    expect(await store.chain('alice', 't299')).toHaveLength(300);
    // A connection tells what it has done when it ends. The turns are read twenty at a time, each time perhaps all of the owner's.
    await stores.close();
    await eventually(async () => expect(await read()).toBeGreaterThanOrEqual(300));
    expect(await read()).toBeLessThan(10_000);
  });
});
