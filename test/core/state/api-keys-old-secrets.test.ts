import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { createApiKeys } from '../../../core/state/api-keys/open.ts';
import { openStores } from '../../../core/state/stores.ts';
import { newDatabases } from '../../flows/_one-database.ts';

const day = 86_400_000;

describe.each(newDatabases())('a key that was rotated with a grace period: $kind', ({ url, skip }) => {
  async function opened() {
    const stores = openStores(await url());
    onTestFinished(() => stores.close());
    await stores.ready();
    return { stores, keys: createApiKeys(stores) };
  }

  test.skipIf(skip !== undefined)('has two secrets, and shows the old one', async () => {
    const { keys } = await opened();
    const { record, value } = await keys.create({ name: 'mine' });
    const { record: rotated, value: fresh } = await keys.rotate(record.id, day);
    expect(keys.isKnown(value)).toBe(true);
    expect(keys.find(value)).toEqual({ key: { ...rotated, hash: record.hash }, state: 'valid' });
    expect(keys.find(fresh)).toEqual({ key: rotated, state: 'valid' });
    const [old] = await keys.oldSecretsOf([rotated]);
    expect(old).toMatchObject({ prefix: record.prefix, suffix: record.suffix });
    expect(old?.until).toBeGreaterThan(Date.now());
    expect(old?.lastUsedAt).toBeGreaterThan(0);
    expect(await keys.list()).toHaveLength(1);
  });

  test.skipIf(skip !== undefined)(
    'keeps the times of uses of the old secret, without those from before',
    async () => {
      const { stores, keys } = await opened();
      const { record, value } = await keys.create({ name: 'mine' });
      const { record: rotated } = await keys.rotate(record.id, day);
      expect((await keys.oldSecretsOf([rotated]))[0]).not.toHaveProperty('lastUsedAt');
      keys.find(value);
      await keys.stop();
      const later = createApiKeys(stores);
      await later.load();
      expect((await later.oldSecretsOf([rotated]))[0]?.lastUsedAt).toBeGreaterThan(0);
    },
  );

  test.skipIf(skip !== undefined)('works after a restart, and in a process that held the key', async () => {
    const { stores, keys } = await opened();
    const { record, value } = await keys.create({ name: 'mine' });
    const holding = createApiKeys(stores);
    await holding.load();
    expect((await holding.lookUp(value))?.state).toBe('valid');
    await keys.rotate(record.id, day);
    await holding.load();
    expect((await holding.lookUp(value))?.state).toBe('valid');
    const restarted = createApiKeys(stores);
    // Not loaded: the look-up reads what it needs.
    expect((await restarted.lookUp(value))?.key.id).toBe(record.id);
  });

  test.skipIf(skip !== undefined)(
    'is found by a process that learns both at once, however it is asked',
    async () => {
      const { stores, keys } = await opened();
      const { record, value } = await keys.create({ name: 'mine' });
      const other = createApiKeys(stores);
      await other.load();
      await keys.rotate(record.id, day);
      // The row of the old secret is gone, and nothing was refreshed since.
      expect((await other.lookUp(value))?.state).toBe('valid');
      expect(other.isKnown(value)).toBe(true);
    },
  );

  test.skipIf(skip !== undefined)(
    'loses the old secret with the next rotation, the end of the grace and its deletion',
    async () => {
      const { keys } = await opened();
      const { record, value } = await keys.create({ name: 'mine' });
      const second = await keys.rotate(record.id, day);
      const third = await keys.rotate(record.id, day);
      expect(await keys.lookUp(value)).toBeUndefined();
      expect(keys.find(second.value)?.state).toBe('valid');
      const held = keys.find(second.value);
      expect(await keys.endOldSecret(record.id)).toBe(true);
      expect(await keys.endOldSecret(record.id)).toBe(false);
      expect(await keys.lookUp(second.value)).toBeUndefined();
      // A call that began with the old secret ends.
      expect(held && keys.current(held.key)).toBeUndefined();
      expect(keys.find(third.value)?.state).toBe('valid');
      await keys.rotate(record.id, day);
      await keys.revoke(record.id);
      expect(await keys.lookUp(third.value)).toBeUndefined();
    },
  );

  test.skipIf(skip !== undefined)(
    'is rotated and deleted without another look at all old secrets',
    async () => {
      const { stores, keys } = await opened();
      const made = [await keys.create({ name: 'one' }), await keys.create({ name: 'two' })];
      await keys.load();
      const other = createApiKeys(stores);
      await other.load();
      const [mine = '', theirs = ''] = made.map(({ record }) => record.id);
      await keys.rotate(mine, day);
      await other.rotate(theirs, day);
      const changesSpy = vi.spyOn(stores, 'changes');
      const read = vi.spyOn(stores, 'namespace');
      await keys.endOldSecret(mine);
      await keys.rotate(mine);
      await keys.revoke(mine);
      // What the other process wrote is known all the same.
      expect(await keys.endOldSecret(theirs)).toBe(true);
      expect(changesSpy).toHaveBeenCalledWith('api-keys-old', expect.any(Number));
      // One deletion for each old secret that there was.
      expect(read.mock.calls.filter(([name]) => name === 'api-keys-old')).toHaveLength(2);
    },
  );

  test.skipIf(skip !== undefined)('loses the old secret when its time is over', async () => {
    const { keys } = await opened();
    const { record, value } = await keys.create({ name: 'mine' });
    await keys.rotate(record.id, 1);
    await expect.poll(() => keys.find(value)).toBeUndefined();
    expect(await keys.oldSecretsOf(await keys.list())).toEqual([undefined]);
  });

  test.skipIf(skip !== undefined)('is disabled with both secrets', async () => {
    const { keys } = await opened();
    const { record, value } = await keys.create({ name: 'mine' });
    await keys.rotate(record.id, day);
    await keys.update(record.id, { enabled: false });
    expect(keys.find(value)?.state).toBe('disabled');
  });

  test.skipIf(skip !== undefined)(
    'has the old secret of the rotation that came last, of several at once',
    async () => {
      const { stores, keys } = await opened();
      const { record, value } = await keys.create({ name: 'mine' });
      const others = [createApiKeys(stores), createApiKeys(stores), keys];
      const made = await Promise.all(others.map((one) => one.rotate(record.id, day)));
      const fresh = createApiKeys(stores);
      await fresh.load();
      const found = await Promise.all(
        [value, ...made.map((one) => one.value)].map((one) => fresh.lookUp(one)),
      );
      expect(found.filter((one) => one?.state === 'valid')).toHaveLength(2);
    },
  );

  test.skipIf(skip !== undefined)('is not rotated with a grace of more than 30 days', async () => {
    const { keys } = await opened();
    const { record } = await keys.create({ name: 'mine' });
    await expect(keys.rotate(record.id, 31 * day)).rejects.toThrow(/30 days at the most/);
  });
});
