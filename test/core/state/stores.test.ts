import { once } from 'node:events';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { entriesOf, openStores, type Stores } from '../../../core/state/stores.ts';
import { startOtherProcess, temporaryDatabase } from './support.ts';
import { connectionOf } from '../../support/sqlite.ts';

function open(url = 'sqlite::memory:', report?: (error: Error) => void): Stores {
  const stores = openStores(url, report);
  onTestFinished(() => stores.close());
  return stores;
}

/** Error of SQLite for a statement or connection of a closed database. */
const CLOSED = /finalized|not open/;

function damage(stores: Stores, key: string, value = '{"value": tru'): void {
  connectionOf(stores).prepare('UPDATE keyv SET value = ? WHERE key = ?').run(value, key);
}

describe('a namespace', () => {
  test('keeps values of any JSON kind, also after a restart', async () => {
    const url = temporaryDatabase();
    const values = [null, false, 0, '', ':colon', [1, [2]], { deep: { list: ['ü', '😀'] } }];
    const before = openStores(url);
    const store = before.namespace<unknown>('things');
    expect(await store.setMany(values.map((value, index) => ({ key: `k${index}`, value })))).toEqual(
      values.map(() => true),
    );
    await before.close();
    const after = open(url).namespace<unknown>('things');
    expect(await after.get(values.map((_, index) => `k${index}`))).toEqual(values);
  });

  test('is apart from the others, and the same for everybody who opens it', async () => {
    const stores = open();
    await stores.namespace<string>('one').set('a', 'in one');
    await stores.namespace<string>('two').set('a', 'in two');
    await stores.namespace<string>('two').clear();
    expect(await stores.namespace<string>('one').get('a')).toBe('in one');
    expect(await stores.namespace<string>('two').get('a')).toBeUndefined();
  });

  test('lists its entries', async () => {
    const store = open().namespace<number>('numbers');
    await store.set('one', 1);
    await store.set('numbers:two', 2);
    expect(await Array.fromAsync(entriesOf(store))).toEqual([
      ['numbers:two', 2],
      ['one', 1],
    ]);
  });

  test('removes an entry as it was seen, and looks again where somebody has written meanwhile', async () => {
    const stores = open();
    const store = stores.namespace<string>('things');
    await store.set('a', 'first');
    const seen: string[] = [];
    const removed = await stores.remove<string>('things', 'a', async (value) => {
      seen.push(value);
      if (value === 'first') await store.set('a', 'second');
    });
    expect({ removed, seen, left: await store.get('a') }).toEqual({
      removed: true,
      seen: ['first', 'second'],
      left: undefined,
    });
    expect(await stores.remove('things', 'a', () => {})).toBe(false);
  });

  test('with an impossible name is refused', () => {
    expect(() => open().namespace('api:keys')).toThrow(
      '"api:keys" cannot name a namespace: use lower-case letters, digits and hyphens.',
    );
  });

  test('counts its writes', async () => {
    const stores = open();
    const before = await stores.revision('one');
    await stores.namespace('two').set('a', 1);
    expect(await stores.revision('one')).toBe(before);
    await stores.namespace('one').set('a', 1);
    expect(await stores.revision('one')).not.toBe(before);
  });

  test('tells what was written since a revision, and what is gone', async () => {
    const stores = open();
    const [store, other] = [stores.namespace<number>('one'), stores.namespace<number>('two')];
    await store.set('before', 1);
    const before = await stores.revision('one');
    expect(await stores.changes('one', before)).toEqual({ revision: before, entries: [] });
    await store.setMany([
      { key: 'a', value: 1 },
      { key: 'b', value: 2 },
    ]);
    await store.set('a', 3);
    await store.delete('before');
    await other.set('c', 4);
    const changes = await stores.changes('one', before);
    expect(changes?.revision).toBe(await stores.revision('one'));
    expect(new Map(changes?.entries)).toEqual(
      new Map([
        ['a', 3],
        ['b', 2],
        ['before', undefined],
      ]),
    );
    await store.set('b', 5);
    expect((await stores.changes('one', changes?.revision ?? 0))?.entries).toEqual([['b', 5]]);
  });

  test('says where it does not know what was written, or it is too much', async () => {
    const stores = open();
    expect(await stores.changes('one', 0)).toBeUndefined();
    const since = await stores.revision('one');
    expect(await stores.changes('one', since + 1)).toBeUndefined();
    await stores
      .namespace<number>('one')
      .setMany(Array.from({ length: 1_001 }, (_, index) => ({ key: `k${index}`, value: index })));
    expect(await stores.changes('one', since)).toBeUndefined();
  });
});

describe('when something is wrong with the database', () => {
  test('a damaged entry counts as missing, is reported, and hides no other', async () => {
    const report = vi.fn<(error: Error) => void>();
    const stores = open(temporaryDatabase(), report);
    const store = stores.namespace<string>('things');
    await store.setMany(['a', 'b', 'c'].map((key) => ({ key, value: `value of ${key}` })));
    damage(stores, 'b');
    expect(await store.get('b')).toBeUndefined();
    expect(await store.get(['a', 'b', 'c'])).toEqual(['value of a', undefined, 'value of c']);
    expect(await Array.fromAsync(entriesOf(store))).toEqual([
      ['a', 'value of a'],
      ['b', undefined],
      ['c', 'value of c'],
    ]);
    expect(report).toHaveBeenCalledTimes(3);
    expect(report.mock.lastCall?.[0].message).toBe(
      `An entry of "things" in ${stores.database.url} is damaged and counts as missing.`,
    );
    await store.set('b', 'repaired');
    expect(await store.get('b')).toBe('repaired');
  });

  test('whoever asks is told, and the process lives on', async () => {
    const uncaught = vi.fn<(error: unknown) => void>();
    process.on('uncaughtException', uncaught);
    onTestFinished(() => void process.off('uncaughtException', uncaught));
    const stores = openStores('sqlite::memory:');
    const store = stores.namespace<string>('things');
    await stores.close();
    await expect(store.get('a')).rejects.toThrow(CLOSED);
    await expect(store.get(['a'])).rejects.toThrow(CLOSED);
    await expect(store.set('a', 'b')).rejects.toThrow(CLOSED);
    await expect(store.setMany([{ key: 'a', value: 'b' }])).rejects.toThrow(CLOSED);
    await expect(store.delete('a')).rejects.toThrow(CLOSED);
    await expect(store.has('a')).rejects.toThrow(CLOSED);
    await expect(store.clear()).rejects.toThrow(CLOSED);
    await expect(stores.revision('things')).rejects.toThrow(CLOSED);
    await new Promise((resolve) => setImmediate(resolve));
    expect(uncaught).not.toHaveBeenCalled();
  });

  test('one that is full or only to be read answers questions, refuses writes, and health says so', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    onTestFinished(() => void vi.useRealTimers());
    const stores = open(temporaryDatabase());
    const store = stores.namespace<string>('things');
    await store.set('a', 'before');
    await stores.health();
    const pages = Number(connectionOf(stores).prepare('PRAGMA page_count').get()?.['page_count']);
    const states: [to: string, back: string, sentence: RegExp][] = [
      [`PRAGMA max_page_count = ${pages}`, 'PRAGMA max_page_count = 100000', /full/],
      ['PRAGMA query_only = 1', 'PRAGMA query_only = 0', /readonly/],
    ];
    for (const [to, back, sentence] of states) {
      connectionOf(stores).exec(to);
      await expect(store.set('b', 'x'.repeat(100_000))).rejects.toThrow(sentence);
      expect(await store.get('a')).toBe('before');
      vi.advanceTimersByTime(1_000);
      // The few bytes that health writes fit in a page that is there.
      if (to.includes('query_only')) await expect(stores.health()).rejects.toThrow(sentence);
      connectionOf(stores).exec(back);
      vi.advanceTimersByTime(1_000);
      await stores.health();
      expect(await store.set('b', 'x'.repeat(100_000))).toBe(true);
      await store.delete('b');
      connectionOf(stores).exec('VACUUM');
    }
  });

  test('one that another process has locked refuses writes before the lock is gone', async () => {
    const url = temporaryDatabase();
    const [stores, other] = [open(url), open(url)];
    const store = stores.namespace<string>('things');
    await store.set('a', 'before');
    connectionOf(other).exec('BEGIN IMMEDIATE');
    await expect(store.set('a', 'meanwhile')).rejects.toThrow('The database is busy');
    expect(await store.get('a')).toBe('before');
    connectionOf(other).exec('ROLLBACK');
    expect(await store.set('a', 'after')).toBe(true);
  });

  test('expired entries are removed without being asked for, and a failure to do so is reported', async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const report = vi.fn<(error: Error) => void>();
    const stores = open('sqlite::memory:', report);
    await stores
      .namespace('things')
      .setMany(
        Array.from({ length: 1_200 }, (_, number) => ({ key: String(number), value: 'x', ttl: 1_000 })),
      );
    const count = () => connectionOf(stores).prepare('SELECT count(*) AS count FROM keyv').get()?.['count'];
    await vi.advanceTimersByTimeAsync(61_000);
    expect(count()).toBe(0);
    stores.database.close();
    await vi.advanceTimersByTimeAsync(60_500);
    expect(report.mock.lastCall?.[0].message).toBe(
      'Expired entries could not be removed from sqlite::memory:.',
    );
  });

  test('a process killed in the middle of writing leaves every finished write and no half one', async () => {
    const url = temporaryDatabase();
    const writer = startOtherProcess(url, 'write-pairs');
    let written = -1;
    writer.stdout.setEncoding('utf8').on('data', (lines: string) => {
      written = Number(lines.trim().split('\n').at(-1));
    });
    await expect.poll(() => written).toBeGreaterThan(50);
    writer.kill('SIGKILL');
    await once(writer, 'close');

    const stores = open(url);
    expect(connectionOf(stores).prepare('PRAGMA integrity_check').get()).toEqual({
      integrity_check: 'ok',
    });
    const store = stores.namespace<number>('pairs');
    const count = (await Array.fromAsync(entriesOf(store))).length / 2;
    expect(count).toBeGreaterThan(written);
    const numbers = Array.from({ length: count }, (_, number) => number);
    expect(await store.get(numbers.map((number) => `left-${number}`))).toEqual(numbers);
    expect(await store.get(numbers.map((number) => `right-${number}`))).toEqual(numbers);
    await store.set('left-0', -1);
    expect(await store.get('left-0')).toBe(-1);
  });
});
