import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { checkDatabase, openDatabase } from '../../../../core/state/database/index.ts';
import { tlsWays } from '../../../../core/state/database/postgres-tls.ts';
import { makeAuthority, withoutOpenssl, type Authority } from '../../../support/certificates.ts';
import { startPostgres, withoutPostgres, type TestPostgres } from '../../../support/postgres.ts';

const ways = (query: string) => tlsWays(`postgres://u:p@host/db?${query}`, 'masked');

describe('sslmode', () => {
  test('tries plain and TLS in the order of libpq, and verifies where libpq does', () => {
    const [secure] = ways('sslmode=require');
    expect(secure).toMatchObject({ rejectUnauthorized: false });
    expect(ways('sslmode=disable')).toEqual([false]);
    expect(ways('sslmode=allow').map((way) => way === false)).toEqual([true, false]);
    expect(ways('').map((way) => way === false)).toEqual([false, true]);
    expect(ways('sslmode=verify-ca')).toMatchObject([{ rejectUnauthorized: true }]);
    expect(ways('sslmode=verify-full')).toEqual([{ rejectUnauthorized: true }]);
    expect(ways('sslrootcert=system')).toEqual([{ rejectUnauthorized: true }]);
    expect(tlsWays('postgres://u@h/db?host=/run/postgresql&sslmode=require', '')).toEqual([false]);
  });

  test('that is unknown, a file that is not there and a weak mode for public authorities are refused', () => {
    expect(() => ways('sslmode=on')).toThrow(
      'none of disable, allow, prefer, require, verify-ca, verify-full',
    );
    expect(() => ways('sslmode=verify-ca&sslrootcert=/nowhere.pem')).toThrow(/sslrootcert .*cannot be read/);
    expect(() => ways('sslmode=require&sslrootcert=system')).toThrow(/sslmode=verify-full/);
  });
});

const missing = withoutPostgres() ?? withoutOpenssl();

describe.skipIf(missing !== undefined)(
  `PostgreSQL with TLS${missing === undefined ? '' : ` (${missing})`}`,
  () => {
    let server: TestPostgres;
    let authority: Authority;
    let other: Authority;
    let url: string;
    const at = (query: string, host = 'localhost'): string =>
      `${url.replace('127.0.0.1', host)}${url.includes('?') ? '&' : '?'}${query}`;
    const isEncrypted = async (query: string, host?: string): Promise<unknown> => {
      const database = openDatabase(at(query, host));
      if (database.kind !== 'postgres') throw new Error('This is another kind.');
      onTestFinished(() => database.close());
      const [row] = await database.query(
        'SELECT ssl, client_dn FROM pg_stat_ssl WHERE pid = pg_backend_pid()',
      );
      return row?.['client_dn'] ?? row?.['ssl'];
    };

    beforeAll(async () => {
      authority = makeAuthority();
      other = makeAuthority();
      const { cert, key } = authority.issue('localhost');
      server = await startPostgres({
        tls: { cert, key, ca: authority.cert },
        access: [
          'hostssl all certified 127.0.0.1/32 cert',
          'hostnossl all only_tls 127.0.0.1/32 reject',
          'host all all 127.0.0.1/32 scram-sha-256',
          '',
        ].join('\n'),
      });
      url = await server.createDatabase();
    });
    afterAll(() => server.close());

    test('is encrypted as sslmode says', async () => {
      expect(await isEncrypted('sslmode=disable')).toBe(false);
      expect(await isEncrypted('sslmode=allow')).toBe(false);
      expect(await isEncrypted('sslmode=prefer')).toBe(true);
      expect(await isEncrypted('')).toBe(true);
      expect(await isEncrypted('sslmode=require')).toBe(true);
    });

    test('is verified by its own authority: verify-ca by any name, verify-full by the right one', async () => {
      const root = `sslrootcert=${authority.certFile}`;
      expect(await isEncrypted(`sslmode=verify-full&${root}`)).toBe(true);
      expect(await isEncrypted(`sslmode=verify-ca&${root}`, '127.0.0.1')).toBe(true);
      expect(await isEncrypted(`sslmode=require&${root}`, '127.0.0.1')).toBe(true);
      await expect(checkDatabase(at(`sslmode=verify-full&${root}`, '127.0.0.1'))).rejects.toThrow(
        /altnames|sslmode/,
      );
    });

    test('another authority is refused with what to do, and require with a file is no weaker than verify-ca', async () => {
      const wrong = `sslrootcert=${other.certFile}`;
      await expect(checkDatabase(at('sslmode=verify-full'))).rejects.toThrow(/sslrootcert/);
      await expect(checkDatabase(at(`sslmode=verify-ca&${wrong}`))).rejects.toThrow(/sslrootcert/);
      await expect(checkDatabase(at(`sslmode=require&${wrong}`))).rejects.toThrow(/sslrootcert/);
      expect(await isEncrypted(`sslmode=prefer&${wrong}`)).toBe(false);
    });

    test('a certificate of the gateway takes the place of a password', async () => {
      await server.run(url, 'CREATE ROLE certified LOGIN SUPERUSER');
      const { certFile, keyFile } = authority.issue('certified');
      const own = url.replace(/\/\/.*@/, '//certified@');
      const files = `sslmode=verify-full&sslrootcert=${authority.certFile}&sslcert=${certFile}&sslkey=${keyFile}`;
      const database = openDatabase(
        `${own.replace('127.0.0.1', 'localhost')}${own.includes('?') ? '&' : '?'}${files}`,
      );
      if (database.kind !== 'postgres') throw new Error('This is another kind.');
      onTestFinished(() => database.close());
      expect(await database.query('SELECT current_user AS name')).toEqual([{ name: 'certified' }]);
    });

    test('a server that speaks TLS no longer is connected to anew, once, by many calls that fail together', async () => {
      const own = await server.createDatabase();
      const database = openDatabase(`${own}${own.includes('?') ? '&' : '?'}sslmode=prefer`);
      if (database.kind !== 'postgres') throw new Error('This is another kind.');
      onTestFinished(() => database.close());
      await database.ready();
      await server.run(own, 'ALTER SYSTEM SET ssl = off');
      onTestFinished(async () => {
        await server.run(own, 'ALTER SYSTEM RESET ssl');
        await server.kill();
        await server.start();
      });
      await server.kill();
      await server.start();
      const query = (): Promise<unknown> => database.query('SELECT pg_sleep(0.2)');
      const outcomes = await Promise.allSettled(Array.from({ length: 8 }, () => query().catch(query)));
      expect(outcomes.filter(({ status }) => status === 'rejected')).toEqual([]);
      await Promise.all(Array.from({ length: 8 }, query));
      const [row] = await server.run(
        own,
        "SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'sluice'",
      );
      expect(row?.['n']).toBeLessThanOrEqual(8);
    });

    test('a server that takes some users with TLS alone is reached by allow', async () => {
      await server.run(url, `CREATE ROLE only_tls LOGIN SUPERUSER PASSWORD 'x'`);
      const own = url.replace(/\/\/.*@/, '//only_tls:x@');
      const database = openDatabase(`${own}${own.includes('?') ? '&' : '?'}sslmode=allow`);
      if (database.kind !== 'postgres') throw new Error('This is another kind.');
      onTestFinished(() => database.close());
      const [row] = await database.query('SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()');
      expect(row?.['ssl']).toBe(true);
    });
  },
);

describe.skipIf(missing !== undefined)('PostgreSQL without TLS', () => {
  test('is reached by prefer, and refused by require', async () => {
    const server = await startPostgres();
    onTestFinished(() => server.close());
    const url = await server.createDatabase();
    await checkDatabase(url);
    await expect(checkDatabase(`${url}&sslmode=require`)).rejects.toThrow(/does not support SSL/);
  });
});
