import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { caller, type ApiKey, type JsonObject } from 'sluice';
import type { ProviderObject } from '../../../core/model/provider-objects.ts';
import type { Settlement } from '../../../core/money/ledger/index.ts';
import {
  reserveExtension,
  reserveStorage,
  forget,
  keepLonger,
  type StorageReservation,
} from '../../../plugins/provider-objects/cache-storage.ts';
import type { ObjectServices } from '../../../plugins/provider-objects/services.ts';
import type { Format } from '../../../core/sdk/format.ts';
import { formatNamed } from '../../../core/sdk/testing/formats.ts';
import { testCall } from '../../support/call.ts';

const hour = 3_600_000;
const now = Date.parse('2026-01-01T00:00:00Z');
const at = (milliseconds: number): string => new Date(milliseconds).toISOString();

beforeEach(() => void vi.useFakeTimers({ now, toFake: ['Date'] }));
afterEach(() => void vi.useRealTimers());

interface Reserved {
  readonly microDollars: number;
  readonly tokens: number;
}

/** A gateway whose keys are charged a dollar for a million tokens and an hour of `priced-*`. */
function stage(format?: Format, traits: readonly object[] = []) {
  const reserved: Reserved[] = [];
  const released: string[] = [];
  const around = {
    cacheStorage: { 'priced-*': 1, 'priced-dear': 4, free: 0 },
    tools: {
      bookkeeper: {
        reserve: (_key: string, _budgets: unknown, most: Reserved) => {
          reserved.push(most);
          return Promise.resolve({ id: `claim-${reserved.length}` });
        },
        release: (id: string) => void released.push(id),
      },
      catalog: { targets: () => traits },
      format: () => format,
    },
  } as unknown as ObjectServices;
  return { around, reserved, released };
}

const account = { channel: { id: 'google', upstreamModel: (model: string) => `priced-${model}` } } as never;

function callOf(key?: Partial<ApiKey>) {
  const { call } = testCall();
  if (key !== undefined) call.set(caller, key as ApiKey);
  return call;
}
const inDollars = { id: 'k', budgets: [{ unit: 'micro-dollar' }] } as unknown as ApiKey;
const inTokens = { id: 'k', budgets: [{ unit: 'token' }] } as unknown as ApiKey;

/** A content as it is kept: of a million tokens, from now for two hours. */
const storage = {
  id: 'cache_1',
  model: 'm',
  upstreamModel: 'priced-m',
  channel: 'google',
  price: 1,
  tokens: 1_000_000,
  from: now,
  until: now + 2 * hour,
  microDollars: 2_000_000,
  count: 1,
};
const objectOf = (more: Partial<typeof storage> = {}, owner = 'k'): ProviderObject =>
  ({
    owner,
    kind: 'generate-content/cachedContents',
    id: 'c',
    seen: {},
    known: { other: 1, storage: { ...storage, ...more } },
  }) as unknown as ProviderObject;

describe('a new content', () => {
  const reserve = async (body: JsonObject, key: ApiKey | undefined = inDollars, model = 'm') => {
    const all = stage();
    const made = await reserveStorage(callOf(key), account, { model, body }, all.around);
    return { ...all, made };
  };
  const size = (body: JsonObject): number => Buffer.byteLength(JSON.stringify(body));

  test('is reserved for as long as it is wanted, with a minute more for the provider’s clock', async () => {
    const minute = hour / 60;
    for (const [body, life] of [
      [{ ttl: '7200s' }, 2 * hour],
      [{ ttl: '1.5s' }, 1500],
      [{ expireTime: at(now + 3 * hour) }, 3 * hour],
      [{ expire_time: at(now + 3 * hour) }, 3 * hour],
      [{}, hour],
      [{ ttl: null }, hour],
    ] as const) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      const { reserved } = await reserve(body);
      const cost = Math.ceil((size(body) * (life + minute)) / hour);
      expect(reserved).toEqual([{ microDollars: cost, tokens: 0 }]);
    }
  });

  test('is reserved for the tokens that it may have, and for no more than its model reads there', async () => {
    const format = await formatNamed('generate-content');
    const body = { ttl: '3540s', contents: [{ role: 'user', parts: [{ text: 'many words '.repeat(400) }] }] };
    const reservedWith = async (traits: readonly object[], content: JsonObject = body): Promise<number> => {
      const { around, reserved } = stage(format, traits);
      await reserveStorage(callOf(inDollars), account, { model: 'm', body: content }, around);
      return reserved[0]?.microDollars ?? 0;
    };
    const limitAt = (id: string, inputLimit: number) => ({ channel: { id }, traits: { inputLimit } });
    const free = await reservedWith([]);
    expect(free).toBeGreaterThan(300);
    expect(free).toBeLessThan(size(body));
    expect(await reservedWith([limitAt('other', 5), limitAt('google', 100)])).toBe(100);
    expect(await reservedWith([limitAt('other', 5)])).toBe(free);
    // Its provider will say what is wrong with it.
    const damaged = { ttl: '3540s', contents: 7 };
    expect(await reservedWith([], damaged)).toBe(size(damaged));
  });

  test('is charged what its provider says of it', async () => {
    const { made, released } = await reserve({ ttl: '3600s' });
    const seen = {
      createTime: at(now - 1000),
      expireTime: at(now + hour - 1000),
      usageMetadata: { totalTokenCount: 5000.5 },
    };
    const { known, settlements } = made!.stored(seen);
    expect(known).toMatchObject({
      storage: {
        model: 'm',
        upstreamModel: 'priced-m',
        channel: 'google',
        tokens: 5001,
        from: now - 1000,
        until: now + hour - 1000,
        microDollars: 5001,
        count: 1,
      },
    });
    expect(settlements).toMatchObject([
      {
        keyId: 'k',
        reservation: 'claim-1',
        charged: { microDollars: 5001, tokens: 0 },
        record: {
          id: expect.stringMatching(/^cache_[0-9a-f]{32}$/) as string,
          at: now,
          keyId: 'k',
          operation: 'cache-storage',
          format: 'generate-content',
          model: 'm',
          upstreamModel: 'priced-m',
          channel: 'google',
          microDollars: 5001,
          price: { model: 'priced-m', cacheStorage: 1 },
        },
      },
    ]);
    expect(settlements[0]).not.toHaveProperty('refundOf');
    made!.end(true);
    expect(released).toEqual([]);
  });

  test('is charged what was wanted where its provider says nothing', async () => {
    const body = { ttl: '3600s' };
    const { made, released } = await reserve(body);
    for (const seen of [
      {},
      { usageMetadata: { totalTokenCount: 'many' }, createTime: 'x', expireTime: 7 },
      { usageMetadata: { totalTokenCount: -1 } },
    ]) {
      const { settlements } = made!.stored(seen as JsonObject);
      expect(settlements[0]?.charged.microDollars).toBe(size(body));
    }
    made!.end(false);
    expect(released).toEqual(['claim-1']);
  });

  test('costs what the longest pattern says that fits its model', async () => {
    const { reserved } = await reserve({ ttl: '3540s' }, inDollars, 'dear');
    expect(reserved[0]?.microDollars).toBe(4 * size({ ttl: '3540s' }));
  });

  test('of a key without a budget, or of nobody, is charged and not reserved', async () => {
    for (const key of [{ id: 'k' } as ApiKey, undefined]) {
      const all = stage();
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      const made = await reserveStorage(callOf(key), account, { model: 'm', body: {} }, all.around);
      expect(all.reserved).toEqual([]);
      const [settlement] = made!.stored({}).settlements;
      expect(settlement?.keyId).toBe(key?.id);
      expect(settlement?.record).toMatchObject(key === undefined ? {} : { keyId: 'k' });
      expect(settlement).not.toHaveProperty('reservation');
      made!.end(false);
      expect(all.released).toEqual([]);
    }
  });

  test('is refused where its cost cannot be limited', async () => {
    await expect(reserve({}, inTokens)).rejects.toMatchObject({ code: 'forbidden' });
    const nowhere = { channel: { id: 'google', upstreamModel: () => undefined } } as never;
    const { around } = stage();
    await expect(
      reserveStorage(callOf(inDollars), nowhere, { model: 'other', body: {} }, around),
    ).rejects.toMatchObject({
      code: 'forbidden',
    });
    expect(
      await reserveStorage(callOf({ id: 'k' }), nowhere, { model: 'other', body: {} }, around),
    ).toBeUndefined();
    // Free storage needs no budget in dollars.
    const free = { channel: { id: 'google', upstreamModel: () => 'free' } } as never;
    expect(await reserveStorage(callOf(inTokens), free, { model: 'free', body: {} }, around)).toBeDefined();
  });

  test.each<[JsonObject, string]>([
    [{ ttl: '1h' }, 'ttl'],
    [{ ttl: 'x1s' }, 'ttl'],
    [{ ttl: '1sx' }, 'ttl'],
    [{ ttl: '1.s' }, 'ttl'],
    [{ ttl: '-1s' }, 'ttl'],
    [{ ttl: 60 }, 'ttl'],
    [{ ttl: `${'1'.repeat(13)}s` }, 'ttl'],
    [{ ttl: `1.${'1'.repeat(10)}s` }, 'ttl'],
    [{ expireTime: 'soon' }, 'expireTime'],
    [{ expire_time: 7 }, 'expireTime'],
    [{ ttl: '1s', expireTime: at(now) }, 'ttl'],
  ])('that is wanted until %j is refused', async (body, param) => {
    await expect(reserve(body)).rejects.toMatchObject({ code: 'invalid_value', param });
  });
});

describe('a content that is kept for longer', () => {
  const longer = async (body: JsonObject, object = objectOf(), key: ApiKey = inDollars) => {
    const all = stage();
    return { ...all, made: await reserveExtension(callOf(key), object, body, all.around) };
  };

  test('is reserved for the time that comes on top', async () => {
    const { reserved, made } = await longer({ ttl: `${3 * 3600 - 60}s` });
    expect(reserved).toEqual([{ microDollars: 1_000_000, tokens: 0 }]);
    const { known, settlements } = made!.stored({
      expireTime: at(now + 3 * hour),
      usageMetadata: { totalTokenCount: 7 },
      createTime: at(now + 5),
    });
    expect(known).toMatchObject({
      storage: { tokens: 1_000_000, from: now, until: now + 3 * hour, microDollars: 3_000_000, count: 2 },
    });
    expect(settlements).toMatchObject([
      {
        reservation: 'claim-1',
        charged: { microDollars: 1_000_000 },
        record: { id: 'cache_1_2', reason: '1000000 tokens are kept for 1.00 hours.' },
      },
    ]);
  });

  test('or shorter gives back the time that does not come, to when it was charged', async () => {
    const { made } = await longer({ ttl: '3600s' });
    const [settlement] = made!.stored({ expireTime: at(now + hour) }).settlements;
    expect(settlement).toMatchObject({
      charged: { microDollars: 1_000_000, tokens: 0 },
      refundOf: now,
      record: {
        microDollars: -1_000_000,
        reason: '1000000 tokens are kept for -1.00 hours that were charged and are given back.',
      },
    });
  });

  test('may be shortened by a key with a budget in tokens alone, and not lengthened', async () => {
    expect((await longer({ ttl: '3600s' }, objectOf(), inTokens)).made).toBeDefined();
    expect((await longer({ ttl: '7200s' }, objectOf(), inTokens)).made).toBeDefined();
    await expect(longer({ ttl: '7201s' }, objectOf(), inTokens)).rejects.toMatchObject({ code: 'forbidden' });
    expect((await longer({ displayName: 'a' }, objectOf(), inTokens)).made).toBeDefined();
  });

  test('of which nothing was charged is refused to a key with a budget, unless its time stays', async () => {
    const uncharged = { ...objectOf(), known: {} } as ProviderObject;
    await expect(longer({ ttl: '1s' }, uncharged)).rejects.toMatchObject({ code: 'forbidden' });
    expect((await longer({}, uncharged)).made).toBeUndefined();
    expect((await longer({ ttl: '1s' }, uncharged, { id: 'k' } as ApiKey)).made).toBeUndefined();
  });
});

/** A store in which others change an object, so many times, before one's own change is taken. */
function contested(others: readonly (ProviderObject | undefined)[]) {
  const changes: {
    readonly object: ProviderObject;
    readonly now: ProviderObject | undefined;
    readonly settlements: readonly Settlement[];
  }[] = [];
  const removed: ProviderObject[] = [];
  let index = 0;
  const store = {
    change(object: ProviderObject, next: ProviderObject | undefined, settlements: readonly Settlement[]) {
      changes.push({ object, now: next, settlements });
      return Promise.resolve(index >= others.length);
    },
    find: () => Promise.resolve(others[index++]),
    remove(object: ProviderObject) {
      removed.push(object);
      return Promise.resolve(true);
    },
  };
  return { around: { store } as unknown as ObjectServices, changes, removed };
}

describe('two who change a content at once', () => {
  const seen = { expireTime: at(now + 5 * hour) };
  const reservationOf = async (): Promise<StorageReservation> => {
    const { around } = stage();
    return (await reserveExtension(callOf(inDollars), objectOf(), { ttl: '18000s' }, around))!;
  };

  test('are charged together what it comes to', async () => {
    // The other has made four hours of the two, and charged them.
    const other = objectOf({ until: now + 4 * hour, microDollars: 4_000_000, count: 2 });
    const { around, changes } = contested([other]);
    await keepLonger(callOf(inDollars), objectOf(), seen, await reservationOf(), around);
    expect(changes).toHaveLength(2);
    expect(changes[0]?.settlements[0]?.charged.microDollars).toBe(3_000_000);
    expect(changes[1]).toMatchObject({
      object: other,
      now: {
        seen,
        known: { other: 1, storage: { until: now + 5 * hour, microDollars: 5_000_000, count: 3 } },
      },
      settlements: [
        { charged: { microDollars: 1_000_000 }, reservation: 'claim-1', record: { id: 'cache_1_3' } },
      ],
    });
  });

  test('end where one has removed it, or it is not charged any more', async () => {
    for (const other of [undefined, { ...objectOf(), known: {} } as ProviderObject]) {
      const { around, changes } = contested([other, other]);
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      await keepLonger(callOf(inDollars), objectOf(), seen, await reservationOf(), around);
      expect(changes).toHaveLength(1);
    }
  });

  test('end after twenty tries', async () => {
    const { around, changes } = contested(Array.from({ length: 50 }, () => objectOf()));
    await keepLonger(callOf(inDollars), objectOf(), seen, await reservationOf(), around);
    expect(changes).toHaveLength(20);
  });
});

describe('a price rule of the owners of a key', () => {
  const pricing = { factor: 2, models: [{ model: 'm', factor: 1.5 }] };
  const key = { ...inDollars, pricing } as ApiKey;

  test('is in what is reserved, what is charged and the record, which has the cost too', async () => {
    const { around, reserved } = stage();
    const body = { ttl: '3540s' };
    const cost = Buffer.byteLength(JSON.stringify(body));
    const made = await reserveStorage(callOf(key), account, { model: 'm', body }, around);
    expect(reserved).toEqual([{ microDollars: Math.ceil(cost * 1.5), tokens: 0 }]);
    const { known, settlements } = made!.stored({ usageMetadata: { totalTokenCount: 101 } });
    const storedCost = Math.ceil(101 * (3540 / 3600));
    expect(known).toMatchObject({ storage: { factor: 1.5, microDollars: storedCost } });
    expect(settlements).toMatchObject([
      {
        isPriced: true,
        charged: { microDollars: Math.ceil(storedCost * 1.5) },
        record: { microDollars: storedCost, chargedMicroDollars: Math.ceil(storedCost * 1.5) },
      },
    ]);
  });

  test('stays for a content what it was when that was made: for more time, and for what is given back', async () => {
    const { around: longer, reserved } = stage();
    const before = objectOf();
    const object = {
      ...before,
      known: { storage: { ...storage, factor: 3 } },
    } as unknown as ProviderObject;
    const made = await reserveExtension(callOf(key), object, { ttl: `${3 * 3600 - 60}s` }, longer);
    expect(reserved).toEqual([{ microDollars: 3_000_000, tokens: 0 }]);
    expect(made!.stored({ expireTime: at(now + 3 * hour) }).settlements).toMatchObject([
      { isPriced: true, charged: { microDollars: 3_000_000 }, record: { microDollars: 1_000_000 } },
    ]);
    const { around, changes } = contested([]);
    await forget(object, around);
    expect(changes[0]?.settlements).toMatchObject([
      {
        isPriced: true,
        refundOf: now,
        charged: { microDollars: 6_000_000 },
        record: { microDollars: -2_000_000, chargedMicroDollars: -6_000_000 },
      },
    ]);
    // One that was charged before there were price rules.
    const older = contested([]);
    await forget(before, older.around);
    expect(older.changes[0]?.settlements).toMatchObject([
      { isPriced: true, charged: { microDollars: 2_000_000 } },
    ]);
    expect(older.changes[0]?.settlements[0]?.record).not.toHaveProperty('chargedMicroDollars');
  });
});

describe('a content that is not kept any more', () => {
  test('gives back the time that does not come', async () => {
    vi.setSystemTime(now + hour / 2);
    const { around, changes, removed } = contested([]);
    await forget(objectOf(), around);
    expect(removed).toEqual([]);
    expect(changes).toMatchObject([
      {
        now: undefined,
        settlements: [
          {
            keyId: 'k',
            refundOf: now,
            charged: { microDollars: 1_500_000 },
            record: { microDollars: -1_500_000, id: 'cache_1_2' },
          },
        ],
      },
    ]);
    expect(changes[0]?.settlements[0]).not.toHaveProperty('reservation');
  });

  test('gives back all of it where it has not begun by this clock', async () => {
    const { around, changes } = contested([]);
    await forget(objectOf({ from: now + 1000 }, ''), around);
    expect(changes[0]?.settlements).toMatchObject([{ charged: { microDollars: 2_000_000 } }]);
    expect(changes[0]?.settlements[0]).not.toHaveProperty('keyId');
  });

  test('gives back nothing where its time has come, or nothing was charged', async () => {
    vi.setSystemTime(now + 2 * hour);
    for (const object of [objectOf(), { ...objectOf(), known: {} } as ProviderObject]) {
      const { around, changes, removed } = contested([]);
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      await forget(object, around);
      expect(changes).toEqual([]);
      expect(removed).toEqual([object]);
    }
  });

  test('gives back what another has charged for it meanwhile', async () => {
    const other = objectOf({ until: now + 4 * hour, microDollars: 4_000_000, count: 2 });
    const { around, changes } = contested([other]);
    await forget(objectOf(), around);
    expect(changes[1]).toMatchObject({
      object: other,
      settlements: [{ charged: { microDollars: 4_000_000 } }],
    });
  });

  test('is left to another who has removed it, and removed after twenty tries', async () => {
    const gone = contested([undefined]);
    await forget(objectOf(), gone.around);
    expect([gone.changes.length, gone.removed.length]).toEqual([1, 0]);
    const busy = contested(Array.from({ length: 50 }, () => objectOf()));
    await forget(objectOf(), busy.around);
    expect([busy.changes.length, busy.removed.length]).toEqual([20, 1]);
  });
});
