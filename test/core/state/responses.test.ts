import { afterAll, beforeAll, describe } from 'vitest';
import { responsesSuite } from '../../suites/responses-suite.ts';
import { startPostgres, withoutPostgres, type TestPostgres } from '../../support/postgres.ts';
import { connectionOf } from '../../support/sqlite.ts';
import { temporaryDatabase } from './support.ts';

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
    newUrl: () => server.createDatabase(),
    execute: ({ database }, sql) => {
      if (database.kind !== 'postgres') throw new Error('These stores are not on Postgres.');
      return database.query(sql, [], { patience: 10_000 });
    },
    text: (length) => `repeat('0', ${length})`,
    refuseLast: `ALTER TABLE conversation_items ADD CONSTRAINT "disk full" CHECK (item <> 'last')`,
  });
});
