import { afterAll, beforeAll, describe } from 'vitest';
import { providerObjectsSuite } from '../../suites/provider-objects-suite.ts';
import { startPostgres, withoutPostgres, type TestPostgres } from '../../support/postgres.ts';
import { temporaryDatabase } from '../state/support.ts';

describe('objects of providers on SQLite', () => {
  providerObjectsSuite(temporaryDatabase);
});

const missing = withoutPostgres();
describe.skipIf(missing !== undefined)(`objects of providers on Postgres ${missing ?? ''}`, () => {
  let server: TestPostgres;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server.close());
  providerObjectsSuite(() => server.createDatabaseWithTables());
});
