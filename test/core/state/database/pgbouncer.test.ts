import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { PostgresDatabase } from '../../../../core/state/database/postgres.ts';
import { openStores } from '../../../../core/state/stores.ts';
import { patience } from '../../../support/patience.ts';
import { startGateway } from '../../../support/gateway.ts';
import { startPgBouncer, withoutPgBouncer, type TestPgBouncer } from '../../../support/pgbouncer.ts';
import { startPostgres, withoutPostgres, type TestPostgres } from '../../../support/postgres.ts';
import { openAt } from './_open.ts';

const missing = withoutPostgres() ?? withoutPgBouncer();
/** In milliseconds. */
const timeouts = ['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout']
  .map((name) => `(SELECT setting::int FROM pg_settings WHERE name = '${name}') AS ${name}`)
  .join(', ');
const statement = `SELECT ${timeouts}`;
const expected = {
  statement_timeout: Math.max(10_000, 2 * patience.wait),
  lock_timeout: Math.floor(0.9 * patience.wait),
  idle_in_transaction_session_timeout: Math.max(2_000, 2 * patience.wait),
};

describe.skipIf(missing !== undefined).each([
  ['', []],
  [
    ' that passes timeouts over',
    ['ignore_startup_parameters = statement_timeout,lock_timeout,idle_in_transaction_session_timeout'],
  ],
])(`PgBouncer in transaction mode%s${missing === undefined ? '' : ` (${missing})`}`, (_title, lines) => {
  let server: TestPostgres;
  let bouncer: TestPgBouncer;
  const newUrl = async (): Promise<string> => bouncer.through(await server.createDatabase());
  const open = async (query?: string): Promise<PostgresDatabase> => {
    const url = await newUrl();
    return openAt(query === undefined ? url : url.replace(/\?.*/, `?${query}`));
  };

  beforeAll(async () => {
    server = await startPostgres();
    bouncer = await startPgBouncer((await server.createDatabase()).replace(/\?.*/, ''), ...lines);
  });
  afterAll(async () => {
    await bouncer?.close();
    await server?.close();
  });

  test('is noticed, and every statement has its timeouts', async () => {
    const database = await open();
    expect(await database.query(statement)).toEqual([expected]);
    expect(database.pooling).toBe('transaction');
    expect(await database.query(statement, [])).toEqual([expected]);
    expect(await database.transaction((session) => session.query(statement))).toEqual([expected]);
    const many = await Promise.all(Array.from({ length: 40 }, () => database.query(statement)));
    expect(many.flat().every((row) => row['lock_timeout'] === expected.lock_timeout)).toBe(true);
  });

  test('a statement that adds up very many rows has neither compiler nor parallel processes', async () => {
    const database = await open();
    const settings = `SELECT current_setting('jit') AS jit, current_setting('work_mem') AS memory,
      current_setting('max_parallel_workers_per_gather')::int AS parallel, $1::int AS value`;
    const read = (value: number) => database.read(settings, [value], { isLarge: true });
    for (const value of [1, 2])
      expect(await read(value)).toEqual([{ jit: 'off', memory: '16MB', parallel: 0, value }]);
  });

  test('a statement that waits for a lock ends by its timeout, and nothing of it stays behind', async () => {
    const database = await open('answer_timeout=3');
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
    await expect(database.query('SELECT * FROM nowhere')).rejects.toMatchObject({ code: '42P01' });
    expect(await database.query('INSERT INTO a VALUES ($1) RETURNING b', [7])).toEqual([{ b: 7 }]);
  });

  test('gateways that start at once make the tables once, and serve calls', async () => {
    const url = await newUrl();
    const gateways = await Promise.all(Array.from({ length: 3 }, () => startGateway({ database: url })));
    for (const gateway of gateways) {
      onTestFinished(() => gateway.close());
      const headers = { authorization: `Bearer ${gateway.key}` };
      const answer = await fetch(`${gateway.url}/v1/models`, { headers });
      expect(answer.status).toBe(200);
    }
    const stores = openStores(url);
    onTestFinished(() => stores.close());
    const entries = stores.namespace<number>('numbers');
    await Promise.all(Array.from({ length: 50 }, (_, number) => entries.set(`n${number}`, number)));
    expect(await entries.get('n49')).toBe(49);
  });
});
