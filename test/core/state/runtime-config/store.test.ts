import { describe, expect, onTestFinished, test } from 'vitest';
import { row, rows, sqlOf } from '../../../../core/state/database/sql.ts';
import type { RuntimeEntry } from '../../../../core/state/runtime-config/index.ts';
import { openRuntimeConfigStore } from '../../../../core/state/runtime-config/store.ts';
import { openStores, type Stores } from '../../../../core/state/stores.ts';
import { newDatabases } from '../../../flows/_one-database.ts';
import { eventually } from '../../../support/eventually.ts';

function storesOn(url: string): Stores {
  const stores = openStores({ url });
  onTestFinished(() => stores.close());
  return stores;
}

const alias = (name: string, version = 1): RuntimeEntry => ({
  kind: 'alias',
  name,
  value: 'demo',
  secretsAt: {},
  enabled: true,
  version,
  createdAt: 1,
  updatedAt: version,
});

const creation = (...names: readonly string[]) => ({
  action: 'create' as const,
  actor: 'admin',
  changes: names.map((name) => ({ kind: 'alias' as const, name, after: alias(name) })),
});

/** Work that goes on until it is told to end. */
function work() {
  const [began, end] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const run = async (): Promise<void> => {
    began.resolve();
    await end.promise;
  };
  return { run, began: began.promise, end: () => end.resolve() };
}

describe.each(newDatabases())('the store of run-time configuration on $kind', ({ kind, url, skip }) => {
  test.skipIf(skip !== undefined)(
    'a change that outlasts its lock leaves the lock of the change after it alone',
    async () => {
      const database = await url();
      const [one, other] = [storesOn(database), storesOn(database)];
      const lock = { namespace: 'runtime-config-lock', key: 'change' };
      const isLocked = async (): Promise<boolean> =>
        (await sqlOf(one.database).run(() =>
          row('SELECT 1 AS found FROM keyv WHERE namespace = ? AND key = ?', lock.namespace, lock.key),
        )) !== undefined;
      await Promise.all([one.ready(), other.ready()]);
      const [slow, next] = [work(), work()];
      const store = await openRuntimeConfigStore(one);
      const first = store.alone(slow.run);
      await slow.began;
      // Its time is over.
      await sqlOf(one.database).run(() =>
        rows('UPDATE keyv SET expires = 1 WHERE namespace = ? AND key = ?', lock.namespace, lock.key),
      );
      const second = (await openRuntimeConfigStore(other)).alone(next.run);
      await next.began;
      slow.end();
      await first;
      expect(await isLocked()).toBe(true);
      next.end();
      await second;
      expect(await isLocked()).toBe(false);
    },
  );

  test.skipIf(skip !== undefined)(
    'a value that was sealed under another secret can be replaced and deleted, and its record keeps it',
    async () => {
      const stores = storesOn(await url());
      await stores.ready();
      const named = { kind: 'channel', name: 'eu' } as const;
      const made = { ...alias('eu'), ...named, value: { type: 'demo' } };
      const owner = await openRuntimeConfigStore(stores);
      await owner.write(0, { action: 'create', actor: 'admin', changes: [{ ...named, after: made }] });
      const sql = sqlOf(stores.database);
      const key = await sql.run(() => row("SELECT value FROM secrets WHERE name = 'seal'"));
      await sql.run(() => rows("DELETE FROM secrets WHERE name = 'seal'"));
      const other = await openRuntimeConfigStore(stores);
      const [locked] = (await other.read()).entries;
      if (locked === undefined) throw new Error('The entry is gone.');
      expect(locked.value).toBeUndefined();
      const after = { ...made, value: { type: 'other' }, version: 2 };
      const replaced = {
        action: 'update' as const,
        actor: 'admin',
        changes: [{ ...named, before: locked, after }],
      };
      expect(await other.write(1, replaced)).toBe(2);
      expect((await other.read()).entries).toEqual([after]);
      expect(
        await other.write(2, {
          action: 'undo',
          actor: 'admin',
          changes: [{ ...named, before: after, after: locked }],
        }),
      ).toBe(3);
      expect(
        await other.write(3, { action: 'delete', actor: 'admin', changes: [{ ...named, before: locked }] }),
      ).toBe(4);
      expect((await other.read()).entries).toEqual([]);
      // Under the secret of before, the history tells what the value was.
      await sql.run(() => rows("UPDATE secrets SET value = ? WHERE name = 'seal'", key?.['value'] as string));
      const [deletion] = await (await openRuntimeConfigStore(stores)).history(1);
      expect(deletion?.changes).toEqual([{ ...named, before: made }]);
    },
  );

  test.skipIf(skip !== undefined)('a database lost during a change leaves all of it undone', async () => {
    const stores = storesOn(await url());
    await stores.ready();
    const store = await openRuntimeConfigStore(stores);
    expect(await store.write(0, creation('before'))).toBe(1);
    const before = await store.read();
    // The entries and the revision are written by then, and the history is not.
    await dropAtHistory(stores, kind);
    await expect(store.write(1, creation('one', 'two'))).rejects.toThrow(
      kind === 'SQLite' ? 'the disk is gone' : 'terminating connection',
    );
    await eventually(async () => expect(await store.read()).toEqual(before));
    expect(await store.revision()).toBe(1);
    expect((await store.history(10)).map(({ revision }) => revision)).toEqual([1]);
    await repair(stores, kind);
    expect(await store.write(1, creation('one', 'two'))).toBe(2);
    expect((await store.read()).entries.map(({ name }) => name)).toEqual(['before', 'one', 'two']);
  });
});

/** Has the database fail at the next record of the history: PostgreSQL ends the connection, SQLite fails as with a full disk. */
async function dropAtHistory({ database }: Stores, kind: string): Promise<void> {
  const sql = sqlOf(database);
  if (kind === 'SQLite') {
    await sql.run(() =>
      rows(
        `CREATE TRIGGER lost BEFORE INSERT ON keyv WHEN NEW.namespace = 'runtime-config-history'
         BEGIN SELECT RAISE(ROLLBACK, 'the disk is gone'); END`,
      ),
    );
    return;
  }
  await sql.run(() =>
    rows(
      `CREATE FUNCTION drop() RETURNS trigger LANGUAGE plpgsql AS
       'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END'`,
    ),
  );
  await sql.run(() =>
    rows(
      `CREATE TRIGGER lost BEFORE INSERT ON keyv FOR EACH ROW
       WHEN (NEW.namespace = 'runtime-config-history') EXECUTE FUNCTION drop()`,
    ),
  );
}

async function repair({ database }: Stores, kind: string): Promise<void> {
  await sqlOf(database).run(() => rows(`DROP TRIGGER lost${kind === 'SQLite' ? '' : ' ON keyv'}`));
}
