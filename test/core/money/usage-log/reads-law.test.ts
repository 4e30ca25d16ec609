/**
 * Whatever happens to the log in whatever order, its lists and sums are those of the records that were written. A list of all records in memory says
 * what they are.
 */
import * as fc from 'fast-check';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import type {
  UsageFilter,
  UsageGrouping,
  UsageLog,
  UsageSumsList,
  UsageSumsOptions,
} from '../../../../core/money/usage-log/index.ts';
import { openUsageLog } from '../../../../core/money/usage-log/open.ts';
import type { UsageRecord } from '../../../../core/model/usage-record.ts';
import { openStores, type Stores } from '../../../../core/state/stores.ts';
import { startPostgres, withoutPostgres, type TestPostgres } from '../../../support/postgres.ts';
import { insertRecords, usageRecord } from '../../../suites/usage-log-suite.ts';
import { everything, tries } from '../../../support/tries.ts';
import { temporaryDatabase } from '../../state/support.ts';

const missing = withoutPostgres();
const hour = 3_600_000;
const day = 24 * hour;
const start = Date.UTC(2026, 2, 1, 5);
/** How long records are kept, in days. */
const keptDays = 20;

/** What happens, one after the other. */
type Step =
  | { readonly kind: 'calls'; readonly count: number; readonly hoursAgo: number }
  | { readonly kind: 'wait'; readonly hours: number }
  | { readonly kind: 'add'; readonly steps: number }
  | { readonly kind: 'prune' }
  | (Asked & { readonly kind: 'sum'; readonly by: UsageGrouping; readonly options: UsageSumsOptions })
  | (Asked & { readonly kind: 'list'; readonly limit: number });

/** The time and the filter of a read. */
interface Asked {
  readonly hoursAgo: number;
  readonly hours: number;
  readonly filter: UsageFilter;
}

const ages = fc.oneof(
  fc.constantFrom(0, 1, 24, 7 * 24, 30 * 24),
  fc.integer({ min: 0, max: 45 * 24 }),
  fc.double({ min: 0, max: 45 * 24, noNaN: true }),
);
const asked = {
  hoursAgo: ages,
  hours: fc.oneof(fc.constant(Infinity), ages),
  filter: fc.constantFrom<UsageFilter>(
    {},
    {},
    { model: 'model-1' },
    { outcome: 'failed' },
    { outcome: 'refused' },
    { keyId: 'key_3' },
    { organisation: 'org_1' },
    { team: 'team_0' },
  ),
};
const groupings = fc.constantFrom<UsageGrouping>(
  'keyId',
  'keyId',
  'member',
  'team',
  'organisation',
  'tag',
  'endUser',
  'model',
  'channel',
  'status',
  { bucket: hour },
  { bucket: 12 * hour },
  { bucket: day },
);
const options = fc.oneof(
  fc.constant<UsageSumsOptions>({}),
  fc.record({
    limit: fc.integer({ min: 1, max: 4 }),
    order: fc.constantFrom('calls' as const, 'cost' as const),
    rest: fc.boolean(),
  }),
  fc.constant<UsageSumsOptions>({ groups: ['key_1', 'key_5', 'team_1', 'mem_2', 'org_0', 'nobody'] }),
);

/** A step of a kind, as often among the others as its weight says. */
const weighted = <T>(weight: number, members: { [Name in keyof T]: fc.Arbitrary<T[Name]> }) => ({
  weight,
  arbitrary: fc.record(members),
});
const steps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.oneof(
    weighted(3, {
      kind: fc.constant('calls' as const),
      count: fc.integer({ min: 1, max: 40 }),
      hoursAgo: ages,
    }),
    weighted(3, { kind: fc.constant('wait' as const), hours: fc.constantFrom(0.5, 3, 5, 24, 24, 72, 240) }),
    weighted(3, { kind: fc.constant('add' as const), steps: fc.constantFrom(1, 3, 20, 10_000, 10_000) }),
    weighted(1, { kind: fc.constant('prune' as const) }),
    weighted(6, { kind: fc.constant('sum' as const), by: groupings, options, ...asked }),
    weighted(2, { kind: fc.constant('list' as const), limit: fc.constantFrom(1, 7, 50), ...asked }),
  ),
  { minLength: 20, maxLength: 60 },
);

/** A call whose members differ from number to number. */
function call(number: number, at: number): UsageRecord {
  const hasOwners = number % 5 !== 0;
  const status = number % 11 === 0 ? 429 : number % 13 === 0 ? 502 : 200;
  return usageRecord(`req_${number}`, {
    at,
    keyId: `key_${number % 7}`,
    ...(hasOwners && {
      team: `team_${number % 2}`,
      member: `mem_${number % 3}`,
      organisation: `org_${number % 2}`,
    }),
    tags: number % 4 === 0 ? [`tag_${number % 3}`] : [],
    ...(number % 3 === 0 && { endUser: `user_${number % 5}` }),
    model: `model-${number % 4}`,
    status,
    ...(status !== 429 && { channel: `channel-${number % 2}` }),
    input: number,
    output: 1,
    microDollars: number * 3,
    ...(number % 6 === 0 && { chargedMicroDollars: number * 2 }),
  });
}

function outcomeOf({ status }: UsageRecord): 'ok' | 'failed' | 'refused' {
  if (status === 429) return 'refused';
  return status === 200 ? 'ok' : 'failed';
}

function fits(
  record: UsageRecord,
  { outcome, since = 0, until = Infinity, ...members }: UsageFilter,
): boolean {
  if (record.at < since || record.at >= until) return false;
  if (outcome !== undefined && outcomeOf(record) !== outcome) return false;
  return Object.entries(members).every(([name, value]) => record[name as keyof UsageRecord] === value);
}

/** The groups that a record counts in. */
function groupsOf(record: UsageRecord, by: UsageGrouping): readonly string[] {
  if (typeof by === 'object') return [String(record.at - (record.at % by.bucket))];
  if (by === 'tag') return record.tags ?? [];
  if (by === 'channel') return [record.channel ?? ''];
  const value = record[by];
  return value === undefined ? [] : [String(value)];
}

const chosenBy: ReadonlySet<string> = new Set(['keyId', 'team', 'member', 'organisation']);

const amounts = ['calls', 'failed', 'refused', 'input', 'output', 'microDollars', 'charged'] as const;
type Sum = Record<(typeof amounts)[number], number>;
const nothing: Sum = { calls: 0, failed: 0, refused: 0, input: 0, output: 0, microDollars: 0, charged: 0 };

function plus(one: Sum, other: Sum, sign = 1): Sum {
  return Object.fromEntries(amounts.map((name) => [name, one[name] + sign * other[name]])) as Sum;
}

function amountsOf(record: UsageRecord): Sum {
  const { input, output, microDollars = 0, chargedMicroDollars = microDollars } = record;
  const outcome = outcomeOf(record);
  const [failed, refused] = [Number(outcome === 'failed'), Number(outcome === 'refused')];
  return { calls: 1, failed, refused, input, output, microDollars, charged: chargedMicroDollars };
}

/** The sums of records by their groups. */
function sumsOf(records: readonly UsageRecord[], by: UsageGrouping): ReadonlyMap<string, Sum> {
  const sums = new Map<string, Sum>();
  for (const record of records)
    for (const group of groupsOf(record, by))
      sums.set(group, plus(sums.get(group) ?? nothing, amountsOf(record)));
  return sums;
}

/** The sum that the log returned of one group, or of those that it does not list. */
function asSum(found: NonNullable<UsageSumsList['rest']> | UsageSumsList['sums'][number]): Sum {
  const { calls, failed, refused, input, output, microDollars, chargedMicroDollars } = found;
  return {
    calls,
    failed,
    refused,
    input,
    output,
    microDollars,
    charged: chargedMicroDollars ?? microDollars,
  };
}

/** Expects a list of sums to be the one that was asked for. Of groups that are equal in their order any may be listed. */
function expectSums(
  { sums, rest }: UsageSumsList,
  wanted: ReadonlyMap<string, Sum>,
  by: UsageGrouping,
  { limit = Infinity, order = 'cost', rest: withRest = true, groups }: UsageSumsOptions,
): void {
  const listed = new Map(sums.map((one) => [String(one.group), asSum(one)]));
  expect(listed.size).toBe(sums.length);
  for (const [group, sum] of listed) expect([group, sum]).toEqual([group, wanted.get(group)]);
  if (typeof by === 'object') {
    expect([...listed.keys()]).toEqual(
      [...wanted.keys()].toSorted((one, other) => Number(one) - Number(other)),
    );
    return;
  }
  const among = [...wanted].filter(([group]) => groups?.includes(group) ?? true).map(([, sum]) => sum);
  const inOrder = (all: readonly Sum[]): readonly number[] =>
    all.map((sum) => sum[order === 'cost' ? 'microDollars' : 'calls']).toSorted((one, other) => other - one);
  expect(inOrder([...listed.values()])).toEqual(inOrder(among).slice(0, limit));
  const left = [...wanted].filter(([group]) => !listed.has(group)).map(([, sum]) => sum);
  if (!withRest || groups !== undefined || left.length === 0) expect(rest).toBeUndefined();
  else
    expect(rest && { groups: rest.groups, ...asSum(rest) }).toEqual({
      groups: left.length,
      ...left.reduce((one, other) => plus(one, other), nothing),
    });
}

/** What was written to a log, and what is left of it. */
class Written {
  readonly all: UsageRecord[] = [];
  /** The records that are there still, where some were removed. */
  kept: UsageRecord[] | undefined;

  add(records: readonly UsageRecord[]): void {
    this.all.push(...records);
    this.kept?.push(...records);
  }
}

async function follow(log: UsageLog, stores: Stores, written: Written, step: Step): Promise<void> {
  const now = Date.now();
  const filterOf = ({ hoursAgo, hours, filter }: Asked): UsageFilter => {
    // Sums of a time whose records were removed are of whole hours.
    const rounded = (time: number): number =>
      written.kept === undefined ? Math.round(time) : Math.floor(time / hour) * hour;
    const since = rounded(now - hoursAgo * hour);
    return { ...filter, since, ...(hours !== Infinity && { until: rounded(since + hours * hour) }) };
  };
  switch (step.kind) {
    case 'calls': {
      // Some in a few hours, recent or long ago.
      const calls = Array.from({ length: step.count }, (_, index) =>
        call(written.all.length + index, Math.round(now - step.hoursAgo * hour - index * 11 * 60_000)),
      );
      written.add(calls);
      await insertRecords(stores, calls);
      return;
    }
    case 'wait':
      vi.setSystemTime(now + step.hours * hour);
      return;
    case 'add':
      for (let left = step.steps; left > 0 && (await log.addToSums()); left -= 1);
      return;
    case 'prune': {
      await log.prune({ days: keptDays, records: 1_000_000, sumDays: 10_000 });
      const kept = new Set<string>();
      for await (const { id } of log.each({})) kept.add(id);
      for (const { id, at } of written.kept ?? written.all)
        if (at >= now - keptDays * day) expect(kept).toContain(id);
      written.kept = written.all.filter(({ id }) => kept.has(id));
      return;
    }
    case 'list': {
      const filter = filterOf(step);
      const found: string[] = [];
      for (let after: string | undefined, isFirst = true; isFirst || after !== undefined; isFirst = false) {
        const page = await log.page(filter, step.limit, after);
        expect(page.records.length).toBeLessThanOrEqual(step.limit);
        found.push(...page.records.map(({ id }) => id));
        after = page.next;
      }
      const wanted = (written.kept ?? written.all)
        .filter((record) => fits(record, filter))
        .toSorted((one, other) => other.at - one.at || (one.id < other.id ? 1 : -1));
      expect([step, found]).toEqual([step, wanted.map(({ id }) => id)]);
      return;
    }
    case 'sum': {
      const { by, options: given } = step;
      const { groups, ...others } = given;
      // Only keys and owners are chosen by name.
      const chosen = groups !== undefined && typeof by === 'string' && chosenBy.has(by) ? given : others;
      // What no sums have is counted among the records, of which old ones are gone.
      const isOfRecords = by === 'tag' || by === 'endUser';
      const filter = filterOf({
        ...step,
        filter: written.kept !== undefined && isOfRecords ? {} : step.filter,
      });
      const those = written.all.filter((record) => fits(record, filter));
      expectSums(await log.sums(filter, by, chosen), sumsOf(those, by), by, chosen);
    }
  }
}

function lawSuite(url: () => string | Promise<string>, runs: number): void {
  afterEach(() => void vi.useRealTimers());

  test('are those of the records, whatever was written, added, folded and removed before, and at whatever time', async () => {
    const law = fc.asyncProperty(steps, async (all) => {
      const stores = openStores(await url());
      await stores.ready();
      vi.useFakeTimers({ toFake: ['Date'], now: start });
      try {
        const log = openUsageLog(stores, { fold: 1 });
        const written = new Written();
        // oxlint-disable-next-line no-await-in-loop -- one step after the other
        for (const step of all) await follow(log, stores, written, step);
      } finally {
        vi.useRealTimers();
        await stores.close();
      }
    });
    await expect(fc.assert(law, { numRuns: runs })).resolves.toBeUndefined();
  });
}

describe('lists and sums on an SQLite file', () => {
  lawSuite(temporaryDatabase, tries(150));
});

// Slow there: on PostgreSQL with `npm run fuzz` alone.
describe.skipIf(missing !== undefined || !everything)(
  `lists and sums on Postgres${missing === undefined ? '' : `, ${missing}`}`,
  () => {
    let server: TestPostgres;

    beforeAll(async () => {
      server = await startPostgres();
    });
    afterAll(() => server?.close());

    lawSuite(() => server.createDatabaseWithTables(), 40);
  },
);
