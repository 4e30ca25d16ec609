/** Sums of many days are the same whether days were folded or not. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import type { UsageRecord } from '../../../../core/model/usage-record.ts';
import type { UsageFilter, UsageGrouping, UsageLog } from '../../../../core/money/usage-log/index.ts';
import { Folding } from '../../../../core/money/usage-log/folding.ts';
import { folds } from '../../../../core/money/usage-log/folds.ts';
import { openUsageLog } from '../../../../core/money/usage-log/open.ts';
import { sqlOf } from '../../../../core/state/database/sql.ts';
import { openStores, type Stores } from '../../../../core/state/stores.ts';
import { startPostgres, withoutPostgres, type TestPostgres } from '../../../support/postgres.ts';
import { insertRecords, usageRecord } from '../../../suites/usage-log-suite.ts';
import { temporaryDatabase } from '../../state/support.ts';
import { everything } from '../../../support/tries.ts';

const missing = withoutPostgres();
const hour = 3_600_000;
const day = 24 * hour;
/** The start of a fold of 27 days. */
const start = Math.ceil(Date.UTC(2026, 0, 1) / (27 * day)) * 27 * day;

/** A call of a key with owners and a tag, at a time that differs from call to call. */
function call(index: number): UsageRecord {
  const key = index % 7;
  return usageRecord(`req_${String(index).padStart(6, '0')}`, {
    at: start + index * 5 * hour + (index % 60) * 60_000,
    keyId: `key_${key}`,
    team: `team_${key % 2}`,
    member: `mem_${key % 3}`,
    organisation: 'org_1',
    tags: [`tag_${index % 3}`],
    endUser: `user_${index % 5}`,
    model: `model-${index % 4}`,
    status: index % 11 === 0 ? 429 : index % 13 === 0 ? 502 : 200,
    ...(index % 11 === 0 ? {} : { channel: 'first' }),
    input: index,
    output: 1,
    microDollars: index * 3,
    ...(index % 3 === 0 ? {} : { chargedMicroDollars: index * (index % 3 === 1 ? 2 : 5) }),
  });
}

const filters: readonly UsageFilter[] = [
  {},
  { model: 'model-1' },
  { outcome: 'refused' },
  { keyId: 'key_3' },
  { team: 'team_1' },
  { organisation: 'org_1', outcome: 'failed' },
  { member: 'mem_2', model: 'model-2' },
  { tag: 'tag_1', model: 'model-2' },
];
const groupings: readonly UsageGrouping[] = [
  'keyId',
  'team',
  'member',
  'organisation',
  'tag',
  'endUser',
  'model',
  'status',
  { bucket: day },
  { bucket: 9 * day },
];
/** Whole folds, and times that begin and end within them. */
const times: readonly (readonly [since: number, until: number])[] = [
  [0, 40 * day],
  [12 * hour, 30 * day],
  [2 * day + hour, 33 * day + 7 * hour],
  [27 * day, 36 * day],
  // 30 and 7 days before the time that tests of the latest days have.
  [8 * day + 12 * hour, 39 * day],
  [31 * day + 12 * hour, 39 * day],
];
/** A time in the day after the last call. */
const later = start + 38 * day + 2 * hour;

async function answersOf(log: UsageLog): Promise<readonly unknown[]> {
  const answers: unknown[] = [];
  for (const [since, until] of times)
    for (const by of groupings)
      for (const filter of filters) {
        const filterOf = { ...filter, since: start + since, until: start + until };
        // oxlint-disable-next-line no-await-in-loop -- one question after the other
        answers.push({
          by,
          filterOf,
          ...(await log.sums(filterOf, by, { limit: 3, order: 'calls' })),
        });
      }
  return answers;
}

/** Adds all records to the sums, and folds these. */
async function addAll(log: UsageLog): Promise<void> {
  // oxlint-disable-next-line no-await-in-loop -- one step after the other
  while (await log.addToSums());
}

function foldsSuite(url: () => string | Promise<string>): void {
  let stores: Stores;
  let unfolded: UsageLog;

  beforeEach(async () => {
    stores = openStores(await url());
    unfolded = openUsageLog(stores, { fold: Infinity });
    await insertRecords(
      stores,
      Array.from({ length: 180 }, (_, index) => call(index)),
    );
    await addAll(unfolded);
  });
  afterEach(() => {
    vi.useRealTimers();
    return stores.close();
  });

  /** Only the time is another: connections need timers. */
  const setTime = (time: number): void => {
    vi.useFakeTimers({ toFake: ['Date'], now: time });
  };

  /** A log that folds, as a gateway that starts has it. */
  const folding = (): UsageLog => openUsageLog(stores, { fold: 1 });
  const query = async (sql: string): Promise<readonly Readonly<Record<string, unknown>>[]> => {
    const { database } = stores;
    if (database.kind === 'postgres') return database.query(sql);
    const statement = database.connection.prepare(sql);
    return statement.all();
  };
  const counted = async (): Promise<number> =>
    Number((await query('SELECT COUNT(*) AS count FROM usage_totals WHERE level = 43'))[0]?.['count']);

  test('sums of any time are the same before and after, by everything and however narrowed', async () => {
    setTime(later);
    const before = await answersOf(unfolded);
    await addAll(folding());
    const [made] = await query('SELECT COUNT(DISTINCT level) AS count FROM usage_folds WHERE after IS NULL');
    expect(Number(made?.['count'])).toBe(folds.length);
    expect(await answersOf(unfolded)).toEqual(before);
  });

  test('sums of some keys and owners are theirs among the sums of all, folded or not, and of records that wait to be added', async () => {
    const check = async (): Promise<void> => {
      for (const [since, until] of [...times, [2 * day, 2 * day + hour]] as const)
        for (const by of ['keyId', 'team', 'member', 'organisation'] as const)
          for (const filter of filters) {
            const rangeFilter = { ...filter, since: start + since, until: start + until };
            // oxlint-disable-next-line no-await-in-loop -- one question after the other
            const { sums } = await unfolded.sums(rangeFilter, by);
            const groups = ['key_1', 'key_5', 'team_1', 'mem_2', 'org_1', 'waiting', 'nobody'];
            // oxlint-disable-next-line no-await-in-loop
            expect(await unfolded.sums(rangeFilter, by, { groups, limit: 1 })).toEqual({
              sums: sums.filter(({ group }) => groups.includes(String(group))),
            });
          }
    };
    await check();
    await addAll(folding());
    await insertRecords(stores, [usageRecord('late', { ...call(9), id: 'late', keyId: 'waiting' })]);
    await check();
  });

  test('a fold is read in the place of what it was made of', async () => {
    await addAll(folding());
    const rangeFilter = { since: start, until: start + 27 * day };
    const before = await unfolded.sums(rangeFilter, 'keyId');
    await query('DELETE FROM usage_totals WHERE level IN (5, 6, 40, 41, 42)');
    expect(await unfolded.sums(rangeFilter, 'keyId')).toEqual(before);
    await query('UPDATE usage_folds SET after = 0 WHERE level = 43');
    expect(await unfolded.sums(rangeFilter, 'keyId')).toEqual({ sums: [] });
  });

  test('the last 30 and 7 days are read from one fold, whatever the hour is, and one day after the other has its own', async () => {
    setTime(later);
    await addAll(folding());
    const ranges = [8.5, 31.5].map((since) => ({ since: start + since * day, until: start + 39 * day }));
    const sums = (): Promise<readonly unknown[]> =>
      Promise.all(
        ranges.flatMap((filter) =>
          (['keyId', 'member'] as const).map((by) => unfolded.sums(filter, by, { limit: 3 })),
        ),
      );
    const before = await sums();
    const latest = [(start + 9 * day) / 60_000, (start + 37 * day) / 60_000].join(' AND ');
    await query(`DELETE FROM usage_totals WHERE level = 6 AND start BETWEEN ${latest} - 1`);
    await query(`DELETE FROM usage_subject_totals WHERE level = 11 AND start BETWEEN ${latest} - 1`);
    await query('DELETE FROM usage_folds WHERE level IN (41, 42, 43, 70, 71, 72)');
    expect(await sums()).toEqual(before);

    const made = async (): Promise<readonly number[]> =>
      (await query('SELECT start FROM usage_folds WHERE level = 48 ORDER BY start')).map(
        (one) => (Number(one['start']) * 60_000 - start) / day,
      );
    expect(await made()).toEqual([9]);
    setTime(later + day);
    await addAll(folding());
    await unfolded.prune({ days: 1_000, records: 1_000_000, sumDays: 1_000 });
    expect(await made()).toEqual([9, 10]);
    setTime(later + 2 * day);
    await addAll(folding());
    await unfolded.prune({ days: 1_000, records: 1_000_000, sumDays: 1_000 });
    expect(await made()).toEqual([10, 11]);
    const left = await query('SELECT DISTINCT start FROM usage_totals WHERE level = 48');
    expect(left).toHaveLength(2);
  });

  test('sums are the same while the latest days of today and of yesterday both have their folds', async () => {
    setTime(later);
    const before = await answersOf(unfolded);
    await addAll(folding());
    setTime(later + day);
    await addAll(folding());
    const latest = await query('SELECT level FROM usage_folds WHERE level IN (48, 49, 54, 55, 77, 78)');
    expect(latest).toHaveLength(12);
    expect(await answersOf(unfolded)).toEqual(before);
  });

  test('folds are the same when they are made of a few sums at a time', async () => {
    await addAll(folding());
    const all = async (): Promise<readonly unknown[]> => [
      await query('SELECT * FROM usage_totals WHERE level IN (43, 44) ORDER BY level, start, key, names'),
      await query(
        'SELECT * FROM usage_subject_totals WHERE level IN (53, 76) ORDER BY level, start, subject, names',
      ),
      await query('SELECT * FROM usage_folds ORDER BY level, start'),
    ];
    const before = await all();
    await query('DELETE FROM usage_folds WHERE level IN (43, 44, 53, 76)');
    await query('DELETE FROM usage_totals WHERE level = 43');
    const { database } = stores;
    const small = new Folding(database.kind, 1);
    let mostNew = 0;
    for (let count = await counted(), hasMore = true; hasMore;) {
      // oxlint-disable-next-line no-await-in-loop -- one step after the other
      hasMore = await sqlOf(database).atomically(() => small.step(3));
      // oxlint-disable-next-line no-await-in-loop -- one step after the other
      const now = await counted();
      mostNew = Math.max(mostNew, now - count);
      count = now;
    }
    expect(await all()).toEqual(before);
    // Three sums, or all of one key: there are three kinds of them.
    expect(mostNew).toBe(3);
  });

  test('folds that an older gateway has made or gone on with are made anew, because they lack what was charged', async () => {
    await addAll(folding());
    const before = await answersOf(unfolded);
    for (const older of [
      // Made from the beginning, and gone on with.
      'UPDATE usage_folds SET charged = NULL',
      'UPDATE usage_folds SET charged = 1 WHERE level IN (41, 43, 50, 72)',
    ]) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      await query(older);
      for (const table of ['usage_totals', 'usage_subject_totals'])
        // oxlint-disable-next-line no-await-in-loop -- one after the other
        await query(
          `UPDATE ${table} SET charged_more = NULL WHERE level >= 40 AND level IN (SELECT level FROM usage_folds WHERE charged IS NULL OR charged = 1)`,
        );
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      expect(await answersOf(unfolded)).toEqual(before);
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      await addAll(folding());
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      expect(await answersOf(unfolded)).toEqual(before);
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      const [left] = await query(
        'SELECT COUNT(*) AS count FROM usage_folds WHERE charged IS NULL OR charged < 2147483647',
      );
      expect(Number(left?.['count'])).toBe(0);
    }
  });

  test('half days of keys have the refused calls of a gateway that counted these as failed', async () => {
    const rangeFilter = { since: start + 12 * hour, until: start + 36 * hour };
    const calls = async (): Promise<readonly (readonly [string | number, number, number])[]> =>
      (await unfolded.sums(rangeFilter, 'keyId')).sums
        .map(({ group, calls: count, microDollars }) => [group, count, microDollars] as const)
        .toSorted(([one], [other]) => (one < other ? -1 : 1));
    await insertRecords(
      stores,
      [13, 14, 15, 30].map((after, index) => ({
        ...call(11 * index),
        id: `refused_${index}`,
        at: start + after * hour,
      })),
    );
    await addAll(unfolded);
    const before = await calls();
    expect(before.reduce((sum, [, count]) => sum + count, 0)).toBeGreaterThan(4);
    await query("DELETE FROM usage_names WHERE model = '' AND status = 400");
    await addAll(folding());
    const [made] = await query(
      'SELECT COUNT(*) AS count FROM usage_folds WHERE level = 40 AND after IS NULL',
    );
    expect(Number(made?.['count'])).toBeGreaterThan(0);
    expect(await calls()).toEqual(before);
  });

  test('numbers of keys without sums take no steps', async () => {
    await query('UPDATE usage_keys SET id = id + 5000000');
    await query('UPDATE usage_totals SET key = key + 5000000 WHERE level >= 5');
    const log = folding();
    let steps = 0;
    // oxlint-disable-next-line no-await-in-loop -- one step after the other
    while (steps < 2_000 && (await log.addToSums())) steps += 1;
    const [tiles] = await query('SELECT COUNT(*) AS count FROM usage_folds WHERE after IS NULL');
    expect(Number(tiles?.['count'])).toBeGreaterThan(100);
    expect(steps).toBeLessThan(Number(tiles?.['count']) + 10);
  });

  test('a record that comes late is counted at once, and when its time was folded anew', async () => {
    await addAll(folding());
    const all = { since: start, until: start + 27 * day };
    const calls = async (filter: UsageFilter, by: UsageGrouping): Promise<number> =>
      (await unfolded.sums({ ...all, ...filter }, by)).sums.reduce((sum, one) => sum + one.calls, 0);
    const before = [await calls({ keyId: 'key_5' }, 'keyId'), await calls({ member: 'mem_2' }, 'member')];
    await insertRecords(stores, [{ ...call(12), id: 'late', at: start + 4 * day + 1 }]);
    for (const look of ['not added', 'added', 'folded']) {
      const found = [await calls({ keyId: 'key_5' }, 'keyId'), await calls({ member: 'mem_2' }, 'member')];
      expect([look, ...found]).toEqual([look, ...before.map((count) => count + 1)]);
      await addAll(look === 'not added' ? unfolded : folding());
    }
    const left = await query(
      `SELECT level FROM usage_folds WHERE after IS NULL AND level IN (43, 72) AND start = ${start / 60_000}`,
    );
    expect(left).toHaveLength(2);
  });

  test('four hours have folds for two months, and half days are made of what there is', async () => {
    const lastFour = async (): Promise<readonly unknown[]> => {
      const found = await query(
        `SELECT level, MIN(start) AS first, MAX(start) AS last FROM usage_folds WHERE level IN (37, 38, 56, 68, 69) GROUP BY level ORDER BY level`,
      );
      return found.map(({ level, first, last }) => [
        Number(level),
        ...[first, last].map((one) => (Number(one) * 60_000 - start) / (4 * hour)),
      ]);
    };
    setTime(start + 3 * day + 2 * hour);
    await addAll(folding());
    const levels = [37, 38, 56, 68, 69];
    expect(await lastFour()).toEqual(levels.map((level) => [level, 0, 16]));
    const halves = await query('SELECT COUNT(*) AS count FROM usage_folds WHERE level = 39');
    expect(halves).toEqual([{ count: 5 }]);

    setTime(start + 64 * day);
    await addAll(folding());
    await unfolded.prune({ days: 1_000, records: 1_000_000, sumDays: 1_000 });
    const [[, oldest] = []] = (await lastFour()) as readonly number[][];
    expect(oldest).toBe((2 * day) / (4 * hour));
    const old = await query(
      `SELECT 1 FROM usage_totals WHERE level = 37 AND start < ${(start + 2 * day) / 60_000}`,
    );
    expect(old).toEqual([]);
    // A late record: the half day of two months ago is made of hours.
    await insertRecords(stores, [{ ...call(3), id: 'late', at: start + 5 * hour }]);
    await addAll(folding());
    expect(
      await query(
        `SELECT SUM(calls) AS calls FROM usage_totals WHERE level = 39 AND start = ${start / 60_000}`,
      ),
    ).toEqual(
      await query(
        `SELECT SUM(calls) AS calls FROM usage_totals WHERE level = 5 AND start >= ${start / 60_000} AND start < ${(start + 12 * hour) / 60_000}`,
      ),
    );
    expect(
      await query(`SELECT start FROM usage_folds WHERE level = 37 AND start < ${(start + 2 * day) / 60_000}`),
    ).toEqual([]);
  });

  test('folds that are too old go with the other sums, also those of times without sums', async () => {
    await addAll(folding());
    await query('DELETE FROM usage_subject_totals WHERE level = 53');
    await unfolded.prune({ days: 1, records: 1_000_000, sumDays: 1 });
    expect(await query('SELECT * FROM usage_folds')).toEqual([]);
    expect(await query('SELECT * FROM usage_totals WHERE level >= 40')).toEqual([]);
    expect(await query('SELECT * FROM usage_subject_totals')).toEqual([]);
  });
}

describe('on an SQLite file', () => {
  foldsSuite(temporaryDatabase);
});

// Slow there: on PostgreSQL with `npm run fuzz` alone.
describe.skipIf(missing !== undefined || !everything)(
  `on Postgres${missing === undefined ? '' : `, ${missing}`}`,
  () => {
    let server: TestPostgres;

    beforeAll(async () => {
      server = await startPostgres();
    });
    afterAll(() => server?.close());

    foldsSuite(() => server.createDatabaseWithTables());
  },
);
