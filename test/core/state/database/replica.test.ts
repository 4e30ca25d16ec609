import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { checkDatabase } from '../../../../core/state/database/index.ts';
import { openPostgres, type PostgresDatabase } from '../../../../core/state/database/postgres.ts';
import { schema } from '../../../../core/state/database/tables/index.ts';
import { startGateway } from '../../../support/gateway.ts';
import { freePort } from '../../../support/free-port.ts';
import { startPostgres, withoutPostgres, type TestPostgres } from '../../../support/postgres.ts';
import { openAt } from './_open.ts';

const missing = withoutPostgres();

describe.skipIf(missing !== undefined)(
  `a read replica${missing === undefined ? '' : ` (${missing})`}`,
  () => {
    let server: TestPostgres;
    const open = (url: string, replica: string): PostgresDatabase => openAt({ url, replica, poolSize: 3 });
    const where = 'SELECT current_database() AS name';

    beforeAll(async () => {
      server = await startPostgres();
    });
    afterAll(() => server.close());

    test('is asked for what operators read, and for nothing else', async () => {
      const [url, replica] = [await server.createDatabase(), await server.createDatabase()];
      const database = open(url, replica);
      const nameOf = (address: string): string => new URL(address).pathname.slice(1);
      expect(await database.read(where)).toEqual([{ name: nameOf(replica) }]);
      expect(await database.query(where)).toEqual([{ name: nameOf(url) }]);
      expect(await database.transaction((session) => session.query(where))).toEqual([{ name: nameOf(url) }]);
      expect(await server.run(replica, `SELECT to_regclass('keyv') AS made`)).toEqual([{ made: null }]);
    });

    test('that has no table yet, or is gone, leaves the reads to the primary', async () => {
      const database = open(await server.createDatabase(), await server.createDatabase());
      expect(await database.read('SELECT count(*) AS n FROM keyv')).toEqual([{ n: 0 }]);
      const url = await server.createDatabase();
      const gone = open(url, `postgres://tester:x@127.0.0.1:${await freePort()}/none`);
      expect(await gone.read('SELECT 1 AS one')).toEqual([{ one: 1 }]);
    });

    test('that fails is reported once, and refused by a check', async () => {
      const url = await server.createDatabase();
      const replica = `postgres://tester:x@127.0.0.1:${await freePort()}/none`;
      const reported: string[] = [];
      const database = openPostgres({ url, replica }, schema, ({ message }) => reported.push(message));
      onTestFinished(() => database.close());
      await Promise.all(Array.from({ length: 5 }, () => database.read('SELECT 1')));
      await database.read('SELECT 1');
      expect(reported).toEqual([expect.stringMatching(/read replica cannot be used.*ECONNREFUSED.*primary/)]);
      await expect(checkDatabase({ url, replica })).rejects.toThrow(
        /replica.*ECONNREFUSED.*database\.replica/,
      );
      await checkDatabase({ url, replica: await server.createDatabase() });
    });

    test('tells its connections beside those of the primary, of which there are never more than the pool has', async () => {
      const database = open(await server.createDatabase(), await server.createDatabase());
      await database.read('SELECT 1');
      const busy = Promise.all(Array.from({ length: 9 }, () => database.query('SELECT pg_sleep(0.2)')));
      let most = 0;
      let mostWaiting = 0;
      const timer = setInterval(() => {
        const [primary] = database.connections();
        most = Math.max(most, primary?.inUse ?? 0);
        mostWaiting = Math.max(mostWaiting, primary?.waiting ?? 0);
      }, 5);
      await busy;
      clearInterval(timer);
      expect(most).toBe(3);
      expect(mostWaiting).toBe(6);
      expect(database.connections()).toMatchObject([
        { server: 'primary', size: 3, inUse: 0, waiting: 0 },
        { server: 'replica', size: 3, inUse: 0, idle: 1 },
      ]);
    });

    test('and the size of the pool are settings of a gateway, whose metrics show them', async () => {
      const [url, replica] = [await server.createDatabase(), await server.createDatabase()];
      const gateway = await startGateway({ database: { url, replica, poolSize: 5 } });
      onTestFinished(() => gateway.close());
      const text = await (await fetch(`${gateway.url}/metrics`)).text();
      expect(text).toContain('sluice_database_connections_max{server="primary"} 5');
      expect(text).toMatch(/sluice_database_connections_in_use\{server="replica"\} \d/);
      expect(text).toMatch(/sluice_database_connections_idle\{server="primary"\} [0-5]/);
      expect(text).toContain('sluice_database_waiting{server="primary"}');
    });
  },
);
