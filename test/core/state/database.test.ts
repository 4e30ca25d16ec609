import { existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { spawnSync } from 'node:child_process';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openDatabase, type Database } from '../../../core/state/database.ts';
import { inOtherProcess, temporaryDatabase, temporaryFolder } from './support.ts';

function open(url: string): Database {
  const database = openDatabase(url);
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
    const first = openDatabase(url);
    first.connection.exec('CREATE TABLE a (b); INSERT INTO a VALUES (7)');
    first.close();
    expect(open(url).connection.prepare('SELECT b FROM a').get()).toEqual({ b: 7 });
  });

  test('uses the write-ahead log, so that readers do not wait for a writer', () => {
    expect(open(temporaryDatabase()).connection.prepare('PRAGMA journal_mode').get()).toEqual({
      journal_mode: 'wal',
    });
  });

  test('prints no warning', () => {
    const script = `await import(${JSON.stringify(join(import.meta.dirname, '../../../core/state/database.ts'))})`;
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
      'The database URL starts with "mysql:", which is not known here. Accepted are "sqlite:" with the path of a file (sqlite:./data/sluice.db) and "sqlite::memory:".',
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
  const database = openDatabase('sqlite::memory:');
  database.close();
  database.close();
  expect(() => database.connection.exec('SELECT 1')).toThrow('database is not open');
});
