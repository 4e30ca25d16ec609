import { describe, expect, test } from 'vitest';
import { startPostgres, withoutPostgres } from '../support/postgres.ts';
import { race } from './run.ts';

const nothing = { overshoot: 0, unsettled: 0, unrecorded: 0 };
const missing = withoutPostgres();

describe('gateways on one database, against one budget, one of them killed', () => {
  test('spend what is recorded and no more, on SQLite', async () => {
    expect(await race({ gateways: 2, calls: 40 })).toEqual(nothing);
  });

  test.skipIf(missing !== undefined)(
    `spend what is recorded and no more, on Postgres${missing === undefined ? '' : `, ${missing}`}`,
    async () => {
      const postgres = await startPostgres();
      try {
        const database = await postgres.createDatabase();
        expect(await race({ gateways: 2, calls: 40, database })).toEqual(nothing);
      } finally {
        await postgres.close();
      }
    },
  );
});
