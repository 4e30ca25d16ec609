import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { openPostgres } from '../../../../core/state/database/postgres.ts';
import { changesSince } from '../../../../core/state/keyv/changes.ts';
import {
  deleteExpiredInPostgres,
  PostgresKeyv,
  revisionInPostgres,
} from '../../../../core/state/keyv/postgres.ts';
import { schema } from '../../../../core/state/database/tables/index.ts';
import { keyvSuite } from '../../../suites/keyv-suite.ts';
import { startPostgres, withoutPostgres, type TestPostgres } from '../../../support/postgres.ts';

const missing = withoutPostgres();
describe.skipIf(missing !== undefined)(`Keyv on Postgres ${missing ?? ''}`, () => {
  let server: TestPostgres;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server.close());

  keyvSuite(async () => {
    const database = openPostgres(await server.createDatabase(), schema);
    return {
      adapter: () => new PostgresKeyv(database),
      revisionOf: (namespace) => revisionInPostgres(database, namespace),
      changesSince: (namespace, revision) => changesSince(database, namespace, revision),
      deleteExpired: (limit) => deleteExpiredInPostgres(database, limit),
      rows: async () => Number((await database.query('SELECT count(*) AS n FROM keyv'))[0]?.['n']),
      close: () => database.close(),
    };
  });

  test('what Postgres cannot hold does no harm', async () => {
    const database = openPostgres(await server.createDatabase(), schema);
    onTestFinished(() => database.close());
    const store = new PostgresKeyv(database);
    for (const key of ['null\0byte', 'half of a \uD83D']) {
      await store.set(key, '"a"');
      expect([await store.get(key), await store.has(key)]).toEqual(['"a"', true]);
    }
    expect(await store.get('null')).toBeUndefined();
  });

  test('many gateways may write the same entries and remove expired ones at once', async () => {
    const url = await server.createDatabase();
    const gateways = Array.from({ length: 4 }, () => openPostgres(url, schema));
    onTestFinished(async () => void (await Promise.all(gateways.map((one) => one.close()))));
    await Promise.all(gateways.map((one) => revisionInPostgres(one, 'shared')));
    await Promise.all(
      gateways.flatMap((database, who) => {
        const store = new PostgresKeyv(database);
        store.namespace = 'shared';
        return Array.from({ length: 20 }, async (_, round) => {
          // In another order each time, as a Map of another history would have them.
          const keys = Array.from({ length: 20 }, (__, at) => `key-${(at * 7 + round + who) % 20}`);
          await store.setMany(
            keys.map((key) => ({ key, value: `${who}`, ttl: round % 2 === 0 ? -1 : 60_000 })),
          );
          await deleteExpiredInPostgres(database, 10);
        });
      }),
    );
    const [database] = gateways;
    expect(await database?.query('SELECT revision >= 80 AS counted FROM keyv_revisions')).toEqual([
      { counted: true },
    ]);
  });
});
