import { describe, expect, onTestFinished, test } from 'vitest';
import { createApiKeys } from '../../../core/state/api-keys/open.ts';
import { openStores } from '../../../core/state/stores.ts';

function opened() {
  const stores = openStores('sqlite::memory:');
  onTestFinished(() => stores.close());
  return { stores, keys: createApiKeys(stores) };
}

describe('a key with a new secret', () => {
  test('is the same key: only its secret, and what is shown of it, are others', async () => {
    const { keys } = opened();
    const { record, value } = await keys.create({ name: 'mine', models: ['a*'], requestsPerMinute: 5 });
    const { record: rotated, value: fresh } = await keys.rotate(record.id);
    const { hash: _hash, prefix: _prefix, suffix: _suffix, ...rest } = record;
    expect(rotated).toMatchObject(rest);
    expect(rotated.hash).not.toBe(record.hash);
    expect(fresh).toMatch(/^sk-\w{48}$/);
    expect(fresh.startsWith(rotated.prefix) && fresh.endsWith(rotated.suffix)).toBe(true);
    expect(keys.find(value)).toBeUndefined();
    expect(keys.find(fresh)).toEqual({ key: rotated, state: 'valid' });
    expect(await keys.list()).toHaveLength(1);
  });

  test('keeps when it was last used', async () => {
    const { keys } = opened();
    const { record, value } = await keys.create({ name: 'mine' });
    keys.find(value);
    await keys.stop();
    const [before] = await keys.list();
    await keys.rotate(record.id);
    const [after] = await keys.list();
    expect(after?.lastUsedAt).toBe(before?.lastUsedAt);
    expect(after?.lastUsedAt).toBeGreaterThan(0);
  });

  test('stays switched off', async () => {
    const { keys } = opened();
    const { record } = await keys.create({ name: 'mine', enabled: false });
    const { value } = await keys.rotate(record.id);
    expect(keys.find(value)?.state).toBe('disabled');
  });

  test('is the new one in every process that reads the database', async () => {
    const { stores, keys } = opened();
    const { record, value } = await keys.create({ name: 'mine' });
    const other = createApiKeys(stores);
    await other.load();
    expect((await other.lookUp(value))?.state).toBe('valid');
    const { value: fresh } = await keys.rotate(record.id);
    await other.load();
    expect(other.find(value)).toBeUndefined();
    expect((await other.lookUp(fresh))?.state).toBe('valid');
  });

  test('is not brought back when it was revoked meanwhile', async () => {
    const { stores, keys } = opened();
    const { record } = await keys.create({ name: 'mine' });
    await createApiKeys(stores).revoke(record.id);
    await expect(keys.rotate(record.id)).rejects.toThrow(/There is no key/);
    expect(await keys.list()).toEqual([]);
  });
});
