/** A client that leaves while the gateway adds up its overview costs the server of the database no more work. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openDatabase } from '../../core/state/database/index.ts';
import type { PostgresDatabase } from '../../core/state/database/postgres.ts';
import { adminPassword, logIn } from '../plugins/admin/_client.ts';
import { eventually } from '../support/eventually.ts';
import { startGateway } from '../support/gateway.ts';
import { startPostgres, withoutPostgres, type TestPostgres } from '../support/postgres.ts';

const missing = withoutPostgres();

/** Number of reads of a database that wait for a lock. The gateway adds to the sums meanwhile, which waits for it, too. */
async function waitingIn(database: PostgresDatabase): Promise<number> {
  const [row] = await database.query(
    `SELECT COUNT(*)::int AS count FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE 'SELECT%'`,
  );
  return Number(row?.['count']);
}

describe.skipIf(missing !== undefined)(
  `an overview on Postgres${missing === undefined ? '' : `, ${missing}`}`,
  () => {
    let server: TestPostgres;
    beforeAll(async () => {
      server = await startPostgres();
    });
    afterAll(() => server?.close());

    test('is given up when its client leaves, also by the server', async () => {
      const url = await server.createDatabaseWithTables();
      const gateway = await startGateway({ adminPassword, database: url });
      const database = openDatabase(url) as PostgresDatabase;
      try {
        const admin = await logIn(gateway.url);
        await admin.request('overview', { query: { range: '30d' } });
        await database.transaction(async ({ query }) => {
          await query('LOCK TABLE usage_totals IN ACCESS EXCLUSIVE MODE');
          const leaving = new AbortController();
          const left = fetch(`${gateway.url}/api/admin/overview?range=7d`, {
            headers: { cookie: admin.cookie },
            signal: leaving.signal,
          }).catch((error: unknown) => error);
          await eventually(async () => (await waitingIn(database)) > 0, 5);
          leaving.abort();
          expect(await left).toMatchObject({ name: 'AbortError' });
          // The lock is held, and the statements' own timeouts are longer than this is waited for.
          await eventually(async () => (await waitingIn(database)) === 0, 5);
        });
        await admin.request('overview', { query: { range: '7d' } });
      } finally {
        await database.close();
        await gateway.close();
      }
    });
  },
);
