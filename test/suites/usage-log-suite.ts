import * as fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { UsageRecord } from '../../core/model/usage-record.ts';
import { openStores, type Stores } from '../../core/state/stores.ts';
import { openUsageLog } from '../../core/money/usage-log/open.ts';
import type {
  UsageFilter,
  UsageGrouping,
  UsageLog,
  UsageSumsList,
  UsageTotals,
} from '../../core/money/usage-log/index.ts';
import { makePartitions } from '../../core/money/usage-log/partitions.ts';
import { Kinds } from '../../core/money/usage-log/kinds.ts';
import type { PostgresSession } from '../../core/state/database/postgres-session.ts';
import { insertRecordsInPostgres, insertRecordsInSqlite } from '../../core/money/usage-log/rows.ts';
import { transactionInSqlite } from '../../core/state/database/sqlite-writes.ts';
import { yieldToEventLoop } from '../../core/state/database/yield-to-event-loop.ts';
import { tries } from '../support/tries.ts';
import { makeOlder, olderInsertion } from './older-usage-log.ts';

/** 1 January 2026, in milliseconds. */
export const newYear = Date.UTC(2026, 0, 1);

/** A record of which only this is said. */
export function usageRecord(id: string, record: Partial<UsageRecord> = {}): UsageRecord {
  return {
    id,
    at: newYear,
    ip: '192.0.2.7',
    operation: 'chat',
    format: 'plain',
    model: 'm',
    stream: false,
    status: 200,
    ended: 'complete',
    input: 0,
    output: 0,
    cacheRead: 0,
    cacheWrite: 0,
    reasoning: 0,
    ms: 1,
    ...record,
  };
}

const kindsOf = new WeakMap<object, Kinds>();

/** Writes records in a transaction of a server, as one process does. */
function insertInPostgres(database: object, session: PostgresSession, records: readonly UsageRecord[]) {
  const kinds = kindsOf.get(database) ?? new Kinds();
  kindsOf.set(database, kinds);
  return insertRecordsInPostgres(session, records, kinds);
}

/** Writes records as the ledger does, in a transaction of their own; returns the ids of those that are new. */
export async function insertRecords(
  { database }: Pick<Stores, 'database'>,
  records: readonly UsageRecord[],
): Promise<ReadonlySet<string>> {
  if (database.kind === 'postgres')
    return database.transaction((session) => insertInPostgres(database, session, records));
  const { connection } = database;
  connection.exec('BEGIN IMMEDIATE');
  try {
    return insertRecordsInSqlite(connection, records);
  } finally {
    connection.exec('COMMIT');
  }
}

const hour = 3_600_000;
const day = 24 * hour;

/** Everything that is known of a call. */
const full: UsageRecord = {
  id: 'req_full',
  at: newYear + 5,
  keyId: 'key_1',
  team: 'team_1',
  member: 'mem_1',
  organisation: 'org_1',
  tags: ['blue', 'a "b"'],
  endUser: 'ann',
  ip: '2001:db8::1',
  operation: 'chat',
  format: 'plain',
  upstreamFormat: 'other',
  model: 'm-high',
  upstreamModel: 'm-2026',
  channel: 'first',
  stream: true,
  passThrough: false,
  status: 200,
  code: 'upstream_cut',
  reason: 'It was cut.',
  cause: { status: 503, message: 'The engine is overloaded.' },
  ended: 'interrupted',
  input: 5_000_000_000,
  output: 2,
  cacheRead: 3,
  cacheWrite: 4,
  reasoning: 1,
  estimated: true,
  microDollars: 9_007_199_254_740_991,
  price: { model: 'm*', input: 3, output: 15.5 },
  ms: 1234.5,
  firstMs: 99.9,
  gatewayMs: 0.3,
  losses: ['seed', 'logprobs'],
  attempts: [{ channel: 'zero', model: 'm', failure: 'upstream_timeout' }],
  request: '{"model":"m"}',
  response: 'data: {}\n\n',
};

/** Contract of the usage log on every database. `url` returns a database without records, `emptyUrl` one without tables. */
export function usageLogSuite(
  url: () => string | Promise<string>,
  emptyUrl: () => string | Promise<string> = url,
): void {
  let stores: Stores;
  let log: UsageLog;
  let address: string;

  beforeEach(async () => {
    address = await url();
    stores = openStores(address);
    log = openUsageLog(stores);
  });
  afterEach(() => stores.close());

  const addAll = async (): Promise<void> => {
    while (await log.addToSums());
  };
  const execute = async (sql: string): Promise<void> => {
    const { database } = stores;
    if (database.kind === 'postgres') await database.query(sql);
    else database.connection.exec(sql);
  };

  /** Writes a record in a transaction that fails. */
  const undone = async (record: UsageRecord): Promise<void> => {
    const { database } = stores;
    const error = new Error('undone');
    if (database.kind === 'postgres')
      return database.transaction(async (session) => {
        await insertInPostgres(database, session, [record]);
        throw error;
      });
    return transactionInSqlite(database.connection, () => {
      insertRecordsInSqlite(database.connection, [record]);
      throw error;
    });
  };

  /** Makes the database one that the version before there were sums has written, and brings it up to date. */
  const withoutSums = async (): Promise<{ older: UsageRecord[]; newer: UsageRecord[] }> => {
    const older = Array.from({ length: 2_500 }, (_, index) =>
      usageRecord(`older${index}`, {
        at: newYear + Math.floor(index / 3) * 7_000,
        keyId: `k${index % 5}`,
        input: index,
      }),
    );
    await stores.close();
    address = await emptyUrl();
    await makeOlder(address, 'usage-log-3', older);
    stores = openStores(address);
    await stores.ready();
    log = openUsageLog(stores);
    return { older, newer: [] };
  };

  const insert = (...records: readonly UsageRecord[]) => insertRecords(stores, records);
  const idsOf = (records: readonly UsageRecord[]): string[] => records.map(({ id }) => id);

  describe('a record', () => {
    test('comes back as it was, bodies only when it is asked for alone', async () => {
      const plain = usageRecord('req_plain');
      await insert(full, plain);
      expect(await log.find('req_full')).toEqual(full);
      expect(await log.find('req_plain')).toEqual(plain);
      expect(await log.find('req_none')).toBeUndefined();
      const { request: _request, response: _response, ...rest } = full;
      expect((await log.page({}, 10)).records).toEqual([rest, plain]);
    });

    test('of an older version comes back as it was, also beside new ones, and is found by its names and in the sums', async () => {
      await stores.close();
      address = await emptyUrl();
      const {
        team: _team,
        member: _member,
        organisation: _organisation,
        tags: _tags,
        endUser: _endUser,
        ...whole
      } = full;
      const before = { ...whole, id: 'before', at: newYear };
      await makeOlder(address, 'usage-log-5', [before]);
      stores = openStores(address);
      await stores.ready();
      log = openUsageLog(stores);
      const beside = { ...whole, id: 'beside', at: newYear + 1 };
      await execute(olderInsertion([beside]));
      await insert(whole, whole, { ...before, status: 500 });
      const { request: _request, response: _response, ...rest } = whole;
      const shown = [
        rest,
        { ...rest, id: 'beside', at: newYear + 1 },
        { ...rest, id: 'before', at: newYear },
      ];
      for (const filter of [
        {},
        { model: 'm-high' },
        { channel: 'first', format: 'plain' },
        { keyId: 'key_1' },
      ])
        expect((await log.page(filter, 10)).records).toEqual(shown);
      expect((await log.largest({ model: 'm-high' }, 'ms', 10)).records).toEqual(shown);
      for (const record of [whole, beside, before]) expect(await log.find(record.id)).toEqual(record);
      for (const look of [1, 2]) {
        const { sums } = await log.sums({ since: newYear }, 'model');
        expect([look, ...sums]).toMatchObject([look, { group: 'm-high', calls: 3, failed: 3 }]);
        await addAll();
      }
    });

    test('has its names also where the transaction that wrote them first was undone', async () => {
      const named = usageRecord('named', { model: 'of its own', channel: 'c', price: { input: 1 } });
      await expect(undone(named)).rejects.toThrow('undone');
      await insert(named);
      expect(await log.find('named')).toEqual(named);
    });

    test('of more kinds than are kept by number has its names all the same', async () => {
      const many = Array.from({ length: 2_100 }, (_, index) =>
        usageRecord(`r${index}`, { model: `m${index}` }),
      );
      await insert(...many);
      expect(await log.find('r2099')).toEqual(many[2_099]);
      expect((await log.page({ model: 'm2098' }, 5)).records).toEqual([many[2_098]]);
      expect((await log.page({ model: 'm7' }, 5)).records).toEqual([many[7]]);
    });

    test('that is written again changes nothing, and is not told as new', async () => {
      expect(await insert(usageRecord('a'), usageRecord('b'))).toEqual(new Set(['a', 'b']));
      expect(await insert(usageRecord('b', { status: 500 }), usageRecord('c'), usageRecord('c'))).toEqual(
        new Set(['c']),
      );
      expect(await insert(usageRecord('a', { at: newYear + 1 }))).toEqual(new Set());
      expect((await log.page({}, 10)).records).toHaveLength(3);
      expect(await log.find('b')).toMatchObject({ status: 200 });
      expect(await insert()).toEqual(new Set());
    });

    test('with what no database holds is written all the same', async () => {
      const strange = usageRecord('strange', {
        model: `\0\ud800${'x'.repeat(1000)}`,
        reason: 'a\0b\udc00',
        request: '\0\ud800',
        losses: ['\0\udfff', "'; DROP TABLE usage_records; --", '\\u0000'],
        input: Number.NaN,
        output: Number.POSITIVE_INFINITY,
        microDollars: 1.5,
        ms: Number.NaN,
        firstMs: -5,
      });
      await insert(strange, usageRecord('next'));
      const found = await log.find('strange');
      expect(found).toMatchObject({
        input: 0,
        output: 0,
        microDollars: 1,
        ms: 0,
        firstMs: 0,
        request: '\ufffd',
      });
      expect(found?.model).toHaveLength(299);
      expect(found?.losses?.slice(1)).toEqual(["'; DROP TABLE usage_records; --", '\\u0000']);
      expect(await log.find('next')).toBeDefined();
    });
  });

  describe('a page', () => {
    test('is the newest first, goes on behind its cursor, and misses and repeats nothing at equal times', async () => {
      const records = Array.from({ length: 25 }, (_, index) =>
        usageRecord(`r${String(index).padStart(2, '0')}`, { at: newYear + Math.floor(index / 10) }),
      );
      await insert(...records);
      const seen: string[] = [];
      let after: string | undefined;
      do {
        const page = await log.page({}, 4, after);
        expect(page.records.length).toBeLessThanOrEqual(4);
        seen.push(...idsOf(page.records));
        // What comes meanwhile is newer than the first page.
        await insert(usageRecord(`new${seen.length}`, { at: newYear + 1000 }));
        after = page.next;
      } while (after !== undefined);
      expect(seen).toEqual(idsOf(records).toReversed());
    });

    test('has a cursor only when something follows', async () => {
      await insert(usageRecord('a'), usageRecord('b'));
      expect(await log.page({}, 2)).not.toHaveProperty('next');
      expect(await log.page({}, 1)).toHaveProperty('next');
    });

    test.each(['', 'x', '1', '.', '.a', '1.a b', "1.'--", `${'9'.repeat(40)}.a`])(
      'refuses %j, which is no cursor',
      async (cursor) => {
        await expect(log.page({}, 1, cursor)).rejects.toMatchObject({
          code: 'invalid_value',
          param: 'after',
        });
      },
    );

    test('is narrowed by every member of its filter, and by all of them together', async () => {
      const other = {
        keyId: 'key_2',
        model: 'n',
        channel: 'second',
        format: 'other',
        operation: 'compact',
        status: 429,
      };
      const one = {
        keyId: 'key_1',
        model: 'm',
        channel: 'first',
        format: 'plain',
        operation: 'chat',
        status: 200,
      };
      await insert(
        usageRecord('one', { ...one, at: newYear + 1 }),
        usageRecord('other', { ...other, at: newYear + 2 }),
        usageRecord('broken', { ended: 'interrupted', at: newYear + 3 }),
        usageRecord('refused', { status: 429, at: newYear - 1 }),
      );
      const ids = async (filter: Parameters<UsageLog['page']>[0]) =>
        idsOf((await log.page(filter, 10)).records);
      for (const [member, value] of Object.entries(other))
        expect(await ids({ [member]: value })).toEqual(
          member === 'status' ? ['other', 'refused'] : ['other'],
        );
      expect(await ids({ ...one, since: newYear, until: newYear + 2, outcome: 'ok' })).toEqual(['one']);
      expect(await ids({ ...one, keyId: 'key_2' })).toEqual([]);
      expect(await ids({ since: newYear + 2 })).toEqual(['broken', 'other']);
      expect(await ids({ until: newYear + 2 })).toEqual(['one', 'refused']);
      expect(await ids({ since: newYear + 1.5, until: newYear + 2.5 })).toEqual(['other']);
      expect(await ids({ since: newYear + 9, until: newYear })).toEqual([]);
      expect(await ids({ outcome: 'failed' })).toEqual(['broken', 'other']);
      expect(await ids({ outcome: 'ok' })).toEqual(['one']);
      expect(await ids({ outcome: 'refused' })).toEqual(['refused']);
      expect(await ids({ statusClass: 4 })).toEqual(['other', 'refused']);
      expect(await ids({ modelPart: 'N' })).toEqual(['other']);
      expect(await ids({ model: "m' OR 1=1" })).toEqual([]);
    });
  });

  test('a rare record is found far behind thousands of others, and pages end where the records do', async () => {
    await insert(
      usageRecord('rare', { keyId: 'rare' }),
      ...Array.from({ length: 12_000 }, (_, index) =>
        // Thousands come in the same millisecond.
        usageRecord(`r${index}`, { at: newYear + Math.floor(index / 6_000), keyId: `k${index % 2}` }),
      ),
    );
    expect(await log.page({ keyId: 'rare' }, 5)).toMatchObject({ records: [{ id: 'rare' }] });
    expect(await log.page({ keyId: 'nobody' }, 5)).toEqual({ records: [] });
    let seen = 0;
    let after: string | undefined;
    do {
      const page = await log.page({ keyId: 'k1' }, 1_000, after);
      seen += page.records.length;
      after = page.next;
    } while (after !== undefined);
    expect(seen).toBe(6_000);
    let exported = 0;
    for await (const { keyId } of log.each({ keyId: 'k0' })) exported += keyId === 'k0' ? 1 : 0;
    expect(exported).toBe(6_000);
  });

  test('one page reads so many records at most, and its cursor leads on also where it found none', async () => {
    await insert(
      usageRecord('rare', { keyId: 'rare', microDollars: 5 }),
      ...Array.from({ length: 12_000 }, (_, index) =>
        usageRecord(`r${index}`, { at: newYear + 1 + Math.floor(index / 3), keyId: 'other' }),
      ),
    );
    const bounded = openUsageLog(stores, { slices: 4 });
    const pagesOf = async (filter: UsageFilter): Promise<string[][]> => {
      const pages: string[][] = [];
      let after: string | undefined;
      do {
        const page = await bounded.page(filter, 5, after);
        pages.push(idsOf(page.records));
        after = page.next;
      } while (after !== undefined);
      return pages;
    };
    // Costs are told apart by the records alone. Statements count as well with PostgreSQL.
    const pages = await pagesOf({ minMicroDollars: 1 });
    expect(pages.flat()).toEqual(['rare']);
    expect(pages.slice(0, 2)).toEqual([[], []]);
    expect(pages.length).toBeLessThanOrEqual(stores.database.kind === 'postgres' ? 5 : 3);
    // An index of PostgreSQL finds those of a key; with SQLite the sums tell the hour, in which all are looked at.
    expect(await pagesOf({ keyId: 'rare' })).toEqual(
      stores.database.kind === 'postgres' ? [['rare']] : [[], [], ['rare']],
    );
    expect(await bounded.page({ minMicroDollars: 1 }, 5)).toMatchObject({
      records: [],
      searchedSince: expect.toSatisfy((at: number) => at > newYear + 2_000),
    });
    // The unique index of ids needs no walk.
    expect(await bounded.page({ id: 'rare' }, 5)).toMatchObject({ records: [{ id: 'rare' }] });
    expect(await bounded.page({}, 5)).toMatchObject({ records: { length: 5 } });
  });

  test('what is rare is found in the hours that have it, whether these are in the sums or not', async () => {
    const rare = (index: number): boolean => index % 9 === 0;
    const records = Array.from({ length: 90 }, (_, index) =>
      usageRecord(`r${String(index).padStart(2, '0')}`, {
        at: newYear + index * hour + (index % 3) * 1_000_000,
        ...(rare(index) && {
          keyId: 'rare',
          model: 'seldom',
          status: 418,
          channel: 'far',
          operation: 'video',
        }),
      }),
    );
    const expected = idsOf(records.filter((_, index) => rare(index)).toReversed());
    const pagesOf = async (filter: UsageFilter): Promise<string[]> => {
      const seen: string[] = [];
      let after: string | undefined;
      do {
        const page = await log.page(filter, 3, after);
        seen.push(...idsOf(page.records));
        after = page.next;
      } while (after !== undefined);
      return seen;
    };
    const look = async (): Promise<void> => {
      for (const filter of [
        { keyId: 'rare' },
        { model: 'seldom' },
        { status: 418 },
        { channel: 'far' },
        { operation: 'video' },
        { outcome: 'failed' as const },
        { keyId: 'rare', status: 418, minMs: 1 },
      ])
        expect(await pagesOf(filter)).toEqual(expected);
      expect(await pagesOf({ keyId: 'rare', status: 200 })).toEqual([]);
      expect(await pagesOf({ status: 404 })).toEqual([]);
      expect(
        await pagesOf({ status: 418, since: newYear + 9 * hour + 1, until: newYear + 36 * hour }),
      ).toEqual(['r27', 'r18']);
    };
    await insert(...records.slice(0, 40));
    await addAll();
    await insert(...records.slice(40));
    await look();
    await addAll();
    await look();
  });

  test('lists by any owner, tag and end user have the records that fit, page by page, whatever the sums know', async () => {
    // Few entries are read together, and few tags and end users have sums.
    const open = () => openUsageLog(stores, { slices: 2, subjects: { tenant: 2, all: 3, leastOfTenant: 1 } });
    log = open();
    await stores.ready();
    const { database } = stores;
    const start = Date.now() - 12 * 24 * hour;
    if (database.kind === 'postgres') {
      await makePartitions(database, 30, start - 72 * hour);
      await makePartitions(database, 30);
    }
    const name = (kind: string) =>
      fc.constantFrom(...['a', 'b "c"', '\\', 'd'].map((one) => `${kind}${one}`));
    const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
    const anyRecord = fc.record({
      at: fc.integer({ min: 0, max: 11 * 24 * 60 }).map((minutes) => start + minutes * 60_000),
      keyId: fc.constantFrom('k1', 'k2', undefined),
      model: fc.constantFrom('m', 'n'),
      ms: fc.integer({ min: 1, max: 50 }),
      team: optional(name('t')),
      organisation: optional(name('')),
      tags: optional(fc.uniqueArray(name(''), { minLength: 1, maxLength: 3 })),
      endUser: optional(name('')),
    });
    const anyFilter = fc.record(
      {
        organisation: name(''),
        tag: name(''),
        endUser: name(''),
        team: name('t'),
        keyId: fc.constant('k1'),
        model: fc.constant('m'),
        minMs: fc.constant(20),
        since: fc.integer({ min: 0, max: 6 * 24 * 60 }).map((minutes) => start + minutes * 60_000 + 7),
        until: fc.integer({ min: 6 * 24 * 60, max: 12 * 24 * 60 }).map((minutes) => start + minutes * 60_000),
      },
      { requiredKeys: [] },
    );
    const fits = (one: UsageRecord, { tag, since = 0, until = Infinity, minMs = 0, ...equal }: UsageFilter) =>
      one.at >= since &&
      one.at < until &&
      one.ms >= minMs &&
      (tag === undefined || one.tags?.includes(tag) === true) &&
      Object.entries(equal).every(([member, value]) => one[member as 'team'] === value);
    const all: UsageRecord[] = [];
    const largest = (one: UsageRecord, other: UsageRecord): number => other.ms - one.ms || newest(one, other);
    const newest = (one: UsageRecord, other: UsageRecord): number =>
      other.at - one.at || (one.id < other.id ? 1 : -1);
    await fc.assert(
      fc.asyncProperty(
        fc.array(anyRecord, { minLength: 1, maxLength: 60 }),
        fc.array(anyFilter, { minLength: 4, maxLength: 4 }),
        fc.boolean(),
        async (some, filters, adds) => {
          const records = some.map((one, index) => {
            const given = Object.entries(one).filter(([, value]) => value !== undefined);
            return usageRecord(`s${String(all.length + index).padStart(6, '0')}`, Object.fromEntries(given));
          });
          await insert(...records);
          all.push(...records);
          if (adds) await addAll();
          for (const filter of filters) {
            const expected = all.filter((one) => fits(one, filter));
            const listed: string[] = [];
            for (let after: string | undefined, isOver = false; !isOver; isOver = after === undefined) {
              const page = await log.page(filter, 20, after);
              listed.push(...idsOf(page.records));
              after = page.next;
            }
            expect(listed).toEqual(idsOf(expected.toSorted(newest)));
            const { records: longest } = await log.largest(filter, 'ms', 10);
            const most = idsOf(expected.toSorted(largest).slice(0, 10));
            expect(idsOf(longest)).toEqual(most.slice(0, longest.length));
          }
        },
      ),
      { numRuns: tries(150) },
    );
  });

  describe('filters by duration, cost and id', () => {
    const ids = async (filter: Parameters<UsageLog['page']>[0]) =>
      idsOf((await log.page(filter, 10)).records);

    beforeEach(() =>
      insert(
        usageRecord('short', { at: newYear + 1, ms: 10, microDollars: 0 }),
        usageRecord('middle', { at: newYear + 2, ms: 20.5, microDollars: 500 }),
        usageRecord('long', { at: newYear + 3, ms: 30_000, microDollars: 9_000_000_000 }),
        usageRecord('unpriced', { at: newYear + 4, ms: 20.5 }),
      ),
    );

    test('include their bounds', async () => {
      expect(await ids({ minMs: 20.5 })).toEqual(['unpriced', 'long', 'middle']);
      expect(await ids({ maxMs: 20.5 })).toEqual(['unpriced', 'middle', 'short']);
      expect(await ids({ minMs: 11, maxMs: 29_999 })).toEqual(['unpriced', 'middle']);
      expect(await ids({ minMs: 30_001 })).toEqual([]);
      expect(await ids({ minMicroDollars: 500 })).toEqual(['long', 'middle']);
      expect(await ids({ minMicroDollars: 1, maxMicroDollars: 8_999_999_999 })).toEqual(['middle']);
    });

    test('leave out calls without a price, which have no cost', async () => {
      expect(await ids({ minMicroDollars: 0 })).toEqual(['long', 'middle', 'short']);
      expect(await ids({ maxMicroDollars: 0 })).toEqual(['short']);
    });

    test('select one call by its id, together with the other members', async () => {
      expect(await ids({ id: 'middle' })).toEqual(['middle']);
      expect(await ids({ id: 'middle', minMs: 21 })).toEqual([]);
      expect(await ids({ id: 'middle', until: newYear + 2 })).toEqual([]);
      expect(await ids({ id: 'midd' })).toEqual([]);
      expect((await log.sums({ minMs: 20 }, 'status')).sums).toMatchObject([{ group: 200, calls: 3 }]);
    });
  });

  describe('the largest records', () => {
    test('are those with the longest duration or the highest cost, newest first among equals', async () => {
      await insert(
        usageRecord('a', { at: newYear + 1, ms: 30, microDollars: 5 }),
        usageRecord('b', { at: newYear + 2, ms: 10, microDollars: 70, keyId: 'k' }),
        usageRecord('c', { at: newYear + 3, ms: 30, microDollars: 0, keyId: 'k' }),
        usageRecord('d', { at: newYear + 4, ms: 20, keyId: 'k' }),
      );
      const ids = async (...query: Parameters<UsageLog['largest']>) => {
        const page = await log.largest(...query);
        expect(page).not.toHaveProperty('comparedSince');
        return idsOf(page.records);
      };
      expect(await ids({}, 'ms', 10)).toEqual(['c', 'a', 'd', 'b']);
      expect(await ids({}, 'ms', 2)).toEqual(['c', 'a']);
      expect(await ids({}, 'microDollars', 10)).toEqual(['b', 'a', 'c']);
      expect(await ids({ keyId: 'k' }, 'ms', 2)).toEqual(['c', 'd']);
      expect(await ids({ since: newYear + 2, until: newYear + 3 }, 'ms', 10)).toEqual(['b']);
      expect(await ids({ keyId: 'nobody' }, 'ms', 10)).toEqual([]);
    });

    test('come with their details and without bodies', async () => {
      await insert(full);
      const { request: _request, response: _response, ...rest } = full;
      expect(await log.largest({}, 'ms', 1)).toEqual({ records: [rest] });
    });

    test('are found far back by an index, and a list of smaller ones tells which records were not compared', async () => {
      await insert(
        usageRecord('longest', { ms: 1_000_000 }),
        ...Array.from({ length: 9_500 }, (_, index) =>
          usageRecord(`r${String(index).padStart(5, '0')}`, { at: newYear + 1 + index, ms: index % 9_000 }),
        ),
      );
      expect(idsOf((await log.largest({}, 'ms', 3)).records)).toEqual(['longest', 'r08999', 'r08998']);
      const bounded = openUsageLog(stores, { slices: 4 });
      const { records, comparedSince = 0 } = await bounded.largest({}, 'ms', 3);
      // A server makes the indexes of its partitions when it makes partitions.
      const hasIndex = stores.database.kind === 'sqlite';
      expect(idsOf(records)).toEqual(
        hasIndex ? ['longest', 'r08999', 'r08998'] : ['r08999', 'r08998', 'r08997'],
      );
      expect(comparedSince).toBeGreaterThan(newYear);
      expect(idsOf((await bounded.largest({ until: comparedSince }, 'ms', 2)).records)).toEqual([
        'longest',
        expect.any(String),
      ]);
      if (stores.database.kind === 'sqlite') return;
      await makePartitions(stores.database, 30);
      const indexed = openUsageLog(stores, { slices: 4 });
      const found = await indexed.largest({}, 'ms', 3);
      expect(idsOf(found.records)).toEqual(['longest', 'r08999', 'r08998']);
      expect(found).not.toHaveProperty('comparedSince');
    });

    test.each(['ms', 'microDollars'] as const)(
      'by %s follow each other over pages, without a gap and none twice',
      async (by) => {
        const { database } = stores;
        await stores.ready();
        if (database.kind === 'postgres') await makePartitions(database, 30);
        // Many have the same value, as calls of a fixed price do, and some of the same value come at the same time.
        const values = [0, 100_000, ...Array.from({ length: 7 }, () => 40_000), 9_000_000];
        const records = Array.from({ length: 7_600 }, (_, index) =>
          usageRecord(`r${String(index).padStart(4, '0')}`, {
            at: newYear + Math.floor(index / 5) * 60_000,
            model: index % 7 === 0 ? 'seventh' : 'other',
            [by]: values[(index * 7) % 10],
          }),
        );
        await insert(...records);
        const order = (one: UsageRecord, other: UsageRecord): number =>
          (other[by] ?? 0) - (one[by] ?? 0) || other.at - one.at || (other.id > one.id ? 1 : -1);
        const sorted = records.toSorted(order);
        const bounded = openUsageLog(stores, { slices: 4 });
        const walk = async (usageLog: UsageLog, filter: UsageFilter): Promise<string[]> => {
          const seen: string[] = [];
          let after: string | undefined;
          let last: Awaited<ReturnType<UsageLog['largest']>>;
          do {
            last = await usageLog.largest(filter, by, 499, after);
            seen.push(...idsOf(last.records));
            after = last.next;
          } while (after !== undefined);
          return seen;
        };
        expect(await walk(log, {})).toEqual(idsOf(sorted));
        const seventh = sorted.filter(({ model }) => model === 'seventh');
        expect(await walk(log, { model: 'seventh' })).toEqual(idsOf(seventh));
        const isIndexed = (record: UsageRecord): boolean =>
          database.kind === 'postgres' || (record[by] ?? 0) >= (by === 'ms' ? 30_000 : 100_000);
        const expected = idsOf(sorted.filter(isIndexed));
        expect((await walk(bounded, {})).slice(0, expected.length)).toEqual(expected);
        const late = { since: newYear + 30 * 60_000, until: newYear + 1_100 * 60_000 };
        const inTime = sorted.filter((one) => isIndexed(one) && one.at >= late.since && one.at < late.until);
        expect((await walk(bounded, late)).slice(0, inTime.length)).toEqual(idsOf(inTime));
      },
    );

    test('by cost go on to refunds, which are below zero', async () => {
      const costs = [5, 0, -7, -7, -800_000];
      await insert(
        ...costs.map((microDollars, index) =>
          usageRecord(`r${index}`, { at: newYear - index, microDollars }),
        ),
      );
      const seen: (number | undefined)[] = [];
      let after: string | undefined;
      do {
        // oxlint-disable-next-line no-await-in-loop -- one page after the other
        const { records, next } = await log.largest({}, 'microDollars', 1, after);
        seen.push(...records.map(({ microDollars }) => microDollars));
        after = next;
      } while (after !== undefined);
      expect(seen).toEqual(costs);
    });

    test('go on at a place that is one of their own', async () => {
      for (const after of ['', '1', '1.2', '_1_', '-_1_', '--1_1_', '1_-1_', 'a_1_x', '1_1_"'])
        await expect(log.largest({}, 'ms', 1, after)).rejects.toMatchObject({
          code: 'invalid_value',
          param: 'after',
        });
    });
  });

  describe('sums', () => {
    const sums = async (...parameters: Parameters<UsageLog['sums']>) => (await log.sums(...parameters)).sums;
    /** Once while the records are in no sums yet, and once when they are. */
    const beforeAndAfter = async (look: () => Promise<void>): Promise<void> => {
      await look();
      await addAll();
      await look();
    };

    test('add up calls, failures, tokens and cost by what is asked', async () => {
      await insert(
        usageRecord('a', { keyId: 'k1', model: 'm', input: 10, output: 1, microDollars: 100 }),
        usageRecord('b', { keyId: 'k1', model: 'n', input: 20, output: 2, status: 500, microDollars: 0 }),
        usageRecord('c', { keyId: 'k2', model: 'm', input: 30, output: 3, ended: 'interrupted' }),
        usageRecord('d', { model: 'm', input: 40, output: 4, at: newYear + 60_000 }),
      );
      await beforeAndAfter(async () => {
        expect(await sums({}, 'model')).toMatchObject([
          { group: 'm', calls: 3, failed: 1, input: 80, output: 8, microDollars: 100 },
          { group: 'n', calls: 1, failed: 1, input: 20, output: 2, microDollars: 0 },
        ]);
        const byKey = await sums({}, 'keyId');
        expect(byKey[0]).toMatchObject({ group: 'k1', calls: 2 });
        expect(new Set(byKey.map(({ group }) => group))).toEqual(new Set(['k1', 'k2', '']));
        expect((await sums({}, 'status')).map(({ group }) => group)).toEqual([200, 500]);
        expect(await sums({}, { bucket: 60_000 })).toMatchObject([
          { group: newYear, calls: 3 },
          { group: newYear + 60_000, calls: 1 },
        ]);
        expect(await sums({ model: 'm', until: newYear + 1 }, 'channel')).toMatchObject([
          { group: '', calls: 2 },
        ]);
        expect(await sums({ since: newYear + 90_000 }, 'model')).toEqual([]);
      });
    });

    test('of the days of keys are what these keys have spent, and nothing of other keys and older days', async () => {
      const now = Date.now();
      const record = (id: string, keyId: string, days: number, microDollars: number): UsageRecord =>
        usageRecord(id, { keyId, at: now - days * day, microDollars });
      await insert(
        record('a', 'k1', 0, 1),
        record('b', 'k1', 29, 20),
        record('c', 'k1', 30, 300),
        record('d', 'k2', 3, 4_000),
        record('e', 'k3', 3, 50_000),
      );
      const since = now - 29 * day;
      await beforeAndAfter(async () => {
        expect(await log.spentByKeys(['k1', 'k3', 'k3', 'none'], since)).toEqual(
          new Map([
            ['k1', { calls: 2, microDollars: 21 }],
            ['k3', { calls: 1, microDollars: 50_000 }],
          ]),
        );
        expect(await log.spentByKeys([], since)).toEqual(new Map());
      });
    });

    test('by an owner have no group for calls without one', async () => {
      await insert(
        usageRecord('a', { team: 'team_1', member: 'mem_1', organisation: 'org_1' }),
        usageRecord('b', { team: 'team_1', organisation: 'org_1' }),
        usageRecord('c', { organisation: 'org_1' }),
      );
      await beforeAndAfter(async () => {
        const groups = async (...parameters: Parameters<UsageLog['sums']>) =>
          (await sums(...parameters)).map(({ group, calls }) => [group, calls]);
        expect(await groups({ team: 'team_1' }, 'member')).toEqual([['mem_1', 1]]);
        expect(await groups({ organisation: 'org_1' }, 'team')).toEqual([['team_1', 2]]);
        expect(await groups({ member: 'mem_1' }, 'team')).toEqual([['team_1', 1]]);
      });
    });

    test('number owners and names without gaps, however often they come', async () => {
      for (const name of ['a', 'b', 'c', 'd']) {
        await insert(usageRecord(name, { team: 'team_1', member: `mem_${name}`, model: name }));
        await addAll();
      }
      const { database } = stores;
      for (const table of ['usage_subjects', 'usage_names']) {
        const ids = `SELECT MAX(id) AS last, COUNT(*) AS count FROM ${table}`;
        const [row] = database.kind === 'postgres' ? await database.query(ids) : await database.read(ids, []);
        expect(Number(row?.['last'])).toBe(Number(row?.['count']));
      }
      expect(await sums({}, 'team')).toMatchObject([{ group: 'team_1', calls: 4 }]);
    });

    test('list the groups of the highest cost, or of the most calls, and the others together', async () => {
      await insert(
        ...Array.from({ length: 30 }, (_, index) =>
          usageRecord(`r${index}`, {
            model: `m${Math.floor(index / 3)}`,
            microDollars: index,
            input: 1,
            ...(index % 26 === 3 ? { chargedMicroDollars: 10 * index } : {}),
          }),
        ),
        usageRecord('often', { model: 'm0', status: 500 }),
      );
      await beforeAndAfter(async () => {
        expect(await log.sums({}, 'model', { limit: 2 })).toMatchObject({
          sums: [
            { group: 'm9', calls: 3, microDollars: 84, chargedMicroDollars: 84 + 9 * 29 },
            { group: 'm8', calls: 3, microDollars: 75 },
          ],
          rest: {
            groups: 8,
            calls: 25,
            failed: 1,
            input: 24,
            microDollars: 435 - 84 - 75,
            chargedMicroDollars: 435 - 84 - 75 + 9 * 3,
          },
        });
        expect(await log.sums({}, 'model', { limit: 1, order: 'calls' })).toMatchObject({
          sums: [{ group: 'm0', calls: 4 }],
          rest: { groups: 9, calls: 27 },
        });
        expect(await log.sums({}, 'model', { limit: 10 })).not.toHaveProperty('rest');
      });
    });

    test('are never more than 5,000 groups, and nothing is missing from the rest', async () => {
      await insert(
        ...Array.from({ length: 5_100 }, (_, index) => usageRecord(`r${index}`, { model: `m${index}` })),
      );
      const list = await log.sums({}, 'model', { limit: 9_999 });
      expect(list.sums).toHaveLength(5_000);
      expect(list.rest).toMatchObject({ groups: 100, calls: 100 });
    });

    test('tell percentiles within two percent, where they are asked for', async () => {
      const records = Array.from({ length: 1000 }, (_, index) =>
        usageRecord(`r${index}`, {
          ms: (index + 1) * 3.7,
          ...(index % 2 === 0 ? { firstMs: index + 1 } : {}),
        }),
      );
      await insert(...records, usageRecord('unmeasured', { model: 'z' }));
      await beforeAndAfter(async () => {
        const [first] = await sums({ model: 'm' }, 'model', { percentiles: true });
        // Of a short time the counts are added up by another program.
        const short = { model: 'm', since: newYear - 86_400_000, until: newYear + 30 * 86_400_000 };
        expect(await sums(short, 'model', { percentiles: true })).toEqual([first]);
        const byTime = { bucket: 86_400_000 };
        expect(await sums({ ...short, since: 0 }, byTime, { percentiles: true })).toEqual(
          await sums(short, byTime, { percentiles: true }),
        );
        for (const [index, share] of [0.5, 0.95, 0.99].entries()) {
          expect(Math.abs((first?.ms?.[index] ?? 0) / (share * 3700) - 1)).toBeLessThan(0.021);
          expect(Math.abs((first?.firstMs?.[index] ?? 0) / (share * 1000) - 1)).toBeLessThan(0.021);
        }
        expect((await sums({ model: 'z' }, 'model', { percentiles: true }))[0]?.firstMs).toEqual([0, 0, 0]);
        expect((await sums({}, 'model'))[0]).not.toHaveProperty('ms');
      });
    });

    test('of what no true call comes to do not keep others from being added', async () => {
      await insert(
        ...Array.from({ length: 1_100 }, (_, index) =>
          usageRecord(`huge${index}`, {
            microDollars: Number.MAX_SAFE_INTEGER,
            input: Number.MAX_SAFE_INTEGER,
          }),
        ),
      );
      await addAll();
      await insert(usageRecord('next', { microDollars: Number.MAX_SAFE_INTEGER }));
      await addAll();
      expect(await sums({}, 'model')).toMatchObject([{ group: 'm', calls: 1_101 }]);
    });

    test('stay when the records have gone', async () => {
      const now = Date.now();
      await insert(
        ...Array.from({ length: 30 }, (_, index) =>
          usageRecord(`old${index}`, { at: now - 40 * day - index * hour, keyId: `k${index % 3}`, input: 5 }),
        ),
        usageRecord('new', { at: now, keyId: 'k0', input: 1 }),
      );
      expect(await log.prune({ days: 30, records: 1_000, sumDays: 365 })).toMatchObject({ records: 30 });
      expect(await log.page({}, 50)).toMatchObject({ records: [{ id: 'new' }] });
      expect(await sums({ since: now - 60 * day }, 'keyId', { order: 'calls' })).toMatchObject([
        { group: 'k0', calls: 11, input: 51 },
        { calls: 10, input: 50 },
        { calls: 10, input: 50 },
      ]);
      // Whole hours, where the records of a part of one have gone.
      expect(await sums({ since: now - 40 * day - 1, until: now - 40 * day + 1 }, 'model')).toMatchObject([
        { calls: 1 },
      ]);
      await log.prune({ days: 30, records: 1_000, sumDays: 35 });
      expect(await sums({}, 'model')).toMatchObject([{ calls: 1 }]);
    });
  });

  describe('the sums equal the records', () => {
    const groupings = [
      'keyId',
      'model',
      'channel',
      'format',
      'status',
      'team',
      'member',
      'organisation',
      'tag',
      'endUser',
      { bucket: hour },
      { bucket: 600_000 },
    ] as const;

    /** Groups that a record is in: one for each of its tags, none where it has no owner of a kind. */
    const groupsOf = (record: UsageRecord, grouping: UsageGrouping): readonly (string | number)[] => {
      if (typeof grouping === 'object') return [record.at - (record.at % grouping.bucket)];
      if (grouping === 'tag') return record.tags ?? [];
      const group = record[grouping];
      if (group !== undefined) return [group];
      return ['team', 'member', 'organisation', 'endUser'].includes(grouping) ? [] : [''];
    };

    /** Adds up records as the sums should be. */
    const expected = (
      records: readonly UsageRecord[],
      filter: UsageFilter,
      grouping: UsageGrouping,
    ): ReadonlyMap<string | number, UsageTotals> => {
      const found = new Map<string | number, UsageTotals & { readonly chargedMicroDollars: number }>();
      for (const record of records) {
        const isOk = record.status < 400 && record.ended !== 'interrupted';
        const refused = record.channel === undefined && record.status >= 400 && record.status < 499;
        const failed = !isOk && !refused;
        if (record.at < (filter.since ?? 0) || record.at >= (filter.until ?? Number.MAX_SAFE_INTEGER))
          continue;
        if (filter.outcome !== undefined && !{ ok: isOk, failed, refused }[filter.outcome]) continue;
        if (filter.tag !== undefined && !record.tags?.includes(filter.tag)) continue;
        if (filter.modelPart !== undefined && !record.model.includes(filter.modelPart)) continue;
        if (filter.statusClass !== undefined && Math.floor(record.status / 100) !== filter.statusClass)
          continue;
        if (
          [
            'team',
            'member',
            'organisation',
            'endUser',
            'keyId',
            'model',
            'channel',
            'format',
            'operation',
            'status',
          ].some((name) => {
            const wanted = filter[name as keyof UsageFilter];
            return wanted !== undefined && wanted !== record[name as keyof UsageRecord];
          })
        )
          continue;
        for (const group of groupsOf(record, grouping)) {
          const sum = found.get(group) ?? {
            calls: 0,
            failed: 0,
            refused: 0,
            input: 0,
            output: 0,
            microDollars: 0,
            chargedMicroDollars: 0,
          };
          const { microDollars: cost = 0, chargedMicroDollars: charged = cost } = record;
          found.set(group, {
            calls: sum.calls + 1,
            failed: sum.failed + Number(failed),
            refused: sum.refused + Number(refused),
            input: sum.input + record.input,
            output: sum.output + record.output,
            microDollars: sum.microDollars + cost,
            chargedMicroDollars: sum.chargedMicroDollars + charged,
          });
        }
      }
      return new Map(
        [...found].map(([group, { chargedMicroDollars, ...sum }]) => [
          group,
          chargedMicroDollars === sum.microDollars ? sum : { ...sum, chargedMicroDollars },
        ]),
      );
    };

    const now = Date.now();
    const anyRecord = fc.record({
      // Recent and old times, at the ends of hours and days too.
      at: fc.oneof(
        fc.integer({ min: 0, max: 5 * hour }).map((ago) => now - ago),
        fc.integer({ min: 0, max: 6 * day }).map((ago) => now - ago),
        fc.integer({ min: 0, max: 200 }).map((hours) => Math.floor(now / hour) * hour - hours * hour),
      ),
      keyId: fc.option(fc.constantFrom('k1', 'k2', 'k3'), { nil: undefined }),
      model: fc.constantFrom('m', 'n'),
      channel: fc.option(fc.constantFrom('a', 'b'), { nil: undefined }),
      format: fc.constantFrom('plain', 'other'),
      operation: fc.constantFrom('chat', 'embed'),
      status: fc.constantFrom(200, 200, 429, 500),
      ended: fc.constantFrom('complete' as const, 'interrupted' as const),
      input: fc.nat(1_000),
      output: fc.nat(1_000),
      microDollars: fc.option(fc.nat(1_000_000), { nil: undefined }),
      chargedMicroDollars: fc.option(fc.integer({ min: -1_000, max: 2_000_000 }), { nil: undefined }),
      // As a client may bring it, to look like a charge.
      losses: fc.option(fc.constant(['"chargedMicroDollars":1}', '\0 \ud800', '{"chargedMicroDollars":1}']), {
        nil: undefined,
      }),
      team: fc.option(fc.constantFrom('team_1', 'team_2'), { nil: undefined }),
      member: fc.option(fc.constantFrom('mem_1', 'mem_2'), { nil: undefined }),
      organisation: fc.option(fc.constantFrom('org_1', 'org_2'), { nil: undefined }),
      tags: fc.option(fc.uniqueArray(fc.constantFrom('blue', 'a "b"', '\\'), { minLength: 1 }), {
        nil: undefined,
      }),
      endUser: fc.option(fc.constantFrom('ann', 'bob'), { nil: undefined }),
    });
    const anyFilter = fc.record(
      {
        since: fc.integer({ min: 0, max: 6 * day }).map((ago) => now - ago),
        until: fc.integer({ min: 0, max: 6 * day }).map((ago) => now - ago),
        keyId: fc.constantFrom('k1', 'nobody'),
        model: fc.constantFrom('m', 'n'),
        channel: fc.constantFrom('a', 'b'),
        status: fc.constantFrom(200, 500, 418),
        outcome: fc.constantFrom('ok' as const, 'failed' as const, 'refused' as const),
        team: fc.constantFrom('team_1', 'nobody'),
        member: fc.constantFrom('mem_1', 'mem_2'),
        organisation: fc.constantFrom('org_1', 'org_2'),
        tag: fc.constantFrom('blue', 'a "b"', '\\', 'b'),
        endUser: fc.constantFrom('ann', 'nobody'),
        modelPart: fc.constantFrom('m', 'x'),
        statusClass: fc.constantFrom(2, 4),
      },
      { requiredKeys: [] },
    );

    test('for any owner and tag, together with other members or alone, and lists find their records', async () => {
      const owned = fc.record(
        {
          team: fc.constantFrom('team_1', 'team_2'),
          organisation: fc.constantFrom('org_1', 'org_2'),
          tag: fc.constantFrom('blue', 'a "b"'),
          since: fc.integer({ min: 0, max: 6 * day }).map((ago) => now - ago),
        },
        { requiredKeys: [] },
      );
      let number = 0;
      const all: UsageRecord[] = [];
      await fc.assert(
        fc.asyncProperty(
          fc.array(anyRecord, { minLength: 1, maxLength: 20 }),
          fc.array(fc.tuple(owned, fc.constantFrom(...groupings)), { minLength: 3, maxLength: 3 }),
          fc.boolean(),
          async (some, questions, adds) => {
            const records = some.map((one) => {
              const given = Object.entries(one).filter(([, value]) => value !== undefined);
              return usageRecord(`o${(number += 1)}`, Object.fromEntries(given));
            });
            await insert(...records);
            all.push(...records);
            if (adds) await addAll();
            for (const [filter, grouping] of questions) {
              const { sums } = await log.sums(filter, grouping);
              const found = new Map(sums.map(({ group, ...totals }) => [group, totals]));
              expect(found).toEqual(expected(all, filter, grouping));
              // A page that has looked at as much as it may is short, and has a cursor.
              const listed: UsageRecord[] = [];
              let after: string | undefined;
              do {
                const page = await log.page(filter, all.length + 1, after);
                listed.push(...page.records);
                after = page.next;
              } while (after !== undefined);
              const total = expected(all, filter, { bucket: 1e15 }).get(0) as UsageTotals | undefined;
              expect(listed).toHaveLength(total?.calls ?? 0);
            }
          },
        ),
        { numRuns: tries(200) },
      );
    });

    test('and of the tags that an organisation brings in an hour 1,000 are told apart, the others are in the rest', async () => {
      const many = Array.from({ length: 1_100 }, (_, index) =>
        usageRecord(`t${index}`, {
          at: newYear + index,
          organisation: 'org_1',
          tags: [`tag ${index}`, 'all'],
          endUser: `user ${index}`,
          microDollars: 1,
          chargedMicroDollars: 3,
        }),
      );
      await insert(...many);
      await addAll();
      const { sums } = await log.sums({}, 'tag', { limit: 5_000, order: 'calls' });
      expect(sums[0]).toMatchObject({ group: 'all', calls: 1_100, chargedMicroDollars: 3_300 });
      expect(sums.find(({ group }) => group === '')).toMatchObject({ calls: 101, chargedMicroDollars: 303 });
      expect(sums).toHaveLength(1_001);
      expect((await log.page({ tag: 'tag 1099' }, 5)).records).toMatchObject([{ id: 't1099' }]);
      // Another tenant has its own, and all know those that have sums already.
      const others = ['one', 'two'].map((id) =>
        usageRecord(id, {
          at: newYear + 2_000,
          keyId: 'k9',
          tags: [`theirs ${id}`, 'tag 5'],
          endUser: `their ${id}`,
        }),
      );
      await insert(...others);
      await addAll();
      const after = await log.sums({}, 'tag', { limit: 5_000, order: 'calls' });
      expect(after.sums).toHaveLength(1_003);
      expect(after.sums.find(({ group }) => group === 'tag 5')).toMatchObject({ calls: 3 });
      expect(after.sums.find(({ group }) => group === 'theirs two')).toMatchObject({ calls: 1 });
      const users = await log.sums({}, 'endUser', { limit: 5_000, order: 'calls' });
      expect(users.sums).toHaveLength(1_003);
      expect(users.sums.find(({ group }) => group === 'their one')).toMatchObject({ calls: 1 });
    });

    test('and when all tenants together bring too many, each still has a few', async () => {
      log = openUsageLog(stores, { subjects: { tenant: 3, all: 4, leastOfTenant: 1 } });
      const of = (organisation: string, count: number) =>
        Array.from({ length: count }, (_, index) =>
          usageRecord(`${organisation} ${index}`, {
            at: newYear + index,
            organisation,
            tags: [`${organisation} ${index}`],
          }),
        );
      for (const records of [of('one', 4), of('two', 2), of('three', 2), of('one', 1)])
        for (const record of records) {
          await insert({ ...record, id: `${record.id} ${Math.random()}` });
          await addAll();
        }
      const { sums } = await log.sums({}, 'tag', { limit: 10, order: 'calls' });
      expect(sums.map(({ group, calls }) => [group, calls])).toEqual(
        expect.arrayContaining([
          ['', 3],
          ['one 0', 2],
          ['one 1', 1],
          ['one 2', 1],
          ['two 0', 1],
          ['three 0', 1],
        ]),
      );
      expect(sums).toHaveLength(6);
    });

    test('for any filter and grouping, whatever of them has been added', async () => {
      let number = 0;
      const all: UsageRecord[] = [];
      await fc.assert(
        fc.asyncProperty(
          fc.array(anyRecord, { minLength: 1, maxLength: 20 }),
          fc.array(fc.tuple(anyFilter, fc.constantFrom(...groupings)), { minLength: 3, maxLength: 3 }),
          fc.boolean(),
          async (some, questions, adds) => {
            const records = some.map((one) => {
              const given = Object.fromEntries(
                Object.entries(one).filter(([, value]) => value !== undefined),
              );
              return usageRecord(`p${(number += 1)}`, given);
            });
            await insert(...records);
            all.push(...records);
            if (adds) await addAll();
            for (const [filter, grouping] of questions) {
              const { sums, rest } = await log.sums(filter, grouping);
              expect(rest).toBeUndefined();
              const found = new Map(sums.map(({ group, ...totals }) => [group, totals]));
              const truth = expected(all, filter, grouping);
              expect(found).toEqual(truth);
              if (typeof grouping === 'object') continue;
              for (const order of ['cost', 'calls'] as const)
                expectFirst(truth, order, await log.sums(filter, grouping, { limit: 1, order }));
              expect(await log.sums(filter, grouping, { limit: 1, rest: false })).not.toHaveProperty('rest');
            }
          },
        ),
        { numRuns: tries(200) },
      );
    });

    /** Expects the first group, and all others in the rest. */
    function expectFirst(
      truth: ReadonlyMap<string | number, UsageTotals>,
      order: 'cost' | 'calls',
      { sums, rest }: UsageSumsList,
    ): void {
      const measure = order === 'cost' ? 'microDollars' : 'calls';
      expect(sums).toHaveLength(Math.min(1, truth.size));
      const [first] = sums;
      if (first === undefined) return;
      const { group, ...totals } = first;
      expect(totals).toEqual(truth.get(group));
      expect(first[measure]).toBe(Math.max(...[...truth.values()].map((one) => one[measure])));
      if (truth.size === 1) {
        expect(rest).toBeUndefined();
        return;
      }
      const amounts = ['calls', 'failed', 'refused', 'input', 'output', 'microDollars'] as const;
      const charged = ({ chargedMicroDollars, microDollars }: UsageTotals): number =>
        chargedMicroDollars ?? microDollars;
      const others = [...truth].flatMap(([name, one]) => (name === group ? [] : [one]));
      const left = Object.fromEntries(
        amounts.map((name) => [name, others.reduce((sum, one) => sum + one[name], 0)]),
      );
      expect(rest).toMatchObject({ groups: others.length, ...left });
      expect(charged(rest as UsageTotals)).toBe(
        Math.max(
          0,
          others.reduce((sum, one) => sum + charged(one), 0),
        ),
      );
    }

    test('while several write and several add at once', async () => {
      const all = Array.from({ length: 1_200 }, (_, index) =>
        usageRecord(`w${index}`, { at: now - (index % 300) * 60_000, keyId: `k${index % 7}`, input: index }),
      );
      const writers = { left: 4 };
      const adding = async (): Promise<void> => {
        while (writers.left > 0) if (!(await log.addToSums())) await yieldToEventLoop();
      };
      const adders = [adding(), adding()];
      const writing = Array.from({ length: 4 }, async (_, writer) => {
        for (let from = writer * 300; from < (writer + 1) * 300; from += 20) {
          await insert(...all.slice(from, from + 20));
          const { sums } = await log.sums({}, 'model');
          expect(sums[0]?.calls).toBeLessThanOrEqual(1_200);
        }
        writers.left -= 1;
      });
      await Promise.all(writing);
      await Promise.all(adders);
      await addAll();
      const { sums } = await log.sums({}, 'keyId');
      expect(new Map(sums.map(({ group, ...totals }) => [group, totals]))).toEqual(
        expected(all, {}, 'keyId'),
      );
    });

    test('of a database from before there were sums, also beside a writer of that version, and after a crash in the middle', async () => {
      const { older, newer } = await withoutSums();
      const look = async (): Promise<void> => {
        const { sums } = await log.sums({}, 'keyId');
        expect(new Map(sums.map(({ group, ...totals }) => [group, totals]))).toEqual(
          expected([...older, ...newer], {}, 'keyId'),
        );
      };
      const { incompleteBefore = 0, sums } = await log.sums({}, 'keyId');
      expect(incompleteBefore).toBeGreaterThan(Math.max(...older.map(({ at }) => at)));
      expect(sums).toEqual([]);
      // One step has been made, and the process that made it has ended.
      await log.addToSums();
      const late = older.slice(0, 20).map((record, index) => ({ ...record, id: `late${index}` }));
      await insert(...late);
      newer.push(...late);
      await stores.close();
      stores = openStores(address);
      log = openUsageLog(stores);
      await Promise.all([addAll(), addAll()]);
      await look();
      expect(await log.sums({}, 'keyId')).not.toHaveProperty('incompleteBefore');
      expect(await log.prune({ days: 36_000, records: 10, sumDays: 36_000 })).toMatchObject({
        records: older.length + newer.length - 10,
      });
      await look();
    });

    test('which an older version has written, while they are moved and beside sums of this version', async () => {
      const all = Array.from({ length: 400 }, (_, index) =>
        usageRecord(`o${index}`, {
          at: now - (index % 50) * 40 * 60_000,
          model: `m${index % 3}`,
          status: index % 4 === 0 ? 500 : 200,
          input: index,
          microDollars: index % 2,
          ms: index,
          ...(index % 5 === 0 ? {} : { keyId: `k${index % 7}`, firstMs: index / 2 }),
        }),
      );
      const look = async (): Promise<void> => {
        for (const grouping of ['keyId', 'model', 'status', { bucket: hour }] as const) {
          const { sums } = await log.sums({}, grouping);
          expect(new Map(sums.map(({ group, ...totals }) => [group, totals]))).toEqual(
            expected(all, {}, grouping),
          );
        }
        const ofOne = { keyId: 'k3', model: 'm1' };
        expect((await log.sums(ofOne, 'status')).sums.map(({ calls }) => calls)).toEqual(
          [...expected(all, ofOne, 'status').values()].map((totals) => (totals as UsageTotals).calls),
        );
        expect((await log.page({ keyId: 'k3', status: 500 }, 500)).records).toHaveLength(
          all.filter(({ keyId, status }) => keyId === 'k3' && status === 500).length,
        );
      };
      await insert(...all.slice(0, 300));
      await addAll();
      const middle = (await log.sums({}, 'status', { percentiles: true })).sums;
      // As the version before has them.
      const bins =
        stores.database.kind === 'postgres' ? "COALESCE(bins, '{}')::jsonb" : "COALESCE(bins, '{}')";
      const amounts = ['input', 'output', 'cache_read', 'cache_write', 'reasoning', 'micro_dollars'];
      await execute(
        `INSERT INTO usage_sums (level, start, key_id, model, channel, format, operation, status, failed, calls, ${amounts.join(', ')}, bins)
         SELECT level, CAST(start AS BIGINT) * 60000, COALESCE(key_id, ''), model, channel, format, operation, status, failed, calls,
           ${amounts.map((name) => `COALESCE(${name}, 0)`).join(', ')}, ${bins}
         FROM usage_totals t JOIN usage_names n ON n.id = t.names LEFT JOIN usage_keys k ON k.id = t.key;
         DELETE FROM usage_totals; DELETE FROM usage_names; DELETE FROM usage_keys`,
      );
      await stores.close();
      stores = openStores(address);
      log = openUsageLog(stores);
      const rest = all.splice(300);
      await look();
      expect((await log.sums({}, 'status', { percentiles: true })).sums).toEqual(middle);
      await insert(...rest);
      all.push(...rest);
      await log.addToSums();
      await look();
      await Promise.all([addAll(), addAll()]);
      await look();
      const { database } = stores;
      const count = 'SELECT COUNT(*) AS count FROM usage_sums';
      const [row] =
        database.kind === 'postgres' ? await database.query(count) : await database.read(count, []);
      expect(Number(row?.['count'])).toBe(0);
    });

    test('and names go with the last of their sums', async () => {
      await insert(
        usageRecord('old', { at: now - 20 * day, model: 'gone', keyId: 'k-gone' }),
        usageRecord('both', { at: now - 20 * day, model: 'stays', keyId: 'k-stays' }),
      );
      await addAll();
      await insert(usageRecord('new', { at: now, model: 'stays', keyId: 'k-stays' }));
      await addAll();
      await log.prune({ days: 5, records: 100, sumDays: 10 });
      const { database } = stores;
      const named =
        "SELECT model AS name FROM usage_names WHERE model <> '' UNION SELECT key_id FROM usage_keys";
      const rows =
        database.kind === 'postgres' ? await database.query(named) : await database.read(named, []);
      expect(rows.map(({ name }) => name).toSorted()).toEqual(['k-stays', 'stays']);
      expect((await log.sums({}, 'model')).sums).toMatchObject([{ group: 'stays', calls: 1 }]);
    });

    test('when a write is undone: nothing of it is in the sums', async () => {
      await expect(undone(usageRecord('undone'))).rejects.toThrow('undone');
      await insert(usageRecord('done'));
      await addAll();
      expect((await log.sums({}, 'model')).sums).toMatchObject([{ calls: 1 }]);
    });
  });

  test('an export gives all records of a filter, the oldest first', async () => {
    const records = Array.from({ length: 1203 }, (_, index) =>
      usageRecord(`r${String(index).padStart(4, '0')}`, {
        at: newYear + Math.floor(index / 7),
        status: index % 3 === 0 ? 400 : 200,
      }),
    );
    await insert(...records);
    const seen: string[] = [];
    for await (const { id } of log.each({ outcome: 'ok' })) seen.push(id);
    expect(seen).toEqual(idsOf(records.filter(({ status }) => status === 200)));
  });

  test('failed attempts are counted by channels, whoever answered their calls', async () => {
    const failed = (channel: string, failure = 'upstream_error', message?: string) => ({
      channel,
      model: 'm-2026',
      failure,
      ...(message === undefined ? {} : { cause: { status: 503, message } }),
    });
    await insert(
      usageRecord('before', { at: newYear - 1, attempts: [failed('first')] }),
      ...Array.from({ length: 6_000 }, (_, index) =>
        usageRecord(`r${index}`, { at: newYear + index, attempts: [failed('first')] }),
      ),
      usageRecord('last', {
        at: newYear + 9_000,
        channel: 'third',
        attempts: [
          failed('first'),
          failed('second', 'upstream_timeout', 'Too slow.'),
          failed('fourth', 'hedged'),
        ],
      }),
      // A record that is written again counts once.
      usageRecord('last', { at: newYear + 9_000, attempts: [failed('first')] }),
    );
    const last = { at: newYear + 9_000, model: 'm-2026' };
    expect([...(await log.failedAttempts(newYear))].toSorted()).toEqual([
      ['first', { count: 6_001, last: { ...last, code: 'upstream_error', message: '' } }],
      ['second', { count: 1, last: { ...last, code: 'upstream_timeout', message: 'Too slow.' } }],
    ]);
    await log.prune({ days: 36_000, records: 1, sumDays: 36_000 });
    expect((await log.failedAttempts(0)).get('first')).toMatchObject({ count: 1 });
  });

  describe('how records stand to their rule', () => {
    const keep = { days: 10, records: 1_000, sumDays: 100 };
    const standing = async () =>
      new Map((await log.standing(keep)).map((kept) => [kept.what, kept] as const));

    test('tells how long the limit of records lasts at the rate of the last day', async () => {
      const now = Date.now();
      await insert(
        ...Array.from({ length: 800 }, (_, index) =>
          usageRecord(`r${index}`, { at: now - index * ((2 * day) / 800) }),
        ),
      );
      expect((await standing()).get('usage-sums')).toMatchObject({ rows: 800, overdueSeconds: 0 });
      await addAll();
      const found = await standing();
      expect(found.get('usage-records')).toMatchObject({ rows: 800, overdueSeconds: 0 });
      // 400 a day.
      expect(found.get('usage-records')?.rule).toMatch(
        /up to 1,000 of them: at the rate of the last day that is 2\.\d days/,
      );
      expect(found.get('usage-records')?.warning).toMatch(/keeps 1,000 records, which are 2\.\d days/);
      expect(found.get('usage-sums')).toMatchObject({ rows: 0 });
      expect(found.get('usage-sums')).not.toHaveProperty('warning');
    });

    test('warns of records that should have gone', async () => {
      await insert(usageRecord('old', { at: Date.now() - 12 * day }));
      await addAll();
      const found = await standing();
      expect(found.get('usage-records')?.overdueSeconds).toBeGreaterThan(1.9 * 86_400);
      expect(found.get('usage-records')?.warning).toMatch(/not removed: the oldest is 12 days old/);
      await log.prune(keep);
      expect((await standing()).get('usage-records')).toMatchObject({ rows: 0, overdueSeconds: 0 });
      expect((await standing()).get('usage-records')).not.toHaveProperty('warning');
    });

    test('warns of records that are not in the sums yet', async () => {
      await withoutSums();
      expect((await standing()).get('usage-sums')).toMatchObject({
        overdueSeconds: expect.toSatisfy((seconds: number) => seconds > 5_000),
        warning: expect.stringContaining('older records are still being added'),
      });
      await addAll();
      expect((await standing()).get('usage-sums')).not.toHaveProperty('warning');
    });
  });

  describe('retention', () => {
    test('removes what is too old, with its bodies', async () => {
      const now = Date.now();
      await insert(
        ...Array.from({ length: 1100 }, (_, index) =>
          usageRecord(`old${index}`, { at: now - 3 * day - index, request: 'body', reason: 'x' }),
        ),
        usageRecord('young', { at: now - day, request: 'body' }),
      );
      expect(await log.prune({ days: 2, records: 1_000_000, sumDays: 365 })).toEqual({
        records: 1100,
        sums: expect.any(Number),
      });
      expect(idsOf((await log.page({}, 10)).records)).toEqual(['young']);
      expect(await log.find('young')).toMatchObject({ request: 'body' });
      expect(await log.find('old0')).toBeUndefined();
      expect(await log.prune({ days: 2, records: 1_000_000, sumDays: 365 })).toEqual({ records: 0, sums: 0 });
    });

    test('removes failed attempts of records that a gateway of an older version has removed', async () => {
      const attempts = [{ channel: 'first', model: 'm', failure: 'upstream_error' }];
      await insert(usageRecord('removed', { attempts }), usageRecord('left', { at: newYear + 1, attempts }));
      // An older version knows nothing of the attempts.
      const { database } = stores;
      const older = "DELETE FROM usage_records WHERE id = 'removed'";
      if (database.kind === 'postgres') await database.query(older);
      else database.connection.exec(older);
      expect((await log.failedAttempts(0)).get('first')).toMatchObject({ count: 2 });
      await log.prune({ days: 36_000, records: 0, sumDays: 36_000 });
      expect(await log.failedAttempts(0)).toEqual(new Map());
    });

    test.each([0, 1, 7, 25, 26])('keeps the newest %i of 25', async (keep) => {
      const now = Date.now();
      await insert(
        ...Array.from({ length: 25 }, (_, index) => usageRecord(`r${index}`, { at: now - index * 1000 })),
      );
      expect(await log.prune({ days: 100, records: keep, sumDays: 365 })).toMatchObject({
        records: Math.max(0, 25 - keep),
      });
      const left = idsOf((await log.page({}, 100)).records);
      expect(left).toEqual(Array.from({ length: Math.min(keep, 25) }, (_, index) => `r${index}`));
    });
  });
}
