import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { startLedgerPruning } from '../../../core/money/ledger/pruning.ts';
import { rows, sqlOf } from '../../../core/state/database/sql.ts';
import { openStores } from '../../../core/state/stores.ts';
import { Upkeep } from '../../../core/state/upkeep.ts';
import { startPostgres, withoutPostgres, type TestPostgres } from '../../support/postgres.ts';
import { temporaryDatabase } from '../state/support.ts';

const missing = withoutPostgres();
const day = 86_400_000;

/** What keys spent on days long past goes; what budgets count stays. `url` gives an empty database. */
function suite(url: () => string | Promise<string>): void {
  test('old days and months of every key go, the others and the totals stay', async () => {
    const stores = openStores(await url());
    onTestFinished(() => stores.close());
    await stores.ready();
    const { run } = sqlOf(stores.database);
    const now = Date.now();
    // More keys than one step looks at.
    const keys = Array.from({ length: 250 }, (_, index) => `key_${String(index).padStart(3, '0')}`);
    const values = keys.flatMap((key) =>
      [
        ['day', now - 90 * day],
        ['day', now - day],
        ['month', now - 500 * day],
        ['month', now - 90 * day],
        ['total', 0],
      ].map(([period, since]) => `('${key}', '${period}', ${since}, 5, 7)`),
    );
    await run(() =>
      rows(
        `INSERT INTO ledger_spent (key_id, period, since, micro_dollars, tokens) VALUES ${values.join(', ')}`,
      ),
    );
    await run(() =>
      rows(
        `INSERT INTO ledger_end_users (scope, until, holder) VALUES ('key_000', ${now - 2 * day}, 'usr_old'), ('key_000', ${now + day}, 'usr_new')`,
      ),
    );
    const upkeep = new Upkeep();
    const failures: unknown[] = [];
    const stop = startLedgerPruning(stores.database, upkeep, (error) => failures.push(error));
    onTestFinished(stop);
    await expect
      .poll(async () => {
        const [row] = await run(() => rows('SELECT COUNT(*) AS count FROM ledger_spent'));
        return Number(row?.['count']);
      })
      .toBe(3 * keys.length);
    const left = await run(() =>
      rows("SELECT DISTINCT period, since FROM ledger_spent WHERE key_id = 'key_249' ORDER BY period, since"),
    );
    expect(left).toMatchObject([
      { period: 'day', since: now - day },
      { period: 'month', since: now - 90 * day },
      { period: 'total', since: 0 },
    ]);
    await expect
      .poll(() => run(() => rows('SELECT holder FROM ledger_end_users')))
      .toMatchObject([{ holder: 'usr_new' }]);
    expect(upkeep.all()).toMatchObject([{ what: 'spending', overdueSeconds: 0 }]);
    expect(failures).toEqual([]);
  });
}

describe('spending on SQLite', () => {
  suite(temporaryDatabase);
});

describe.skipIf(missing !== undefined)(
  `spending on Postgres${missing === undefined ? '' : `, ${missing}`}`,
  () => {
    let server: TestPostgres;
    beforeAll(async () => {
      server = await startPostgres();
    });
    afterAll(() => server?.close());
    suite(() => server.createDatabaseWithTables());
  },
);
