import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { maskSecrets } from '../../../../core/log.ts';
import { createApiKeys } from '../../../../core/state/api-keys/open.ts';
import { checkDatabase, openDatabase } from '../../../../core/state/database/index.ts';
import type { Step } from '../../../../core/state/database/migrations.ts';
import { operatorReads } from '../../../../core/state/database/long-reads.ts';
import type { PostgresDatabase } from '../../../../core/state/database/postgres.ts';
import { PostgresError } from '../../../../core/state/database/postgres-error.ts';
import { schema } from '../../../../core/state/database/tables/index.ts';
import { openStores, type Stores } from '../../../../core/state/stores.ts';
import { readUntil } from '../../../../core/state/waiting-reader.ts';
import { startGateway } from '../../../support/gateway.ts';
import { startPostgres, withoutPostgres, type TestPostgres } from '../../../support/postgres.ts';
import { inOtherProcess } from '../support.ts';
import { eventually } from '../../../support/eventually.ts';
import { openAt } from './_open.ts';

const missing = withoutPostgres();

describe('a URL of Postgres', () => {
  test('that cannot be read is explained without what may be a password', () => {
    for (const url of [
      'postgres://user:hunter2@',
      'postgres://user:hunter2@host:port/db',
      'postgres:hunter2@',
    ]) {
      const message = messageOf(() => openDatabase(url));
      expect(message).not.toContain('hunter2');
      if (message !== '') expect(message).toContain('Write postgres://USER:PASSWORD@HOST:5432/DATABASE');
    }
  });

  test('is shown without its password, which no log line has either', () => {
    const database = openDatabase('postgresql://user:hunter2%40home@db.internal:5433/sluice?sslmode=disable');
    expect(database.url).toBe('postgres://user:…@db.internal:5433/sluice');
    expect(maskSecrets('hunter2%40home and hunter2@home')).toBe('… and …');
  });

  test('at which nobody listens is told at once, by a start as by a check', async () => {
    const url = 'postgres://user:hunter2@127.0.0.1:1/sluice';
    const stores = openStores(url);
    onTestFinished(() => stores.close());
    const sentence =
      'The database postgres://user:…@127.0.0.1:1/sluice failed: connect ECONNREFUSED 127.0.0.1:1.';
    await expect(stores.ready()).rejects.toThrow(sentence);
    await expect(checkDatabase(url)).rejects.toThrow(sentence);
    await expect(startGateway({ database: url })).rejects.toThrow(sentence);
  });
});

describe.skipIf(missing !== undefined)(`Postgres ${missing ?? ''}`, () => {
  let server: TestPostgres;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server.close());

  async function open(steps: readonly Step[] = schema): Promise<PostgresDatabase> {
    return openAt(await server.createDatabase(), steps);
  }

  test('cancels a read that nobody waits for any more, and keeps its connection', async () => {
    const database = await open();
    const sleeping = async (): Promise<unknown> => {
      const [row] = await database.query(
        `SELECT COUNT(*)::int AS count FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' AND state = 'active' AND datname = current_database()`,
      );
      return row?.['count'];
    };
    const reader = new AbortController();
    const read = readUntil(reader.signal, () =>
      operatorReads(database)('SELECT pg_sleep(3600)', []).catch((error: unknown) => error),
    );
    await eventually(async () => (await sleeping()) === 1, 5);
    const [{ inUse, idle } = {}] = database.connections();
    reader.abort(new Error('left'));
    expect(await read).toMatchObject({ code: '57014' });
    expect(await sleeping()).toBe(0);
    expect(await operatorReads(database)('SELECT 1 AS one', [])).toEqual([{ one: 1 }]);
    expect(database.connections()).toMatchObject([
      { inUse: 0, idle: Number(inUse) + Number(idle), waiting: 0 },
    ]);
  });

  function storesAt(url: string, report?: (error: Error) => void): Stores {
    const stores = openStores(url, report);
    onTestFinished(() => stores.close());
    return stores;
  }

  describe('a statement', () => {
    test('gives rows, with whole numbers as numbers', async () => {
      const database = await open();
      const [row] = await database.query('SELECT $1::bigint AS whole, $2::text AS text, $3::text[] AS list', [
        2 ** 53 - 1,
        'a\0b',
        ['c', null],
      ]);
      expect(row).toEqual({ whole: 2 ** 53 - 1, text: 'a\uFFFDb', list: ['c', null] });
      expect(await database.query('CREATE TABLE a (b INT)')).toEqual([]);
      expect(await database.query('INSERT INTO a VALUES (1); SELECT b FROM a')).toEqual([{ b: 1 }]);
    });

    test('that adds up very many rows has neither compiler nor parallel processes', async () => {
      const database = await open();
      const settings = `SELECT current_setting('jit') AS jit, current_setting('work_mem') AS memory,
        current_setting('max_parallel_workers_per_gather')::int AS parallel, $1::int AS value`;
      const read = (value: number) => database.read(settings, [value], { isLarge: true });
      for (const value of [1, 2])
        expect(await read(value)).toEqual([{ jit: 'off', memory: '16MB', parallel: 0, value }]);
    });

    test('that is wrong is told with its code, and costs no connection', async () => {
      const database = await open();
      const [before] = await database.query('SELECT pg_backend_pid() AS pid');
      const failure = await database.query('SELECT * FROM nowhere').catch((error: unknown) => error);
      expect(failure).toBeInstanceOf(PostgresError);
      expect(failure).toMatchObject({
        code: '42P01',
        message: `The database ${database.url} failed: relation "nowhere" does not exist.`,
      });
      expect(await database.query('SELECT pg_backend_pid() AS pid')).toEqual([before]);
    });

    test('may have megabytes in both directions', async () => {
      const database = await open();
      const large = 'x'.repeat(30_000_000);
      const [row] = await database.query('SELECT $1::text AS text', [large]);
      expect(row?.['text'] === large).toBe(true);
    });

    test('waits for a free connection when there are many', async () => {
      const database = await open();
      const answers = await Promise.all(
        Array.from({ length: 100 }, (_, number) => database.query('SELECT $1::int AS n', [number])),
      );
      expect(answers.map(([row]) => row?.['n'])).toEqual(answers.map((_, number) => number));
      const [row] = await database.query(
        "SELECT count(*) AS n FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'sluice'",
      );
      expect(row?.['n']).toBeLessThanOrEqual(8);
    });
  });

  describe('a transaction', () => {
    test('is done as a whole or not at all', async () => {
      const database = await open();
      await database.query('CREATE TABLE a (b INT PRIMARY KEY)');
      const insert = (...values: number[]) =>
        database.transaction(async (session) => {
          for (const value of values) await session.query('INSERT INTO a VALUES ($1)', [value]);
          return values.length;
        });
      expect(await insert(1, 2)).toBe(2);
      await expect(insert(3, 1)).rejects.toMatchObject({ code: '23505' });
      const own = new Error('changed my mind');
      await expect(
        database.transaction(async (session) => {
          await session.query('INSERT INTO a VALUES (4)');
          throw own;
        }),
      ).rejects.toBe(own);
      expect(await database.query('SELECT b FROM a ORDER BY b')).toEqual([{ b: 1 }, { b: 2 }]);
    });

    test('whose work passes over a failure is not reported as done', async () => {
      const database = await open();
      await expect(
        database.transaction((session) => session.query('SELECT * FROM nowhere').catch(() => [])),
      ).rejects.toThrow('undid a transaction');
    });

    test('that waits for another one too long is refused while that one goes on', async () => {
      const database = openAt(await server.createDatabase('hasty'));
      await database.query('CREATE TABLE a (b INT); INSERT INTO a VALUES (1)');
      const release = Promise.withResolvers<void>();
      const holding = Promise.withResolvers<void>();
      const holder = database.transaction(async (session) => {
        await session.query('UPDATE a SET b = 2');
        holding.resolve();
        await release.promise;
      });
      await holding.promise;
      await expect(database.query('UPDATE a SET b = 3')).rejects.toMatchObject({ code: '55P03' });
      release.resolve();
      await holder;
      expect(await database.query('SELECT b FROM a')).toEqual([{ b: 2 }]);
    });
  });

  describe('the tables', () => {
    const step = (name: string, postgres: string): Step => ({ name, sqlite: '', postgres });

    test('are made once, however many gateways start at the same instant', async () => {
      const url = await server.createDatabase();
      const instant = Date.now() + 1_500;
      const names = ['one', 'two', 'three', 'four', 'five', 'six'];
      const outcomes = await Promise.all(
        names.map((name) => inOtherProcess(url, 'open-at', `${instant},${name}`)),
      );
      expect(outcomes).toEqual(names.map(() => 'opened'));
      const steps = await server.run(url, 'SELECT name FROM sluice_migrations ORDER BY applied, name');
      const additions = await server.run(url, 'SELECT name FROM sluice_additions');
      expect([...steps, ...additions].map(({ name }) => name).toSorted()).toEqual(
        schema.map(({ name }) => name).toSorted(),
      );
    });

    test('with additions of a newer version are started on by the version before, too', async () => {
      const url = await server.createDatabase();
      const before = [step('a-1', 'CREATE TABLE a (b INT)')];
      const added: Step = { ...step('a-2', 'CREATE TABLE c (d INT)'), isAddition: true };
      await openAt(url, before).ready();
      await openAt(url, [...before, added]).ready();
      await openAt(url, [...before, added]).ready();
      await openAt(url, before).ready();
      await openAt(url, before).check();
      expect(await server.run(url, 'SELECT name FROM sluice_migrations')).toEqual([{ name: 'a-1' }]);
      expect(await server.run(url, 'SELECT * FROM c')).toEqual([]);
    });

    test('grow by the steps that a new version has, and are refused by the old one from then on', async () => {
      const url = await server.createDatabase();
      const first = [step('a-1', 'CREATE TABLE a (b INT)')];
      const second = [...first, step('a-2', 'ALTER TABLE a ADD c INT; INSERT INTO a VALUES (1, 2)')];
      await openAt(url, first).ready();
      await openAt(url, second).ready();
      await openAt(url, second).ready();
      expect(await server.run(url, 'SELECT * FROM a')).toEqual([{ b: 1, c: 2 }]);
      await expect(openAt(url, first).ready()).rejects.toThrow(
        /was changed by a newer version of Sluice \(its step "a-2" is not known here\)/,
      );
      await expect(openAt(url, first).check()).rejects.toThrow(/newer version/);
    });

    test('are not half made when a step fails, and made when it does no longer', async () => {
      const url = await server.createDatabase();
      const steps = [step('a-1', 'CREATE TABLE a (b INT)'), step('a-2', 'CREATE TABLE taken (b INT)')];
      await server.run(url, 'CREATE TABLE taken (x INT)');
      const database = openAt(url, steps);
      await expect(database.query('SELECT 1')).rejects.toThrow('relation "taken" already exists');
      expect(await server.run(url, "SELECT to_regclass('a') AS a")).toEqual([{ a: null }]);
      await server.run(url, 'DROP TABLE taken');
      expect(await database.query('SELECT * FROM a')).toEqual([]);
    });

    test('are not touched by a check', async () => {
      const url = await server.createDatabase();
      await checkDatabase(url);
      expect(await server.run(url, "SELECT to_regclass('sluice_migrations') AS a")).toEqual([{ a: null }]);
    });
  });

  describe('API keys', () => {
    test('that another process makes and revokes take effect', async () => {
      const url = await server.createDatabase();
      const gateway = createApiKeys(storesAt(url));
      await gateway.load();
      gateway.startRefreshing();
      onTestFinished(() => gateway.stop());
      const others = createApiKeys(storesAt(url));
      for (let round = 0; round < 5; round += 1) {
        const { value, record } = await others.create({ name: `round ${round}` });
        expect((await gateway.lookUp(value))?.state).toBe('valid');
        await others.revoke(record.id);
        await expect.poll(() => gateway.find(value)).toBeUndefined();
      }
      const since = performance.now();
      const stores = storesAt(url);
      for (let question = 0; question < 200; question += 1) await stores.revision('api-keys');
      console.log(`asking for the revision takes ${((performance.now() - since) / 200).toFixed(2)} ms`);
    });
  });

  /** Returns the milliseconds until a promise is rejected, and the message of its error. */
  async function refusal(promise: Promise<unknown>): Promise<{ took: number; message: string }> {
    const since = performance.now();
    const error = await promise.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    expect(error).toBeInstanceOf(Error);
    return { took: performance.now() - since, message: (error as Error).message };
  }

  describe('a server that fails', () => {
    test('is not one that has answered while this process stood still', async () => {
      const database = openAt(await server.createDatabase('hasty'));
      await database.ready();
      const pending = database.query('SELECT 1 AS one FROM pg_sleep(0.2)');
      await setTimeout(50);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_500);
      expect(await pending).toEqual([{ one: 1 }]);
    });

    test('is given the time that the URL says, in seconds', async () => {
      const url = await server.createDatabase('hasty');
      const database = openAt(`${url}?answer_timeout=60`);
      const pending = database.query('SELECT 1 AS one');
      server.pause();
      try {
        await setTimeout(2_000);
      } finally {
        server.resume();
      }
      expect(await pending).toEqual([{ one: 1 }]);
      expect(() => openAt(`${url}?answer_timeout=soon`)).toThrow('answer_timeout');
    });

    test('hanging: whoever asks is told while it hangs, and all goes on when it is back', async () => {
      const url = await server.createDatabase('hasty');
      const database = openAt(url);
      const stores = storesAt(url);
      const things = stores.namespace<string>('things');
      // A busy machine may take longer than an operator's patience by default, before and after.
      await eventually(() => things.set('a', 'before'));
      await eventually(() =>
        Promise.all(Array.from({ length: 6 }, () => database.query('SELECT pg_sleep(0.05)'))),
      );
      server.pause();
      try {
        const refused = await Promise.all([
          // On connections that are open, on new ones, and on more than there are.
          ...Array.from({ length: 20 }, () => refusal(database.query('SELECT 1'))),
          refusal(database.transaction((session) => session.query('SELECT 1'))),
          refusal(things.get('a')),
          refusal(things.set('a', 'meanwhile')),
          refusal(stores.revision('things')),
          refusal(stores.health()),
          refusal(openAt(url).ready()),
        ]);
        console.log(`refused after at most ${Math.max(...refused.map(({ took }) => took)).toFixed(0)} ms`);
        for (const { message } of refused) {
          expect(message).toMatch(
            /^The database postgres:\/\/tester:…@127\.0\.0\.1:\d+\/test_\d+ does not answer in time\.$/,
          );
        }
      } finally {
        server.resume();
      }
      await eventually(async () => expect(await things.get('a')).toBeDefined());
      await eventually(async () => expect(await database.query('SELECT 1 AS one')).toEqual([{ one: 1 }]));
    });

    test('killed in the middle of a transaction: nothing is half done, and all goes on after its start', async () => {
      const database = await open();
      await database.query('CREATE TABLE a (b INT)');
      const uncaught = vi.fn<(error: unknown) => void>();
      process.on('uncaughtException', uncaught);
      onTestFinished(() => void process.off('uncaughtException', uncaught));
      const inside = Promise.withResolvers<void>();
      const broken = database.transaction(async (session) => {
        await session.query('INSERT INTO a VALUES (1)');
        inside.resolve();
        await setTimeout(300);
        await session.query('INSERT INTO a VALUES (2)');
      });
      const outcome = refusal(broken);
      await inside.promise;
      await server.kill();
      try {
        expect((await outcome).message).toMatch(/^The database .* failed: /);
        const refused = await refusal(database.query('SELECT 1'));
        expect(refused.message).toContain('ECONNREFUSED');
      } finally {
        await server.start();
      }
      expect(await database.query('SELECT * FROM a')).toEqual([]);
      expect(uncaught).not.toHaveBeenCalled();
    });

    test('read-only: questions are answered, writes refused with the reason, and health says so', async () => {
      const url = await server.createDatabase();
      const before = storesAt(url);
      await before.namespace('things').set('a', 1);
      await before.health();
      await server.run(
        url,
        `ALTER DATABASE ${new URL(url).pathname.slice(1)} SET default_transaction_read_only = on`,
      );
      const stores = storesAt(url);
      await stores.ready();
      expect(await stores.namespace('things').get('a')).toBe(1);
      await expect(stores.namespace('things').set('a', 2)).rejects.toThrow(
        'cannot execute INSERT in a read-only transaction',
      );
      await expect(stores.health()).rejects.toThrow('read-only');
    });

    test('the gateway lives on: keys in memory work, readiness says what is wrong, and it ends in time', async () => {
      const gateway = await startGateway({ database: await server.createDatabase('hasty') });
      const ready = async () =>
        (await fetch(`${gateway.url}/readyz`)).json() as Promise<Record<string, unknown>>;
      const models = () =>
        fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${gateway.key}` } });
      expect(await ready()).toMatchObject({ status: 'ready', database: 'ok' });
      expect((await models()).status).toBe(200);
      server.pause();
      try {
        // What was asked a moment ago counts for a second.
        await setTimeout(1_000);
        expect(await ready()).toMatchObject({ status: 'not ready', database: 'failed' });
        expect((await models()).status).toBe(200);
      } finally {
        server.resume();
      }
      await eventually(async () => expect(await ready()).toMatchObject({ status: 'ready' }), 200);
      await server.kill();
      try {
        await gateway.close();
      } finally {
        await server.start();
      }
    });
  });
});

function messageOf(work: () => unknown): string {
  try {
    work();
    return '';
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
