import { afterEach, beforeEach, expect, test } from 'vitest';
import type { ProviderObject } from '../../core/model/provider-objects.ts';
import { openLedger } from '../../core/money/ledger/open.ts';
import type { ObjectStore } from '../../core/money/provider-objects/index.ts';
import { openObjectStore } from '../../core/money/provider-objects/open.ts';
import { openUsageLog } from '../../core/money/usage-log/open.ts';
import { rows, sqlOf } from '../../core/state/database/sql.ts';
import { openStores, type Stores } from '../../core/state/stores.ts';
import { settlementOf } from './ledger-suite.ts';

const kind = 'chat-completions/files';
let count = 0;

/** Contract of every store of providers' objects. Two stores on one database stand for two gateways. */
export function providerObjectsSuite(newUrl: () => string | Promise<string>): void {
  let opened: Stores[];
  let first: ObjectStore;
  let second: ObjectStore;
  const reports: Error[] = [];

  beforeEach(async () => {
    const url = await newUrl();
    opened = [openStores(url), openStores(url)];
    [first, second] = opened.map((stores) =>
      openObjectStore({ stores, ledger: openLedger(stores) }, (error) => reports.push(error)),
    ) as [ObjectStore, ObjectStore];
  });
  afterEach(async () => {
    await Promise.all(opened.map((stores) => stores.close()));
    expect(reports).toEqual([]);
  });

  const newObject = (given: Partial<ProviderObject> = {}): ProviderObject => {
    count += 1;
    return {
      owner: `key_${count}`,
      kind,
      id: `file-${count}`,
      channel: 'c',
      key: 'k',
      createdAt: 1_700_000_000_000 + count,
      seen: { id: `file-${count}`, name: 'the \u{1F315}\0' },
      known: { models: ['m'] },
      ...given,
    };
  };
  const charge = { id: 'batch_1', asks: 0, refusals: 0, deadline: 2e12 };
  const lease = (name: string, milliseconds = 600_000) => ({ name, milliseconds });

  test('what one gateway keeps the other finds, for its owner alone', async () => {
    const object = newObject();
    await first.create(object);
    expect(await second.find(object.owner, kind, object.id)).toEqual(object);
    expect(await second.find('key_other', kind, object.id)).toBeUndefined();
    expect(await second.find(object.owner, 'messages/files', object.id)).toBeUndefined();
    expect(await second.isOwned(kind, object.id)).toBe(true);
    expect(await second.isOwned(kind, 'file-unknown')).toBe(false);
    await first.see(object, { id: object.id, status: 'processed' });
    expect(await second.find(object.owner, kind, object.id)).toMatchObject({ seen: { status: 'processed' } });
    const gone = await Promise.all([first.remove(object), second.remove(object)]);
    expect(gone.toSorted()).toEqual([false, true]);
    expect(await second.find(object.owner, kind, object.id)).toBeUndefined();
  });

  test('an id that a provider gives away anew belongs to its new owner, and at another provider to both', async () => {
    const old = newObject();
    const elsewhere = { ...old, owner: 'key_elsewhere', channel: 'd' };
    await first.create(old);
    await first.create(elsewhere);
    expect(await first.find(old.owner, kind, old.id)).toEqual(old);
    await second.create({ ...old, owner: 'key_new' });
    expect(await first.find(old.owner, kind, old.id)).toBeUndefined();
    expect(await first.find(elsewhere.owner, kind, old.id)).toEqual(elsewhere);
  });

  test('pages go on behind an id and in front of one, in both orders', async () => {
    const owner = 'key_pages';
    const made = Array.from({ length: 5 }, () => newObject({ owner }));
    for (const one of made) await first.create(one);
    await first.create(newObject());
    const ids = made.map(({ id }) => id);
    const page = async (query: Parameters<ObjectStore['list']>[2]) => {
      const found = await second.list(owner, kind, query);
      return found && [found.objects.map(({ id }) => id), found.hasMore];
    };
    expect(await page({ order: 'asc', limit: 3 })).toEqual([ids.slice(0, 3), true]);
    expect(await page({ order: 'asc', limit: 3, after: ids[2] ?? '' })).toEqual([ids.slice(3), false]);
    expect(await page({ order: 'desc', limit: 2 })).toEqual([[ids[4], ids[3]], true]);
    expect(await page({ order: 'desc', limit: 2, after: ids[1] ?? '' })).toEqual([[ids[0]], false]);
    expect(await page({ order: 'desc', limit: 2, before: ids[0] ?? '' })).toEqual([[ids[2], ids[1]], true]);
    expect(await page({ order: 'desc', limit: 2, after: 'file-unknown' })).toBeUndefined();
  });

  test('of two gateways one asks about a batch, and it is charged once, with what it has left behind', async () => {
    const batch = newObject({ charge });
    await first.create(batch, { pollAt: Date.now() - 1 });
    await first.create(newObject());
    const claims = [await first.claim(lease('one'), 10), await second.claim(lease('two'), 10)];
    expect(claims.map(({ length }) => length)).toEqual([1, 0]);
    expect(claims[0]).toEqual([batch]);
    expect(await second.claimOne(lease('two'), batch)).toBeUndefined();
    expect(await second.later(lease('two'), batch, 0)).toBe(false);
    const now = { ...batch, charge: { ...charge, asks: 1 } };
    expect(await first.later(lease('one'), now, Date.now() + 1e9)).toBe(true);
    expect(await second.claim(lease('two'), 10)).toEqual([]);
    expect(await second.claimOne(lease('two'), batch)).toEqual(now);
    const left = newObject({ owner: batch.owner, seen: {} });
    const settlement = settlementOf(batch.owner, undefined, 500, 3);
    const done = await Promise.all([
      first.settle(now, [settlement], [left]),
      second.settle(now, [settlement], [left]),
    ]);
    expect(done.toSorted()).toEqual([false, true]);
    const { charge: _charged, ...settled } = now;
    expect(await first.find(batch.owner, kind, batch.id)).toEqual(settled);
    expect(await first.find(batch.owner, kind, left.id)).toEqual(left);
    expect(await first.claimOne(lease('one'), batch)).toBeUndefined();
    const [stores] = opened;
    if (stores === undefined) throw new Error('There are no stores.');
    const [total] = await openLedger(stores).states(batch.owner, [
      { unit: 'token', period: 'total', amount: 1e9 },
    ]);
    expect(total?.spent).toBe(3);
    expect((await openUsageLog(stores).page({}, 10)).records).toHaveLength(1);
  });

  test('what is claimed for a batch is held with it, for as long as it says, and given back when it is charged, once', async () => {
    const [stores] = opened;
    if (stores === undefined) throw new Error('There are no stores.');
    const ledger = openLedger(stores);
    const budget = { unit: 'token', period: 'total', amount: 100 } as const;
    const standing = async (owner: string) => {
      const [state] = await ledger.states(owner, [budget]);
      return [state?.spent, state?.reserved];
    };
    const reserve = (owner: string, milliseconds?: number) =>
      ledger.reserve(owner, [budget], { microDollars: 0, tokens: 60 }, milliseconds);
    for (const isLate of [false, true]) {
      const batch = newObject();
      // The lease of a claim while its batch is made; one has run out by then.
      const reservation = await reserve(batch.owner, isLate ? -1 : 600_000);
      if (isLate) await ledger.sweep();
      const held = { ...batch, charge: { ...charge, reservation: reservation.id } };
      await first.create(held, { pollAt: Date.now() + 1e9, reservation: { ...reservation, lease: 1e9 } });
      // Whoever renews it as a claim of a call makes it no shorter.
      await ledger.renew([reservation]);
      const [{ expires } = { expires: 0 }] = await sqlOf(stores.database).run(() =>
        rows('SELECT expires FROM ledger_reservations WHERE id = ?', reservation.id),
      );
      expect(Number(expires)).toBeGreaterThan(Date.now() + 9e8);
      expect(await standing(batch.owner)).toEqual([0, 60]);
      await expect(reserve(batch.owner)).rejects.toThrow('does not allow');
      const settlement = settlementOf(batch.owner, reservation, 0, 7);
      const done = await Promise.all([
        first.settle(held, [settlement], []),
        second.settle(held, [settlement], []),
      ]);
      expect(done.toSorted()).toEqual([false, true]);
      expect(await standing(batch.owner)).toEqual([7, 0]);
    }
    // One that has come to nothing.
    const batch = newObject();
    const reserved = await reserve(batch.owner);
    const held = { ...batch, charge: { ...charge, reservation: reserved.id } };
    await first.create(held, { pollAt: Date.now() + 1e9, reservation: { ...reserved, lease: 1e9 } });
    expect(await second.settle(held, [], [])).toBe(true);
    expect(await standing(batch.owner)).toEqual([0, 0]);
  });

  test('of two changes of one object one counts, and is charged with it', async () => {
    const [stores] = opened;
    if (stores === undefined) throw new Error('There are no stores.');
    const spent = async (owner: string): Promise<number | undefined> => {
      const budget = { unit: 'token', period: 'total', amount: 1e9 } as const;
      const [state] = await openLedger(stores).states(owner, [budget]);
      return state?.spent;
    };
    const [object, other] = [newObject(), newObject()];
    await first.create(object);
    await first.create(other);
    const changed = (tokens: number): ProviderObject => ({ ...object, known: { tokens } });
    const charged = (tokens: number) => [settlementOf(object.owner, undefined, 0, tokens)];
    const done = await Promise.all([
      first.change(object, changed(5), charged(5)),
      second.change(object, changed(7), charged(7)),
    ]);
    expect(done.toSorted()).toEqual([false, true]);
    const now = await first.find(object.owner, kind, object.id);
    expect([now?.known['tokens'], await spent(object.owner)]).toEqual(done[0] ? [5, 5] : [7, 7]);
    // Removed as it was seen, and not as it is.
    expect(await second.change(object, undefined, charged(100))).toBe(false);
    expect(await first.find(object.owner, kind, object.id)).toEqual(now);
    expect(await second.change(now ?? object, undefined, charged(3))).toBe(true);
    expect(await first.find(object.owner, kind, object.id)).toBeUndefined();
    expect(await first.find(other.owner, kind, other.id)).toEqual(other);
    expect(await first.change(now ?? object, changed(1), charged(100))).toBe(false);
    expect(await spent(object.owner)).toBe(done[0] ? 8 : 10);
  });

  test('an object that is damaged in the database counts as missing, and is reported', async () => {
    const [object, sound] = [newObject(), newObject()];
    await first.create(object);
    await first.create({ ...sound, owner: object.owner });
    const [stores] = opened;
    await sqlOf(stores!.database).run(() =>
      rows(
        'UPDATE provider_objects SET details = ? WHERE id = ? RETURNING id',
        '{"seen":[],"known":{}}',
        object.id,
      ),
    );
    expect(await second.find(object.owner, kind, object.id)).toBeUndefined();
    expect(reports.splice(0).map(({ message }) => message)).toEqual([
      `${kind} ${object.id} is damaged in the database and counts as missing.`,
    ]);
    const page = await second.list(object.owner, kind, { order: 'asc', limit: 10 });
    expect(page?.objects.map(({ id }) => id)).toEqual([sound.id]);
    expect(reports.splice(0)).toHaveLength(1);
  });

  test('a claim whose gateway is gone is taken over', async () => {
    const batch = newObject({ charge });
    await first.create(batch, { pollAt: 1 });
    expect(await first.claim(lease('one', -1), 10)).toHaveLength(1);
    expect(await second.claim(lease('two'), 10)).toHaveLength(1);
    expect(await first.later(lease('one'), batch, 0)).toBe(false);
  });

  test('a description that is too long is not kept, and the object is', async () => {
    const object = newObject({ seen: { text: 'x'.repeat(100_000) } });
    await first.create(object);
    expect(await second.find(object.owner, kind, object.id)).toEqual({ ...object, seen: {} });
  });
}
