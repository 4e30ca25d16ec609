import { existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { spawnSync } from 'node:child_process';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  checkDatabase,
  openDatabase,
  openSqlite,
  type SqliteDatabase,
} from '../../../../core/state/database/index.ts';
import { migrateSqlite } from '../../../../core/state/database/migrations.ts';
import { schema } from '../../../../core/state/database/tables/index.ts';
import { keyvSteps } from '../../../../core/state/database/tables/entries.ts';
import { responseSteps } from '../../../../core/state/database/tables/responses.ts';
import { inOtherProcess, temporaryDatabase } from '../support.ts';
import { temporaryFolder } from '../../../support/temporary-folder.ts';

function open(url: string): SqliteDatabase {
  const database = openSqlite(url);
  onTestFinished(() => database.close());
  return database;
}

describe('opening a database', () => {
  test('makes the folder and the file, closed to other users', () => {
    const path = join(temporaryFolder(), 'new', 'deeper', 'sluice.db');
    open(`sqlite:${path}`).connection.exec('CREATE TABLE a (b)');
    expect(statSync(join(path, '..')).mode & 0o777).toBe(0o700);
    for (const file of [path, `${path}-wal`, `${path}-shm`]) expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  test('accepts the spellings of other tools', () => {
    const path = join(temporaryFolder(), 'sluice.db');
    open(`sqlite://${path}`);
    expect(existsSync(path)).toBe(true);
    open(`SQLITE::memory:`);
    open(`sqlite://:memory:`);
    expect(existsSync(':memory:')).toBe(false);
  });

  test('finds what was written before', () => {
    const url = temporaryDatabase();
    const first = openSqlite(url);
    first.connection.exec('CREATE TABLE a (b); INSERT INTO a VALUES (7)');
    first.close();
    expect(open(url).connection.prepare('SELECT b FROM a').get()).toEqual({ b: 7 });
  });

  test('in memory makes the same tables each time, and no two databases share rows', () => {
    const tablesOf = ({ connection }: SqliteDatabase) =>
      connection.prepare('SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name').all();
    const inFile = tablesOf(open(temporaryDatabase()));
    const databases = [1, 2, 3].map(() => open('sqlite::memory:'));
    const insert = `INSERT INTO keyv (namespace, key, value) VALUES ('test', ?, 'value')`;
    for (const [index, { connection }] of databases.entries()) connection.prepare(insert).run(`key ${index}`);
    for (const [index, database] of databases.entries()) {
      expect(tablesOf(database)).toEqual(inFile);
      expect(database.connection.prepare('SELECT key FROM keyv').all()).toEqual([{ key: `key ${index}` }]);
    }
  });

  test('in memory holds more than the first one did', () => {
    const [, second] = [open('sqlite::memory:'), open('sqlite::memory:')];
    second?.connection.exec(`
      WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
      INSERT INTO keyv (namespace, key, value) SELECT 'test', i, hex(randomblob(5000)) FROM n`);
    expect(second?.connection.prepare('SELECT count(*) AS count FROM keyv').get()).toEqual({ count: 2_000 });
  });

  test('uses the write-ahead log, so that readers do not wait for a writer', () => {
    expect(open(temporaryDatabase()).connection.prepare('PRAGMA journal_mode').get()).toEqual({
      journal_mode: 'wal',
    });
  });

  test('prints no warning', () => {
    const script = `await import(${JSON.stringify(join(import.meta.dirname, '../../../../core/state/database/index.ts'))})`;
    const { stderr, status } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
      encoding: 'utf8',
    });
    expect({ stderr, status }).toEqual({ stderr: '', status: 0 });
  });

  test('works when several workers start at the same instant on a new file', async () => {
    const url = temporaryDatabase();
    const instant = Date.now() + 1_500;
    const workers = ['one', 'two', 'three', 'four', 'five', 'six'];
    const outcomes = await Promise.all(
      workers.map((name) => inOtherProcess(url, 'open-at', `${instant},${name}`)),
    );
    expect(outcomes).toEqual(workers.map(() => 'opened'));
    expect(open(url).connection.prepare('SELECT count(*) AS count FROM keyv').get()).toEqual({ count: 6 });
  });
});

describe('a database that cannot be opened is explained', () => {
  test('an unknown kind of database: what is accepted, and not the password', () => {
    expect(() => openDatabase('mysql://root:hunter2@db/sluice')).toThrow(
      'The database URL starts with "mysql:", which is not known here. Accepted are "sqlite:" with the path of a file (sqlite:./data/sluice.db), "sqlite::memory:", and "postgres:" (postgres://USER:PASSWORD@HOST/DATABASE).',
    );
  });

  test('a path without a scheme', () => {
    expect(() => openDatabase('./data/sluice.db')).toThrow(
      /names no kind of database\. Accepted are "sqlite:"/,
    );
  });

  test('a scheme without a path', () => {
    expect(() => openDatabase('sqlite:')).toThrow(/"sqlite:" has no path/);
  });

  test('a file that is something else', () => {
    const path = join(temporaryFolder(), 'sluice.db');
    writeFileSync(path, 'these are my notes, and by no means a database'.repeat(100));
    expect(() => openDatabase(`sqlite:${path}`)).toThrow(
      `The database ${path} cannot be opened: file is not a database. Check that it is an SQLite file`,
    );
  });

  test('a folder in place of the file', () => {
    const path = join(temporaryFolder(), 'sluice.db');
    mkdirSync(path);
    expect(() => openDatabase(`sqlite:${path}`)).toThrow(`The database ${path} cannot be opened: `);
  });
});

describe('the tables', () => {
  /** The tables as they were before steps were noted. */
  function oldDatabase(): string {
    const url = temporaryDatabase();
    const connection = new DatabaseSync(url.slice('sqlite:'.length));
    for (const { sqlite } of [...keyvSteps.slice(0, 1), ...responseSteps]) connection.exec(sqlite);
    connection.exec("INSERT INTO keyv VALUES ('a', 'b', 'c', NULL)");
    connection.close();
    return url;
  }

  test('of an older version are adopted with what is in them', () => {
    const { connection } = open(oldDatabase());
    expect(connection.prepare('SELECT value FROM keyv').all()).toEqual([{ value: 'c' }]);
    expect(connection.prepare('SELECT * FROM secrets').all()).toEqual([]);
  });

  test('of a newer version are refused, by a start and by a check', async () => {
    const url = temporaryDatabase();
    const before = openSqlite(url);
    before.connection.exec("INSERT INTO sluice_migrations VALUES ('ledger-99', 0)");
    before.close();
    const sentence = /was changed by a newer version of Sluice \(its step "ledger-99" is not known here\)/;
    expect(() => openDatabase(url)).toThrow(sentence);
    await expect(checkDatabase(url)).rejects.toThrow(sentence);
  });

  test('with additions are started on by the version before, which knows nothing of them', () => {
    const url = temporaryDatabase();
    const { connection } = open(url);
    const noted = connection.prepare('SELECT name FROM sluice_migrations').all();
    const additions = schema.filter(({ isAddition }) => isAddition === true).map(({ name }) => name);
    expect(additions).not.toEqual([]);
    expect(noted.filter(({ name }) => additions.includes(String(name)))).toEqual([]);
    const older = schema.filter(({ isAddition }) => isAddition !== true);
    migrateSqlite(connection, { steps: older, url });
    expect(connection.prepare('SELECT name FROM sluice_additions ORDER BY name').all()).toEqual(
      additions.toSorted().map((name) => ({ name })),
    );
  });

  test('are left as they are by a check, which makes no file either', async () => {
    const url = oldDatabase();
    await checkDatabase(url);
    const connection = new DatabaseSync(url.slice('sqlite:'.length));
    onTestFinished(() => connection.close());
    const tables = connection.prepare(
      "SELECT name FROM sqlite_schema WHERE name IN ('secrets', 'sluice_migrations')",
    );
    expect(tables.all()).toEqual([]);
    const path = join(temporaryFolder(), 'sluice.db');
    await checkDatabase(`sqlite:${path}`);
    expect(existsSync(path)).toBe(false);
  });

  test('that cannot be made are told, and nothing is half done', () => {
    const url = temporaryDatabase();
    const connection = new DatabaseSync(url.slice('sqlite:'.length));
    onTestFinished(() => connection.close());
    connection.exec('CREATE TABLE responses (something TEXT)');
    expect(() => openDatabase(url)).toThrow(
      /^The tables of the database sqlite:.* cannot be brought up to date: /,
    );
    expect(connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all()).toEqual([
      { name: 'responses' },
    ]);
  });
});

describe('version', () => {
  test('changes when somebody else writes, and only then', () => {
    const url = temporaryDatabase();
    const [ours, theirs] = [open(url), open(url)];
    ours.connection.exec('CREATE TABLE a (b)');
    const before = ours.version();
    ours.connection.exec('INSERT INTO a VALUES (1)');
    expect(ours.version()).toBe(before);
    theirs.connection.prepare('SELECT b FROM a').all();
    expect(ours.version()).toBe(before);
    theirs.connection.exec('INSERT INTO a VALUES (2)');
    const after = ours.version();
    expect(after).not.toBe(before);
    expect(ours.version()).toBe(after);
  });
});

test('closing twice is harmless, and a closed database says so', () => {
  const database = openSqlite('sqlite::memory:');
  database.close();
  database.close();
  expect(() => database.connection.exec('SELECT 1')).toThrow('database is not open');
});
