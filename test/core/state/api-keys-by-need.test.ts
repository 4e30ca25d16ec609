import { hash } from 'node:crypto';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { ApiKeys } from '../../../core/state/api-keys/index.ts';
import { createApiKeys } from '../../../core/state/api-keys/open.ts';
import { openStores, type Stores } from '../../../core/state/stores.ts';

let stores: Stores;
let office: ApiKeys;
beforeEach(() => {
  stores = openStores('sqlite::memory:');
  office = createApiKeys(stores);
  return () => stores.close();
});

interface Watched {
  readonly keys: ApiKeys;
  /** Rows of each question for keys. */
  readonly questions: string[][];
  /** While it is set, questions are answered as the database was when they were asked, once it resolves. */
  held: Promise<void> | undefined;
}

/** A gateway on the same database, with what it asks of it. */
function watched(limits: Parameters<typeof createApiKeys>[2] = {}): Watched {
  const questions: string[][] = [];
  const result: { held: Promise<void> | undefined } = { held: undefined };
  const namespace: Stores['namespace'] = (name) => {
    const store = stores.namespace<never>(name);
    const getMany = store.getMany.bind(store);
    if (name === 'api-keys')
      store.getMany = (async (rows: string[]) => {
        questions.push(rows);
        const { held } = result;
        const values = await getMany(rows);
        await held;
        return values;
      }) as typeof store.getMany;
    return store;
  };
  const keys = createApiKeys({ ...stores, namespace }, () => {}, limits);
  onTestFinished(() => keys.stop());
  return Object.assign(result, { keys, questions });
}

const stranger = (number: number): string => `sk-nobody-${String(number).padStart(10, '0')}`;

describe('a key that nobody has used here', () => {
  test('is read once, however many calls come with it at once, and never again while it is in use', async () => {
    const { value, record } = await office.create({ name: 'cold' });
    const { keys, questions } = watched();
    await keys.load();
    expect(keys.find(value)).toBeUndefined();
    expect(keys.isKnown(value)).toBe(false);
    const found = await Promise.all(Array.from({ length: 100 }, () => keys.lookUp(value)));
    for (const one of found) expect(one).toEqual({ key: record, state: 'valid' });
    expect(questions).toEqual([[record.hash]]);
    expect(keys.find(value)?.key).toEqual(record);
    expect(await keys.lookUp(value)).toEqual({ key: record, state: 'valid' });
    expect(questions).toHaveLength(1);
  });

  test('works at once where its owners are as new as it is', async () => {
    const { keys } = watched();
    await keys.load();
    const { id: organisation } = await office.owners.create({ kind: 'organisation', name: 'Acme' });
    const { id: team } = await office.owners.create({ kind: 'team', name: 'red', organisation });
    const { value } = await office.create({ name: 'new', team });
    const found = await Promise.all(Array.from({ length: 20 }, () => keys.lookUp(value)));
    expect(found.map((one) => one?.state)).toEqual(found.map(() => 'valid'));
    expect(keys.find(value)?.key.owners?.map(({ id }) => id)).toEqual([team, organisation]);
  });

  test('that is revoked while it is being read is not known afterwards', async () => {
    const { value, record } = await office.create({ name: 'cold' });
    for (const how of ['here', 'elsewhere', 'elsewhere among many'] as const) {
      const gateway = watched();
      await gateway.keys.load();
      const late = Promise.withResolvers<void>();
      gateway.held = late.promise;
      const looking = gateway.keys.lookUp(value);
      await expect.poll(() => gateway.questions).toHaveLength(1);
      gateway.held = undefined;
      if (how === 'here') await gateway.keys.update(record.id, { enabled: false });
      else await office.update(record.id, { enabled: false });
      if (how === 'elsewhere among many')
        await stores
          .namespace('api-keys')
          .setMany(Array.from({ length: 1_100 }, (_, index) => ({ key: `no hash ${index}`, value: 1 })));
      await gateway.keys.load();
      late.resolve();
      expect([how, (await looking)?.state]).toEqual([how, 'disabled']);
      expect([how, gateway.keys.find(value)?.state]).toEqual([how, 'disabled']);
      await office.update(record.id, { enabled: true });
    }
  });
});

describe('memory is bounded', () => {
  test('keys that were not used for the longest go first, and work again with one question', async () => {
    const { keys, questions } = watched({ keys: 100 });
    const made = [];
    for (let number = 0; number < 300; number += 1) made.push(await office.create({ name: `key ${number}` }));
    const [busy] = made;
    for (const { value } of made) {
      expect((await keys.lookUp(value))?.state).toBe('valid');
      expect(keys.find(busy?.value ?? '')?.state).toBe('valid');
    }
    expect(keys.held.keys).toBe(100);
    expect(questions).toHaveLength(300);
    expect(keys.find(made[1]?.value ?? '')).toBeUndefined();
    expect((await keys.lookUp(made[1]?.value ?? ''))?.key.name).toBe('key 1');
    expect(questions).toHaveLength(301);
  });

  test('so is what is remembered of secrets that are none, and what they ask of the database', async () => {
    const { keys, questions } = watched({ strangers: 500 });
    const { value } = await office.create({ name: 'good' });
    await keys.lookUp(value);
    for (let round = 0; round < 10; round += 1) {
      const found = await Promise.all(
        Array.from({ length: 900 }, (_, number) => keys.lookUp(stranger(900 * round + number))),
      );
      expect(new Set(found)).toEqual(new Set([undefined]));
      expect(keys.find(value)?.state).toBe('valid');
    }
    expect(keys.held).toEqual({ keys: 1, strangers: 500 });
    // 9,000 secrets; those that wait are asked for together.
    expect(questions.length).toBeLessThanOrEqual(21);
  });

  test('too many that wait at once are turned away, and do not count as no keys', async () => {
    const gateway = watched();
    const late = Promise.withResolvers<void>();
    gateway.held = late.promise;
    const looking = Array.from({ length: 3_000 }, (_, number) => gateway.keys.lookUp(stranger(number)));
    const settled = Promise.allSettled(looking);
    late.resolve();
    const turnedAway = (await settled).filter(({ status }) => status === 'rejected').length;
    expect(turnedAway).toBeGreaterThanOrEqual(1_000);
    expect(turnedAway).toBeLessThanOrEqual(2_000);
    expect(gateway.keys.isKnown(stranger(2_999))).toBe(false);
    expect(await gateway.keys.lookUp(stranger(2_999))).toBeUndefined();
    expect(gateway.keys.isKnown(stranger(2_999))).toBe(true);
  });
});

describe('a secret that is no key', () => {
  test('is not asked for again for half a minute', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    onTestFinished(() => void vi.useRealTimers());
    const { keys, questions } = watched();
    for (let count = 0; count < 5; count += 1) expect(await keys.lookUp(stranger(1))).toBeUndefined();
    expect(questions).toHaveLength(1);
    vi.advanceTimersByTime(30_001);
    expect(await keys.lookUp(stranger(1))).toBeUndefined();
    expect(questions).toHaveLength(2);
  });

  test('is known as soon as it is made a key elsewhere', async () => {
    const { keys } = watched();
    await keys.load();
    const value = 'a-value-that-will-be-a-key';
    expect(await keys.lookUp(value)).toBeUndefined();
    await office.create({ name: 'later', value });
    await keys.load();
    expect((await keys.lookUp(value))?.key.name).toBe('later');
  });
});

test('a running call whose key was let go goes on, and hears when that is revoked', async () => {
  const { keys, questions } = watched({ keys: 1 });
  const { value, record } = await office.create({ name: 'running' });
  const other = await office.create({ name: 'other' });
  await keys.load();
  const key = (await keys.lookUp(value))?.key ?? record;
  await keys.lookUp(other.value);
  await keys.lookUp((await office.create({ name: 'another' })).value);
  expect(keys.find(value)).toBeUndefined();
  expect(keys.current(key)?.state).toBe('valid');
  await expect.poll(() => keys.find(value)?.state).toBe('valid');
  await keys.lookUp(other.value);
  await keys.lookUp((await office.create({ name: 'one more' })).value);
  await office.revoke(record.id);
  await keys.load();
  await expect.poll(() => keys.current(key)).toBeUndefined();
  expect(questions.flat().filter((row) => row === hash('sha256', value)).length).toBeGreaterThanOrEqual(2);
});

test('while the database fails, keys in use work, and it is not said of others that they are none', async () => {
  const { keys } = watched();
  const used = await office.create({ name: 'used' });
  const cold = await office.create({ name: 'cold' });
  await keys.load();
  await keys.lookUp(used.value);
  stores.database.close();
  expect(keys.find(used.value)?.state).toBe('valid');
  await expect(keys.lookUp(cold.value)).rejects.toThrow(/not open|finalized|closed/);
  expect(keys.isKnown(cold.value)).toBe(false);
  expect(keys.current(cold.record)?.state).toBe('valid');
});
