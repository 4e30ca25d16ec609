import { afterAll, beforeAll, describe } from 'vitest';
import { startPostgres, withoutPostgres, type TestPostgres } from '../../support/postgres.ts';
import { tasksSuite } from '../../suites/tasks-suite.ts';
import { temporaryDatabase } from '../state/support.ts';

describe('tasks on SQLite', () => {
  tasksSuite(temporaryDatabase);
});

const missing = withoutPostgres();
describe.skipIf(missing !== undefined)(`tasks on Postgres ${missing ?? ''}`, () => {
  let server: TestPostgres;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server.close());
  tasksSuite(() => server.createDatabaseWithTables());
});
