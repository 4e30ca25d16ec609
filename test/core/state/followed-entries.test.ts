import { expect, onTestFinished, test } from 'vitest';
import { FollowedEntries } from '../../../core/state/followed-entries.ts';
import { openStores, type Stores } from '../../../core/state/stores.ts';

/** The texts of a namespace in the memory of one process. */
function follow(stores: Stores) {
  const memory = new Map<string, string>();
  const followed = new FollowedEntries<string>(stores, 'texts', {
    keys: () => memory.keys(),
    put: (key, text) => void (text === undefined ? memory.delete(key) : memory.set(key, text)),
    decode: (_key, value) => (typeof value === 'string' ? value : undefined),
  });
  return { memory, followed };
}

function open(): Stores {
  const stores = openStores('sqlite::memory:');
  onTestFinished(() => stores.close());
  return stores;
}

test('a process sees what others write, change and delete', async () => {
  const stores = open();
  const texts = stores.namespace<unknown>('texts');
  const { memory, followed } = follow(stores);
  await texts.set('one', 'first');
  await texts.set('odd', 7);
  await followed.refresh();
  expect([...memory]).toEqual([['one', 'first']]);
  await texts.set('one', 'second');
  await texts.set('two', 'first');
  await followed.refresh();
  expect([...memory]).toEqual([
    ['one', 'second'],
    ['two', 'first'],
  ]);
  await texts.delete('one');
  await followed.refresh();
  expect([...memory]).toEqual([['two', 'first']]);
});

test.each(['all is read', 'changes are read'])(
  'a process keeps what it writes while %s, and sees what others write to it later',
  async (what) => {
    const stores = open();
    const texts = stores.namespace<unknown>('texts');
    const hold: { read: PromiseWithResolvers<void>; go: PromiseWithResolvers<void> } = {
      read: Promise.withResolvers(),
      go: Promise.withResolvers(),
    };
    // The database has answered, and its answer is under way.
    const { memory, followed } = follow({
      ...stores,
      async changes<Value>(name: string, since: number) {
        const found = await stores.changes<Value>(name, since);
        hold.read.resolve();
        await hold.go.promise;
        return what === 'all is read' ? undefined : found;
      },
    });
    await texts.set('one', 'first');
    await followed.refresh();
    await texts.set('two', 'of another process');
    const refreshing = followed.refresh();
    await hold.read.promise;
    await texts.set('one', 'own');
    followed.written('one', 'own');
    const after = followed.refresh();
    hold.go.resolve();
    await refreshing;
    expect([...memory]).toEqual([
      ['one', 'own'],
      ['two', 'of another process'],
    ]);
    await texts.set('one', 'of another process');
    await after;
    await followed.refresh();
    expect(memory.get('one')).toBe('of another process');
  },
);

test('a database that fails is asked again, and leaves what is known', async () => {
  const stores = open();
  await stores.namespace<unknown>('texts').set('one', 'first');
  let fails = false;
  const { memory, followed } = follow({
    ...stores,
    revision: (name) => (fails ? Promise.reject(new Error('down')) : stores.revision(name)),
  });
  await followed.refresh();
  await stores.namespace<unknown>('texts').set('one', 'second');
  fails = true;
  await expect(followed.refresh()).rejects.toThrow('down');
  expect(memory.get('one')).toBe('first');
  fails = false;
  await followed.refresh();
  expect(memory.get('one')).toBe('second');
});

test('one refresh runs at a time, also where one is asked for as another ends', async () => {
  const stores = open();
  let running = 0;
  let most = 0;
  const { followed } = follow({
    ...stores,
    async revision(name) {
      most = Math.max(most, (running += 1));
      try {
        return await stores.revision(name);
      } finally {
        running -= 1;
      }
    },
  });
  const first = followed.refresh();
  const second = followed.refresh();
  // Asks at each moment between the end of the first and the beginning of the second.
  const refreshes: Promise<void>[] = [];
  await first;
  for (let index = 0; index < 5; index += 1) {
    refreshes.push(followed.refresh());
    // oxlint-disable-next-line no-await-in-loop
    await Promise.resolve();
  }
  await Promise.all([second, ...refreshes]);
  expect(most).toBe(1);
});
