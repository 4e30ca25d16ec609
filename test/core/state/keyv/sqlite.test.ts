import { describe, expect, test } from 'vitest';
import { openSqlite } from '../../../../core/state/database/index.ts';
import { changesSince } from '../../../../core/state/keyv/changes.ts';
import { deleteExpired, revisionOf, SqliteKeyv } from '../../../../core/state/keyv/sqlite.ts';
import { keyvSuite } from '../../../suites/keyv-suite.ts';

describe('Keyv on SQLite', () => {
  keyvSuite(() => {
    const database = openSqlite('sqlite::memory:');
    return Promise.resolve({
      adapter: () => new SqliteKeyv(database),
      revisionOf: (namespace) => Promise.resolve(revisionOf(database, namespace)),
      changesSince: (namespace, revision) => changesSince(database, namespace, revision),
      deleteExpired: (limit) => Promise.resolve(deleteExpired(database, limit)),
      rows: () =>
        Promise.resolve(Number(database.connection.prepare('SELECT count(*) AS n FROM keyv').get()?.['n'])),
      close: () => Promise.resolve(database.close()),
    });
  });

  test('a key and a value may contain NUL', async () => {
    const database = openSqlite('sqlite::memory:');
    const store = new SqliteKeyv(database);
    await store.set('null\0byte', 'a\0b');
    expect(await store.get('null\0byte')).toBe('a\0b');
    expect(await store.get('null')).toBeUndefined();
    database.close();
  });
});
