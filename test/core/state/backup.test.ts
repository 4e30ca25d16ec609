import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, readlinkSync, statSync, writeFileSync, WriteStream } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { gunzipSync, gzipSync } from 'node:zlib';
import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { openLedger } from '../../../core/money/ledger/open.ts';
import { createApiKeys } from '../../../core/state/api-keys/open.ts';
import { ArchiveWriter } from '../../../core/state/backup/archive.ts';
import { backUp, checkArchive, restore } from '../../../core/state/backup/index.ts';
import { migrateSqlite } from '../../../core/state/database/migrations.ts';
import { schema } from '../../../core/state/database/tables/index.ts';
import { openSealer } from '../../../core/state/sealer.ts';
import { openStores, type Stores } from '../../../core/state/stores.ts';
import { eventually } from '../../support/eventually.ts';
import { startPostgres, withoutPostgres, type TestPostgres } from '../../support/postgres.ts';
import { startPgBouncer, withoutPgBouncer, type TestPgBouncer } from '../../support/pgbouncer.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { settlementOf } from '../../suites/ledger-suite.ts';
import { insertRecords, usageRecord } from '../../suites/usage-log-suite.ts';

const missing = withoutPostgres();
const hour = 3_600_000;

let server: TestPostgres | undefined;
beforeAll(async () => {
  if (missing === undefined) server = await startPostgres();
});
afterAll(() => server?.close());

const newFile = (name = 'backup.sluice'): string => join(temporaryFolder(), name);
const newDatabase = async (kind: 'sqlite' | 'postgres'): Promise<string> =>
  kind === 'sqlite' ? `sqlite:${newFile('sluice.db')}` : ((await server?.createDatabase()) ?? '');

function open(url: string): Stores {
  const stores = openStores(url);
  onTestFinished(() => stores.close());
  return stores;
}

async function sumOf({ database }: Stores, column: string, table: string): Promise<number> {
  const sql = `SELECT COALESCE(SUM(${column}), 0) AS total FROM ${table}`;
  const [row] = database.kind === 'sqlite' ? await database.read(sql, []) : await database.query(sql);
  return Number(row?.['total']);
}

/** A database with something of each kind in it. */
async function filled(
  kind: 'sqlite' | 'postgres',
): Promise<{ readonly url: string; readonly key: string; readonly seal: string }> {
  const url = await newDatabase(kind);
  const stores = openStores(url);
  try {
    const key = await createApiKeys(stores).create({ name: 'Zoë the first', note: 'of a backup' });
    await stores.namespace<string>('texts').set('odd', 'a "quoted"\nline, \u2028 and 😀', hour);
    await insertRecords(stores, [
      usageRecord('req_1', {
        keyId: key.record.id,
        microDollars: 9_007_199_254_740_991,
        ms: 12.5,
        price: { model: 'm*', input: 3 },
      }),
      usageRecord('req_2', { request: '{"model":"m"}', response: 'data: {}\n\n' }),
    ]);
    const seal = (await openSealer(stores, undefined)).seal('test', 'owner', { hidden: true });
    return { url, key: key.value, seal };
  } finally {
    await stores.close();
  }
}

const kinds = missing === undefined ? (['sqlite', 'postgres'] as const) : (['sqlite'] as const);
const pairs = kinds.flatMap((from) => kinds.map((to) => [from, to] as const));

test.each(pairs)('a backup of %s fills an empty database of %s with all that it had', async (from, to) => {
  const { url, key, seal } = await filled(from);
  const file = newFile();
  const { tables } = await backUp(url, file, '1.2.3');
  expect(tables).toContainEqual({ table: 'usage_records', rows: 2 });
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect((await checkArchive(file)).header).toMatchObject({ kind: from, version: '1.2.3' });

  const target = await newDatabase(to);
  expect(await restore(target, file, { replace: false })).toMatchObject({ before: undefined, tables });
  const stores = open(target);
  const keys = createApiKeys(stores);
  const found = await keys.lookUp(key, false);
  expect(found?.key.name).toBe('Zoë the first');
  expect((await keys.page(10, undefined, 'zoë')).keys.map(({ id }) => id)).toEqual([found?.key.id]);
  expect(await stores.namespace<string>('texts').get('odd')).toBe('a "quoted"\nline, \u2028 and 😀');
  expect(await sumOf(stores, 'micro_dollars', 'usage_records')).toBe(9_007_199_254_740_991);
  expect(await sumOf(stores, '1', 'usage_unsummed')).toBe(2);
  expect((await openSealer(stores, undefined)).open('test', 'owner', seal)).toEqual({ hidden: true });
  // A backup of the restored database holds the same rows.
  const again = newFile('again.sluice');
  expect((await backUp(target, again, '1.2.3')).tables).toEqual(tables);
});

test.each(kinds)(
  'of %s, taken while calls are charged, holds what was spent and its records to the same call',
  async (kind) => {
    const url = await newDatabase(kind);
    const stores = open(url);
    await stores.ready();
    const ledger = openLedger(stores);
    const load = { isOver: false };
    let settled = 0;
    const writers = Array.from({ length: 4 }, async (_, writer) => {
      while (!load.isOver) {
        const keyId = `key_${writer}`;
        const reservation = await ledger.reserve(
          keyId,
          [{ unit: 'micro-dollar', period: 'total', amount: 1e12 }],
          {
            microDollars: 50,
            tokens: 0,
          },
        );
        await ledger.settle([settlementOf(keyId, reservation, 7)]);
        settled += 1;
        await new Promise((resolve) => setImmediate(resolve));
      }
    });
    const until = (count: number): Promise<unknown> => eventually(() => settled >= count, 5);
    await until(50);
    const file = newFile();
    await backUp(url, file, '1');
    await until(settled + 50);
    load.isOver = true;
    await Promise.all(writers);

    const target = await newDatabase('sqlite');
    await restore(target, file, { replace: false });
    const restored = open(target);
    const spent = await sumOf(restored, 'micro_dollars', `ledger_spent WHERE period = 'total'`);
    const recorded = await sumOf(restored, 'micro_dollars', 'usage_records');
    expect(recorded).toBe(spent);
    expect(spent).toBeGreaterThanOrEqual(350);
    expect(spent).toBeLessThan(settled * 7);
  },
);

/** Names of the files in this folder that the process has open. */
function openFilesBeside(file: string): readonly string[] {
  const targets = readdirSync('/proc/self/fd').map((number) => {
    try {
      return readlinkSync(`/proc/self/fd/${number}`);
    } catch {
      return '';
    }
  });
  return targets.filter((target) => target.startsWith(dirname(file)));
}

describe('a backup that fails', () => {
  test('because the folder does not exist is refused with the reason', async () => {
    const { url } = await filled('sqlite');
    const file = join(temporaryFolder(), 'missing', 'backup.sluice');
    await expect(backUp(url, file, '1')).rejects.toThrow(/cannot be written: ENOENT/);
  });

  test('when the disk does not take more is refused with the reason', async () => {
    const writer = new ArchiveWriter(newFile(), { version: '1', made: '', kind: 'sqlite' });
    onTestFinished(() => writer.destroy());
    writer.begin('big', ['text']);
    const noise = randomBytes(60_000).toString('hex');
    const full = Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
    const write = vi.spyOn(WriteStream.prototype, '_write');
    onTestFinished(() => write.mockRestore());
    write.mockImplementation((_chunk, _encoding, done) => done(full));
    const fill = async (): Promise<void> => {
      for (let row = 0; row < 100; row += 1) await writer.row([noise]);
      await writer.close();
    };
    await expect(fill()).rejects.toThrow(/cannot be written: ENOSPC/);
  });

  test('leaves no file, and none open', async () => {
    const file = newFile();
    const path = join(dirname(file), 'other.db');
    new DatabaseSync(path).close();
    await expect(backUp(`sqlite:${path}`, file, '1')).rejects.toThrow(/no tables of Sluice/);
    expect(readdirSync(dirname(file))).toEqual(['other.db']);
    expect(openFilesBeside(file)).toEqual([]);
    expect(() => writeFileSync(file, '', { flag: 'wx' })).not.toThrow();
  });

  test.skipIf(missing !== undefined)(
    `of PostgreSQL leaves no file, and none open ${missing ?? ''}`,
    async () => {
      const file = newFile();
      await expect(backUp(await newDatabase('postgres'), file, '1')).rejects.toThrow(/no tables of Sluice/);
      expect(readdirSync(dirname(file))).toEqual([]);
      expect(openFilesBeside(file)).toEqual([]);
    },
  );
});

test.skipIf(missing !== undefined)(
  `rows of a megabyte after many small ones are read a few at a time ${missing ?? ''}`,
  async () => {
    const { url } = await filled('postgres');
    await server?.run(
      url,
      `INSERT INTO keyv (namespace, key, value) SELECT 'small', n::text, '{}' FROM generate_series(1, 6000) AS n;
       INSERT INTO keyv (namespace, key, value) SELECT 'large', n::text, repeat('x', 1500000) FROM generate_series(1, 20) AS n`,
    );
    const query = vi.spyOn(Client.prototype, 'query');
    onTestFinished(() => query.mockRestore());
    await backUp(url, newFile(), '1');
    const results = (await Promise.all(query.mock.results.map(({ value }) => value as unknown))) as {
      readonly command?: string;
      readonly rows?: readonly unknown[];
    }[];
    const fetched = results.filter(({ command }) => command === 'FETCH');
    const bytes = fetched.map(({ rows }) => JSON.stringify(rows).length);
    expect(Math.max(...bytes)).toBeLessThan(5_000_000);
    expect(Math.max(...bytes)).toBeGreaterThan(2_900_000);
    expect(fetched.length).toBeLessThan(100);
  },
);

describe('a restore', () => {
  test.each(kinds)('into %s with rows is refused, and done with --replace', async (kind) => {
    const { url, key } = await filled(kind);
    const file = newFile();
    await backUp(url, file, '1');
    const other = await filled(kind);
    await expect(restore(other.url, file, { replace: false })).rejects.toThrow(/not empty.*--replace/);
    // As the server tells it, connections of the gateway before are gone or idle for a while.
    const { before } = await eventually(async () => restore(other.url, file, { replace: true }));
    const keys = createApiKeys(open(other.url));
    expect(await keys.lookUp(key, false)).toBeDefined();
    expect(await keys.lookUp(other.key, false)).toBeUndefined();
    if (kind === 'sqlite')
      expect(await createApiKeys(open(`sqlite:${before}`)).lookUp(other.key, false)).toBeDefined();
  });

  test.each(kinds)('into %s is refused while a gateway uses it', async (kind) => {
    const { url } = await filled(kind);
    const file = newFile();
    await backUp(url, file, '1');
    const stores = open(url);
    await stores.health();
    await expect(restore(url, file, { replace: true })).rejects.toThrow(/stop/);
    expect(await stores.namespace<string>('texts').get('odd')).toContain('quoted');
  });

  test.skipIf(missing !== undefined)(
    `is refused while a gateway uses the database under another application_name ${missing ?? ''}`,
    async () => {
      const { url } = await filled('postgres');
      const file = newFile();
      await backUp(url, file, '1');
      const stores = open(`${url}${url.includes('?') ? '&' : '?'}application_name=payments`);
      // The connections of the backup must not count.
      await eventually(async () => {
        const rows = await server?.run(
          url,
          `SELECT 1 FROM pg_stat_activity WHERE application_name = 'sluice' AND datname = current_database()`,
        );
        expect(rows).toEqual([]);
      });
      await stores.health();
      await expect(restore(url, file, { replace: true })).rejects.toThrow(/stop/);
    },
  );

  test('whose tables cannot be brought up to date says where the database from before is kept', async () => {
    const { url } = await filled('sqlite');
    const file = newFile();
    await backUp(url, file, '1');
    const run = DatabaseSync.prototype.exec;
    const exec = vi.spyOn(DatabaseSync.prototype, 'exec');
    onTestFinished(() => exec.mockRestore());
    exec.mockImplementation(function fail(this: DatabaseSync, sql) {
      if (sql === 'PRAGMA synchronous = NORMAL') throw new Error('the disk is full');
      run.call(this, sql);
    });
    await expect(restore(url, file, { replace: true })).rejects.toThrow(
      /was restored; the database from before is kept as \S+\.before-restore-\S+\. .*the disk is full/,
    );
  });

  const changed = async (change: (text: string) => string): Promise<string> => {
    const { url } = await filled('sqlite');
    const file = newFile();
    await backUp(url, file, '1');
    const wrong = newFile('wrong.sluice');
    writeFileSync(wrong, gzipSync(change(gunzipSync(readFileSync(file)).toString())));
    return wrong;
  };

  test.each<[string, (text: string) => string, RegExp]>([
    ['that was changed', (text) => text.replace('Zoë', 'Zoe'), /not those that were saved/],
    ['that was cut off', (text) => text.slice(0, text.lastIndexOf('{"end"')), /cut off/],
    [
      'without one of its tables',
      (text) => text.replace(/^\{"table":"secrets"[\s\S]*?"end":"secrets".*\n/m, ''),
      /checksum is wrong/,
    ],
    [
      'of a newer version',
      (text) => text.replace('"keyv-1"', '"keyv-1","keyv-99"'),
      /newer version.*keyv-99/,
    ],
    ['in a newer form', (text) => text.replace('"form":1', '"form":2'), /newer form/],
    [
      'with a table of somebody else',
      (text) => text.replace('{"table":"secrets"', '{"table":"secrets; DROP TABLE keyv"'),
      /not known/,
    ],
    ['that is something else', () => 'hello\n', /no backup of Sluice/],
  ])('of a file %s is refused before anything is written', async (_title, change, reason) => {
    const target = await newDatabase('sqlite');
    await expect(restore(target, await changed(change), { replace: true })).rejects.toThrow(reason);
    expect(() => statSync(target.slice('sqlite:'.length))).toThrow(/ENOENT/);
  });

  test('of what is no compressed file, or is not there, is refused', async () => {
    const file = newFile();
    writeFileSync(file, 'plain');
    await expect(checkArchive(file)).rejects.toThrow(/cannot be read as a backup/);
    await expect(checkArchive(newFile())).rejects.toThrow(/cannot be read as a backup/);
  });

  test('of a file that exists is not overwritten by another backup', async () => {
    const { url } = await filled('sqlite');
    const file = newFile();
    await backUp(url, file, '1');
    await expect(backUp(url, file, '1')).rejects.toThrow(/exists/);
  });

  test('of an older version is brought up to date', async () => {
    const path = newFile('sluice.db');
    const connection = new DatabaseSync(path);
    const steps = schema.filter(({ name }) => !name.startsWith('api-keys-'));
    migrateSqlite(connection, { steps, url: path });
    connection.exec(`INSERT INTO keyv (namespace, key, value) VALUES ('texts', 'old', '{"value":"kept"}')`);
    connection.close();
    const file = newFile();
    await backUp(`sqlite:${path}`, file, '0.0.9');
    for (const kind of kinds) {
      const target = await newDatabase(kind);
      await restore(target, file, { replace: false });
      const stores = open(target);
      expect(await stores.namespace<string>('texts').get('old')).toBe('kept');
      expect(await sumOf(stores, '1', 'api_keys')).toBe(0);
    }
  });
});

const noBouncer = missing ?? withoutPgBouncer();

describe.skipIf(noBouncer !== undefined)(
  `through PgBouncer${noBouncer === undefined ? '' : ` (${noBouncer})`}`,
  () => {
    let bouncer: TestPgBouncer;
    beforeAll(async () => {
      bouncer = await startPgBouncer((await newDatabase('postgres')).replace(/\?.*/, ''));
    });
    afterAll(() => bouncer?.close());

    test('a database is saved and restored', async () => {
      const { url, key } = await filled('postgres');
      const file = newFile();
      await backUp(bouncer.through(url), file, '1');
      const target = bouncer.through(await newDatabase('postgres'));
      await restore(target, file, { replace: false });
      expect(await createApiKeys(open(target)).lookUp(key, false)).toBeDefined();
    });
  },
);
