import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { matchesModel } from '../../../core/sdk/allowed-models.ts';
import type { ApiKeys } from '../../../core/state/api-keys/index.ts';
import { createApiKeys } from '../../../core/state/api-keys/open.ts';
import { openStores, type Stores } from '../../../core/state/stores.ts';
import { inOtherProcess, temporaryDatabase } from './support.ts';
import { connectionOf } from '../../support/sqlite.ts';

let stores: Stores;
let keys: ApiKeys;
beforeEach(() => {
  stores = openStores('sqlite::memory:');
  keys = createApiKeys(stores);
  return () => stores.close();
});

/** A second gateway, or the command line, on the same database. */
function another(report?: (error: Error) => void): ApiKeys {
  return createApiKeys(stores, report);
}

describe('a new key', () => {
  test('is sk- and 48 base62 characters, all equally likely', async () => {
    const values = await Promise.all(
      Array.from({ length: 200 }, async (_, number) => (await keys.create({ name: `key ${number}` })).value),
    );
    for (const value of values) expect(value).toMatch(/^sk-[0-9A-Za-z]{48}$/);
    expect(new Set(values).size).toBe(200);
    const counts = new Map<string, number>();
    for (const letter of values.map((value) => value.slice(3)).join('')) {
      counts.set(letter, (counts.get(letter) ?? 0) + 1);
    }
    // 9,600 letters are 155 of each, give or take 12; the bounds are 6 standard deviations away.
    expect(counts.size).toBe(62);
    for (const count of counts.values()) expect(Math.abs(count - 155)).toBeLessThan(75);
  });

  test('works at once, and has what it was given', async () => {
    const expiresAt = Date.now() + 60_000;
    const { record, value } = await keys.create({
      name: 'laptop',
      note: 'of Ada',
      models: ['gpt-*'],
      expiresAt,
    });
    expect(keys.find(value)).toEqual({ key: record, state: 'valid' });
    expect(record).toMatchObject({
      name: 'laptop',
      note: 'of Ada',
      models: ['gpt-*'],
      expiresAt,
      enabled: true,
      prefix: value.slice(0, 7),
      suffix: value.slice(-4),
      hash: hash('sha256', value),
    });
    expect(record.id).toMatch(/^key_[0-9A-Za-z]{16}$/);
  });

  test('cannot be read out of the database file', async () => {
    const url = temporaryDatabase();
    const onDisk = openStores(url);
    const { value } = await createApiKeys(onDisk).create({ name: 'laptop' });
    await onDisk.close();
    const file = readFileSync(url.replace('sqlite:', ''), 'latin1');
    expect(file).toContain(value.slice(0, 7));
    expect(file).not.toContain(value.slice(7, -4));
  });

  test('may have a value that the operator chose, once', async () => {
    const { record } = await keys.create({ name: 'bootstrap', value: 'correct-horse-battery' });
    expect(keys.find('correct-horse-battery')?.state).toBe('valid');
    expect(record).toMatchObject({ prefix: 'corre', suffix: 'ry' });
    await expect(another().create({ name: 'again', value: 'correct-horse-battery' })).rejects.toThrow(
      'There is a key with this value already.',
    );
  });

  test.each([
    ['a value that is too short', { name: 'a', value: 'sk-short' }, '16 to 256 visible ASCII characters'],
    ['a value that no header can carry', { name: 'a', value: 'sk-with a space in it' }, 'without spaces'],
    ['no name', { name: ' ' }, 'The API key cannot be saved: name: must not be empty.'],
    [
      'an empty list of models',
      { name: 'a', models: [] },
      'models: must not be empty: leave it out to allow every model',
    ],
    [
      'an expiry in seconds',
      { name: 'a', expiresAt: 1_900_000_000 },
      'expiresAt: must lie in the future, in milliseconds',
    ],
    [
      'a limit of half a call',
      { name: 'a', requestsPerMinute: 0.5 },
      'requestsPerMinute: must be a whole number',
    ],
  ])('with %s is refused with a sentence', async (_, options, sentence) => {
    await expect(keys.create(options)).rejects.toThrow(sentence);
    expect(await keys.list()).toEqual([]);
  });

  test('that could not be saved is not handed out', async () => {
    await stores.close();
    await expect(keys.create({ name: 'laptop' })).rejects.toThrow(/finalized|not open/);
  });
});

describe('a secret that comes with a request', () => {
  test('is unknown unless it is exactly that of a key', async () => {
    const { record, value } = await keys.create({ name: 'laptop' });
    const wrong = [
      '',
      ' ',
      value.slice(0, -1),
      `${value}x`,
      value.toLowerCase(),
      record.id,
      record.hash,
      'x'.repeat(70_000),
    ];
    for (const secret of wrong) expect(keys.find(secret)).toBeUndefined();
  });

  test('is told to be expired from the moment on, and disabled before that', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    onTestFinished(() => void vi.useRealTimers());
    const { record, value } = await keys.create({ name: 'laptop', expiresAt: Date.now() + 1_000 });
    vi.advanceTimersByTime(999);
    expect(keys.find(value)?.state).toBe('valid');
    vi.advanceTimersByTime(1);
    expect(keys.find(value)).toEqual({ key: record, state: 'expired' });
    await keys.update(record.id, { enabled: false });
    expect(keys.find(value)?.state).toBe('disabled');
  });

  test('is known again after a restart', async () => {
    const { record, value } = await keys.create({ name: 'laptop', models: ['a', 'b-*'], concurrency: 3 });
    const restarted = another();
    expect(restarted.find(value)).toBeUndefined();
    expect(await restarted.lookUp(value)).toEqual({ key: record, state: 'valid' });
    expect(restarted.find(value)).toEqual({ key: record, state: 'valid' });
  });

  test('is found among ten thousand', async () => {
    const { value } = await keys.create({ name: 'laptop' });
    const template = (await keys.list())[0];
    await stores.namespace('api-keys').setMany(
      Array.from({ length: 10_000 }, (_, number) => ({
        key: hash('sha256', `sk-${number}`),
        value: { ...template, id: `key_${number}`, hash: hash('sha256', `sk-${number}`) },
      })),
    );
    await keys.load();
    expect(keys.find(value)).toMatchObject({ state: 'valid', key: { name: 'laptop' } });
  });
});

describe('updating', () => {
  test('changes what is named, keeps the rest, and takes away what is undefined', async () => {
    const { record, value } = await keys.create({
      name: 'laptop',
      note: 'old',
      models: ['a'],
      concurrency: 2,
    });
    const budgets = [{ unit: 'micro-dollar', period: 'month', amount: 5_000_000 }] as const;
    const changed = await keys.update(record.id, { name: 'desktop', models: undefined, budgets });
    const { models: _, ...rest } = record;
    expect(changed).toEqual({ ...rest, name: 'desktop', budgets });
    expect(keys.find(value)?.key).toEqual(changed);
    expect(await another().list()).toEqual([changed]);
  });

  test('never changes what a key is', async () => {
    const { record, value } = await keys.create({ name: 'laptop' });
    // As it may come from outside, where no compiler looks.
    const changes: object = { name: 'desktop', id: 'key_x', hash: 'y', createdAt: 0 };
    expect(await keys.update(record.id, changes)).toEqual({ ...record, name: 'desktop' });
    expect(keys.find(value)?.state).toBe('valid');
  });

  test('to something impossible leaves the key as it was', async () => {
    const { record, value } = await keys.create({ name: 'laptop' });
    await expect(keys.update(record.id, { tokensPerMinute: 0 })).rejects.toThrow(
      'tokensPerMinute: must be at least 1',
    );
    expect(keys.find(value)?.key).toEqual(record);
  });

  test('does not undo what another process has changed since', async () => {
    const { record } = await keys.create({ name: 'laptop' });
    await another().update(record.id, { enabled: false });
    expect(await keys.update(record.id, { note: 'lost' })).toMatchObject({ enabled: false, note: 'lost' });
  });

  test('does not undo what another process changes while the keys are being read', async () => {
    const { record } = await keys.create({ name: 'early', value: valueWithHash(/^00/) });
    await Promise.all(Array.from({ length: 1_000 }, (_, number) => keys.create({ name: `key ${number}` })));
    const loading = keys.load();
    await setImmediate();
    await stores.namespace('api-keys').set(record.hash, { ...record, enabled: false });
    expect(await keys.update(record.id, { note: 'lost' })).toMatchObject({ enabled: false, note: 'lost' });
    await loading;
  });
});

describe('revoking', () => {
  test.each([
    ['its id', ({ id }: { id: string }) => id],
    ['its name', () => 'laptop'],
    ['its first characters', (_: unknown, value: string) => value.slice(0, 7)],
    ['first and last characters', (_: unknown, value: string) => `${value.slice(0, 7)}...${value.slice(-4)}`],
    ['the whole secret', (_: unknown, value: string) => value],
  ])('by %s ends that key and no other', async (_, which) => {
    const { record, value } = await keys.create({ name: 'laptop', value: `sk-aaaa${'b'.repeat(44)}` });
    const other = await keys.create({ name: 'desktop', value: `sk-cccc${'b'.repeat(44)}` });
    expect(await another().revoke(which(record, value))).toEqual(record);
    await keys.load();
    expect(keys.find(value)).toBeUndefined();
    expect(keys.find(other.value)?.state).toBe('valid');
    expect((await keys.list()).map(({ id }) => id)).toEqual([other.record.id]);
  });

  test('takes effect at once in the same process', async () => {
    const { value } = await keys.create({ name: 'laptop' });
    await keys.revoke('laptop');
    expect(keys.find(value)).toBeUndefined();
  });

  test('of nothing, or of one of several, is refused with a sentence', async () => {
    const made = [await keys.create({ name: 'laptop' }), await keys.create({ name: 'laptop' })];
    await expect(keys.revoke('desktop')).rejects.toThrow('There is no key "desktop".');
    await expect(keys.revoke(`sk-AbCd${'x'.repeat(44)}`)).rejects.toThrow('There is no key "sk-AbCd…".');
    const listed = (await keys.list()).map(({ id }) => `${id} (laptop)`).join(', ');
    await expect(keys.revoke('laptop')).rejects.toThrow(
      `"laptop" matches ${made.length} keys. Use the id of one: ${listed}.`,
    );
    expect(await keys.list()).toHaveLength(2);
  });

  test('is not undone by a change that was under way', async () => {
    const { record, value } = await keys.create({ name: 'laptop' });
    await Promise.allSettled([keys.update(record.id, { note: 'late' }), keys.revoke(record.id)]);
    expect(await another().list()).toEqual([]);
    expect(keys.find(value)).toBeUndefined();
  });

  test('finds a key that is given another secret at the same time', async () => {
    const { record } = await keys.create({ name: 'laptop' });
    const [rotated, revoked] = await Promise.allSettled([
      keys.rotate(record.id),
      another().revoke(record.id),
    ]);
    expect(revoked.status).toBe('fulfilled');
    await keys.load();
    if (rotated.status === 'fulfilled') expect(keys.find(rotated.value.value)).toBeUndefined();
    expect(await another().list()).toEqual([]);
  });

  test('leaves the names of keys, however many, for records of their calls', async () => {
    const made = await Promise.all(
      Array.from({ length: 1_201 }, (_, index) => keys.create({ name: `key ${index}` })),
    );
    const [kept, ...gone] = made.map(({ record }) => record);
    for (const { id } of gone) await keys.revoke(id);
    await keys.update(kept?.id ?? '', { name: 'renamed' });
    const names = await another().names([...made.map(({ record }) => record.id), 'no-key', '__proto__']);
    expect(names).toEqual(
      new Map([[kept?.id, 'renamed'], ...gone.map(({ id, name }) => [id, name] as const)]),
    );
    expect(await another().list()).toHaveLength(1);
  });

  test('is not undone by a process that notes a late use of the key', async () => {
    const { record, value } = await keys.create({ name: 'laptop' });
    const gateway = another();
    await gateway.lookUp(value);
    await keys.revoke(record.id);
    await gateway.stop();
    expect(await another().list()).toEqual([]);
  });
});

describe('last use', () => {
  test('is listed, also by another process once the gateway has stopped', async () => {
    const { value } = await keys.create({ name: 'laptop' });
    await keys.create({ name: 'unused' });
    const before = Date.now();
    keys.find(value);
    const lastUse = (await keys.list()).find(({ name }) => name === 'laptop')?.lastUsedAt;
    expect(lastUse).toBeGreaterThanOrEqual(before);
    await keys.stop();
    const listed = await another().list();
    expect(listed.find(({ name }) => name === 'laptop')?.lastUsedAt).toBe(lastUse);
    expect(listed.find(({ name }) => name === 'unused')).not.toHaveProperty('lastUsedAt');
  });

  test('does not count when the key was refused', async () => {
    const { record, value } = await keys.create({ name: 'laptop' });
    await keys.update(record.id, { enabled: false });
    keys.find(value);
    expect((await keys.list())[0]).not.toHaveProperty('lastUsedAt');
  });

  test('is written down every minute', async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const { value } = await keys.create({ name: 'laptop' });
    keys.startRefreshing();
    keys.find(value);
    await vi.advanceTimersByTimeAsync(61_000);
    expect((await another().list())[0]?.lastUsedAt).toBeDefined();
    await keys.stop();
  });
});

describe('several processes on one database', () => {
  test('a key made, and then revoked, by another process takes effect', async () => {
    const url = temporaryDatabase();
    const shared = openStores(url);
    onTestFinished(() => shared.close());
    const gateway = createApiKeys(shared);
    await gateway.load();
    gateway.startRefreshing();
    onTestFinished(() => gateway.stop());

    const value = await inOtherProcess(url, 'create-key', 'made elsewhere');
    expect((await gateway.lookUp(value))?.state).toBe('valid');
    await inOtherProcess(url, 'revoke-key', 'made elsewhere');
    await expect.poll(() => gateway.find(value)).toBeUndefined();
  });

  test('writes of other things, and of other keys, do not make keys be read', async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const report = vi.fn<(error: Error) => void>();
    const { record, value } = await keys.create({ name: 'laptop' });
    const gateway = another(report);
    await gateway.load();
    gateway.startRefreshing();
    expect((await gateway.lookUp(value))?.key).toEqual(record);
    await stores.namespace('things').set('a', 1);
    await stores.namespace('api-keys').set('not a hash', 'reported when it is read');
    await vi.advanceTimersByTimeAsync(5_000);
    await keys.revoke(record.id);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(gateway.find(value)).toBeUndefined();
    expect(gateway.isKnown(value)).toBe(true);
    // So many at once that all that are held are read again.
    const kept = await keys.create({ name: 'kept' });
    await gateway.lookUp(kept.value);
    await keys.update(kept.record.id, { note: 'changed' });
    await stores
      .namespace('api-keys')
      .setMany(Array.from({ length: 1_100 }, (_, index) => ({ key: `no hash ${index}`, value: 'nothing' })));
    await vi.advanceTimersByTimeAsync(5_000);
    expect(gateway.find(kept.value)?.key.note).toBe('changed');
    expect(report).not.toHaveBeenCalled();
    await gateway.stop();
  });

  test('a key made while the keys are being read is not lost from memory', async () => {
    await Promise.all(Array.from({ length: 500 }, (_, number) => keys.create({ name: `key ${number}` })));
    const loading = keys.load();
    // Sorts before all others, so that the reading is past its place.
    const early = await keys.create({ name: 'early', value: valueWithHash(/^00/) });
    const [victim] = await stores.namespace<{ name: string }>('api-keys').get([early.record.hash]);
    expect(victim?.name).toBe('early');
    await loading;
    expect(keys.find(early.value)?.state).toBe('valid');
  });
});

test('a key that is changed here and revoked elsewhere before the change is known here stays revoked', async () => {
  const known = Promise.withResolvers<void>();
  const changed = Promise.withResolvers<void>();
  const gateway = createApiKeys({
    ...stores,
    async change(...change) {
      const written = await stores.change(...change);
      changed.resolve();
      await known.promise;
      return written as never;
    },
  });
  const { record, value } = await keys.create({ name: 'laptop' });
  await gateway.load();
  await gateway.lookUp(value);
  const changing = gateway.update(record.id, { note: 'changed' });
  await changed.promise;
  await keys.revoke(record.id);
  await gateway.load();
  expect(gateway.find(value)).toBeUndefined();
  known.resolve();
  await changing;
  await gateway.load();
  expect(gateway.find(value)).toBeUndefined();
  expect(await gateway.byId(record.id)).toBeUndefined();
});

describe('when the database is in a bad way', () => {
  test('one unreadable record is reported, and every other key works', async () => {
    const report = vi.fn<(error: Error) => void>();
    const good = await keys.create({ name: 'good' });
    const torn = await keys.create({ name: 'torn' });
    const swapped = await keys.create({ name: 'swapped' });
    const widened = await keys.create({ name: 'widened', models: ['a'] });
    writeRow(torn.record.hash, '{"value":{"id":"key_');
    writeRow(swapped.record.hash, JSON.stringify({ value: good.record }));
    writeRow(widened.record.hash, JSON.stringify({ value: { ...widened.record, models: 'a' } }));
    const gateway = another(report);
    expect((await gateway.lookUp(good.value))?.state).toBe('valid');
    for (const { value } of [torn, swapped, widened]) expect(await gateway.lookUp(value)).toBeUndefined();
    const sentences = report.mock.calls.map(([error]) => error.message).toSorted();
    expect(sentences).toEqual(
      [
        `The API key stored as ${swapped.record.hash.slice(0, 12)}… does not work: it is the record of another key.`,
        `The API key stored as ${widened.record.hash.slice(0, 12)}… does not work: models: Invalid input: expected array, received string.`,
      ].toSorted(),
    );
  });

  test('keys in memory go on working, and it is said once, not every second', async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const report = vi.fn<(error: Error) => void>();
    const { value } = await keys.create({ name: 'laptop' });
    const gateway = another(report);
    await gateway.load();
    await gateway.lookUp(value);
    gateway.startRefreshing();
    stores.database.close();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(gateway.find(value)?.state).toBe('valid');
    const sentences = () => report.mock.calls.map(([error]) => error.message);
    expect(sentences()).toEqual(['API keys could not be refreshed; those in memory go on working.']);
    await gateway.stop();
    expect(sentences().at(-1)).toBe('When API keys were last used could not be saved.');
  });

  test('a reading that goes on when the gateway stops is no fault', async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const report = vi.fn<(error: Error) => void>();
    let isClosed = false;
    const slow = new Proxy(stores, {
      get(target, name: keyof Stores) {
        if (name !== 'revision') return target[name];
        return async (namespace: string) => {
          if (isClosed) throw new Error('The database is closed.');
          await new Promise((resolve) => setTimeout(resolve, 10));
          return target.revision(namespace);
        };
      },
    });
    const gateway = createApiKeys(slow, report);
    const loading = gateway.load();
    await vi.advanceTimersByTimeAsync(100);
    await loading;
    gateway.startRefreshing();
    await vi.advanceTimersByTimeAsync(1_005);
    const stopping = gateway.stop().then(() => (isClosed = true));
    await vi.advanceTimersByTimeAsync(1_000);
    await stopping;
    expect(report).not.toHaveBeenCalled();
  });
});

describe('models of a key', () => {
  test.each([
    [['gpt-5'], ['gpt-5'], ['gpt-5-mini', 'GPT-5', 'my-gpt-5', '']],
    [['*'], ['', 'anything'], []],
    [['gpt-*'], ['gpt-', 'gpt-5', 'gpt-5-mini'], ['gpt', 'x-gpt-5']],
    [['*-mini'], ['gpt-5-mini', '-mini'], ['gpt-5-mini-high', 'mini']],
    [['a*b*c'], ['abc', 'a1b2c', 'abcbc', 'abbc'], ['ac', 'acb', 'ab', 'abcx']],
    [['a*bc*c'], ['abcc', 'abcxc'], ['abc', 'acbc']],
    [['ab*ba'], ['abba', 'abxba'], ['aba', 'ab']],
    [['a**b'], ['ab', 'axb'], ['a', 'b']],
    [
      ['a.c', '[x]*', '$'],
      ['a.c', '[x]', '[x]y', '$'],
      ['abc', 'x'],
    ],
    [
      ['one', 'two-*'],
      ['one', 'two-3'],
      ['two', 'one-3'],
    ],
    [[], [], ['', 'anything']],
  ])('%j', (patterns, allowed, refused) => {
    expect(allowed.filter((model) => !matchesModel(patterns, model))).toEqual([]);
    expect(refused.filter((model) => matchesModel(patterns, model))).toEqual([]);
  });

  test('are all models when the key has no list', () => {
    expect(matchesModel(undefined, 'anything')).toBe(true);
  });

  test('are decided without trying every way to place the stars: that would never end here', () => {
    expect(matchesModel([`${'*a'.repeat(40)}*b*`], 'a'.repeat(100_000))).toBe(false);
  });
});

function writeRow(row: string, value: string): void {
  connectionOf(stores).prepare('UPDATE keyv SET value = ? WHERE key = ?').run(value, row);
}

function valueWithHash(pattern: RegExp): string {
  for (let number = 0; ; number += 1) {
    const value = `sk-contrived-value-${number}`;
    if (pattern.test(hash('sha256', value))) return value;
  }
}
