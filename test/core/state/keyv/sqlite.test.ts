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

  test.each([1, 4, 5, 31, 32, 33, 100])(
    '%i entries are asked for in bulk, odd keys among them',
    async (count) => {
      const database = openSqlite('sqlite::memory:');
      const store = new SqliteKeyv(database);
      const odd = ['null\0byte', '\ud800', "it's", '世界', ''];
      const keys = Array.from({ length: count }, (_, index) => odd[index] ?? `key ${index}`);
      const there = keys.filter((_, index) => index % 3 !== 2);
      await store.setMany(there.map((key, index) => ({ key, value: `value ${index}` })));
      const requested = [...keys, ...keys.slice(0, 2)];
      const wanted = requested.map((key) =>
        there.includes(key) ? `value ${there.indexOf(key)}` : undefined,
      );
      expect(await store.getMany(requested)).toEqual(wanted);
      database.close();
    },
  );
});
