import { Keyv } from 'keyv';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { ChangedEntries } from '../../core/state/keyv/changes.ts';
import type { PostgresKeyv } from '../../core/state/keyv/postgres.ts';
import type { SqliteKeyv } from '../../core/state/keyv/sqlite.ts';

type Adapter = SqliteKeyv | PostgresKeyv;

/** A new database, and what the adapter's file can do with it. */
export interface KeyvDriver {
  adapter(): Adapter;
  revisionOf(namespace: string): Promise<number>;
  changesSince(namespace: string, revision: number): Promise<ChangedEntries | undefined>;
  deleteExpired(limit: number): Promise<number>;
  /** Number of rows of all namespaces, including expired ones. */
  rows(): Promise<number>;
  close(): Promise<void>;
}

/** Error of a closed database. */
const CLOSED = /finalized|not open|is closed/;

/** Contract of every Keyv adapter of the gateway. */
export function keyvSuite(open: () => Promise<KeyvDriver>): void {
  let driver: KeyvDriver;
  beforeEach(async () => {
    driver = await open();
  });
  afterEach(async () => {
    vi.useRealTimers();
    await driver.close();
  });
  const rows = () => driver.rows();
  const revisionOf = (namespace: string) => driver.revisionOf(namespace);
  const deleteExpired = (limit: number) => driver.deleteExpired(limit);
  const close = () => driver.close();

  function adapter(namespace?: string): Adapter {
    const store = driver.adapter();
    store.namespace = namespace;
    return store;
  }

  function keyv(namespace: string): Keyv<string> {
    return new Keyv({ store: adapter(), namespace, useKeyPrefix: false });
  }

  async function keysOf(store: Adapter): Promise<string[]> {
    const keys = [];
    for await (const [key] of store.iterator()) keys.push(key);
    return keys;
  }

  describe('entries', () => {
    test('come back exactly, whatever characters they and their keys contain', async () => {
      const store = adapter('n');
      const texts = ['', "'; DROP TABLE keyv; --", '%', '_', 'a:b', 'n:x', '😀 ü 漢'];
      await Promise.all(texts.map((text) => store.set(text, text)));
      await store.set('long', 'x'.repeat(1_000_000));
      expect(await store.getMany([...texts, 'long'])).toEqual([...texts, 'x'.repeat(1_000_000)]);
      expect(await rows()).toBe(texts.length + 1);
    });

    test('are replaced, with their time to live', async () => {
      vi.useFakeTimers({ toFake: ['Date'] });
      const store = adapter();
      await store.set('a', 'short', 10);
      await store.set('a', 'long');
      vi.advanceTimersByTime(1_000);
      expect(await store.get('a')).toBe('long');
    });

    test('that are written twice in one go are written as the last says', async () => {
      const store = adapter();
      await store.setMany([
        { key: 'a', value: 'first', ttl: 1 },
        { key: 'b', value: 'other' },
        { key: 'a', value: 'last' },
      ]);
      expect(await store.getMany(['a', 'b'])).toEqual(['last', 'other']);
    });

    test('are asked for in bulk, in order, with gaps and repetitions', async () => {
      const store = adapter();
      await store.setMany([
        { key: 'a', value: '1' },
        { key: 'b', value: '2' },
      ]);
      expect(await store.getMany(['b', 'none', 'a', 'b'])).toEqual(['2', undefined, '1', '2']);
      expect(await store.hasMany(['b', 'none', 'a'])).toEqual([true, false, true]);
      expect(await store.getMany([])).toEqual([]);
    });

    test('are deleted, and the answer tells whether there were any', async () => {
      const store = adapter();
      await store.setMany(['a', 'b', 'c'].map((key) => ({ key, value: key })));
      expect([await store.delete('a'), await store.delete('a')]).toEqual([true, false]);
      expect(await store.deleteMany(['a', 'b'])).toBe(true);
      expect(await store.deleteMany(['a', 'b'])).toBe(false);
      expect(await keysOf(store)).toEqual(['c']);
    });

    test('of a bulk write that fails are not written at all', async () => {
      const store = adapter();
      const broken: unknown = { key: 'b', value: { not: 'text' } };
      const entries = [{ key: 'a', value: '1' }, broken] as { key: string; value: string }[];
      await expect(store.setMany(entries)).rejects.toThrow("leave Keyv's serializer on");
      expect(await store.get('a')).toBeUndefined();
      await store.set('a', 'works again');
      expect(await store.get('a')).toBe('works again');
    });
  });

  describe('time to live', () => {
    beforeEach(() => {
      vi.useFakeTimers({ toFake: ['Date'] });
    });

    test('an expired entry is gone from every kind of question', async () => {
      const store = adapter();
      await store.set('brief', '1', 100);
      await store.set('lasting', '2');
      vi.advanceTimersByTime(100);
      expect(await store.get('brief')).toBe('1');
      vi.advanceTimersByTime(1);
      expect(await store.get('brief')).toBeUndefined();
      expect(await store.getMany(['brief', 'lasting'])).toEqual([undefined, '2']);
      expect(await store.has('brief')).toBe(false);
      expect(await store.hasMany(['brief', 'lasting'])).toEqual([false, true]);
      expect(await keysOf(store)).toEqual(['lasting']);
    });

    test('expired entries are removed from the file, the oldest first and no more than asked', async () => {
      const store = adapter();
      await store.setMany([100, 99, 98, 97, 96].map((ttl) => ({ key: `brief-${ttl}`, value: 'x', ttl })));
      await store.set('lasting', 'x');
      await adapter('other').set('brief', 'x', 100);
      expect(await deleteExpired(10)).toBe(0);
      vi.advanceTimersByTime(1_000);
      expect(await deleteExpired(2)).toBe(2);
      expect(await keysOf(store)).toEqual(['lasting']);
      expect(await rows()).toBe(5);
      expect(await deleteExpired(10)).toBe(4);
      expect(await rows()).toBe(1);
    });
  });

  describe('namespaces', () => {
    test('do not see, clear or list one another, whatever their names', async () => {
      const spaces = ['a', 'a:b', 'A', 'b', '%', undefined].map((name) => adapter(name));
      await Promise.all(spaces.map((space, index) => space.set('same', String(index))));
      await adapter('a').clear();
      await adapter('%').clear();
      expect(await Promise.all(spaces.map((space) => space.get('same')))).toEqual([
        undefined,
        '1',
        '2',
        '3',
        undefined,
        '5',
      ]);
      expect(await keysOf(adapter('b'))).toEqual(['same']);
      await adapter().clear();
      expect(await rows()).toBe(3);
    });

    test('hold keys that look like the key of another', async () => {
      await keyv('a').set('b:c', 'first');
      await keyv('a:b').set('c', 'second');
      await keyv('a').set('c', 'third');
      await keyv('a').set('a:c', 'fourth');
      expect(await keyv('a').get(['b:c', 'c', 'a:c'])).toEqual(['first', 'third', 'fourth']);
      expect(await keyv('a:b').get('c')).toBe('second');
    });
  });

  describe('listing', () => {
    test('meets each of many entries once, while others are written and deleted', async () => {
      const store = adapter();
      const keys = Array.from({ length: 1_000 }, (_, number) => `key-${String(number).padStart(4, '0')}`);
      await store.setMany(keys.map((key) => ({ key, value: key })));
      const met: string[] = [];
      for await (const [key, value] of store.iterator()) {
        expect(value).toBe(key);
        met.push(key);
        await store.set(`a-${key}`, 'comes before what is being read');
        await store.delete(key);
      }
      expect(met).toEqual(keys);
    });

    test('comes in the order of the bytes of the keys, whatever the language of the server', async () => {
      const store = adapter();
      const keys = ['b', 'B', 'a', 'é', 'z', '_', '10', '9', 'ab', 'a b'];
      await store.setMany(keys.map((key) => ({ key, value: key })));
      expect(await keysOf(store)).toEqual(['10', '9', 'B', '_', 'a', 'a b', 'ab', 'b', 'z', 'é']);
    });

    test('of very many entries lets other work go on', async () => {
      const store = adapter();
      await store.setMany(
        Array.from({ length: 2_000 }, (_, number) => ({ key: String(number), value: 'x' })),
      );
      let turns = 0;
      const counting = setInterval(() => {
        turns += 1;
      }, 0);
      for await (const entry of store.iterator()) void entry;
      clearInterval(counting);
      expect(turns).toBeGreaterThan(0);
    });
  });

  describe('revision', () => {
    test('changes with every kind of write to the namespace, and with no other', async () => {
      vi.useFakeTimers({ toFake: ['Date'] });
      const [store, other] = [adapter('watched'), adapter('other')];
      let last = await revisionOf('watched');
      const changed = async (job: () => Promise<unknown>) => {
        await job();
        const now = await revisionOf('watched');
        const answer = now !== last;
        last = now;
        return answer;
      };
      expect(await changed(() => store.set('a', '1'))).toBe(true);
      expect(await changed(() => store.set('a', '2'))).toBe(true);
      expect(await changed(() => store.setMany([{ key: 'b', value: '1', ttl: 10 }]))).toBe(true);
      expect(await changed(() => store.delete('a'))).toBe(true);
      vi.advanceTimersByTime(100);
      expect(await changed(() => deleteExpired(10))).toBe(true);
      await store.set('c', '1');
      expect(await changed(() => store.clear())).toBe(true);
      expect(await changed(() => store.get('a'))).toBe(false);
      expect(await changed(() => store.delete('none'))).toBe(false);
      expect(await changed(() => other.set('a', '1'))).toBe(false);
    });
  });

  describe('changes', () => {
    test('are told by key, whoever wrote, and however', async () => {
      vi.useFakeTimers({ toFake: ['Date'] });
      const [store, other] = [adapter('watched'), adapter('watched')];
      let last = await revisionOf('watched');
      const changesOf = async (job: () => Promise<unknown>) => {
        await job();
        const changes = await driver.changesSince('watched', last);
        last = changes?.revision ?? NaN;
        expect(last).toBe(await revisionOf('watched'));
        return Object.fromEntries(changes?.entries ?? []);
      };
      expect(await changesOf(() => store.set('a', '1'))).toEqual({ a: '1' });
      expect(await changesOf(() => other.set('a', '2'))).toEqual({ a: '2' });
      expect(
        await changesOf(() =>
          other.setMany([
            { key: 'b', value: '1', ttl: 10 },
            { key: 'c', value: '1' },
          ]),
        ),
      ).toEqual({ b: '1', c: '1' });
      expect(await changesOf(() => store.delete('a'))).toEqual({ a: undefined });
      vi.advanceTimersByTime(100);
      expect(await changesOf(() => deleteExpired(10))).toEqual({ b: undefined });
      expect(await changesOf(() => store.clear())).toEqual({ c: undefined });
      expect(await changesOf(() => store.get('a'))).toEqual({});
    });
  });

  describe('a database that fails', () => {
    test('rejects what is asked, instead of pretending that there is nothing', async () => {
      const store = adapter();
      await store.set('a', '1');
      await close();
      await expect(store.get('a')).rejects.toThrow(CLOSED);
      await expect(store.set('a', '2')).rejects.toThrow(CLOSED);
      await expect(store.setMany([])).rejects.toThrow(CLOSED);
      await expect(store.iterator().next()).rejects.toThrow(CLOSED);
    });

    test('is left alone by a Keyv that disconnects, since others use it', async () => {
      await new Keyv({ store: adapter() }).disconnect();
      await expect(adapter().set('a', '1')).resolves.toBe(true);
    });
  });
}
