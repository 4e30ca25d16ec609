/** Whatever happens to the log in whatever order, its sums are those of its records. A list of all records in memory says what they are. */
import * as fc from 'fast-check';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { UsageFilter, UsageGrouping, UsageLog } from '../../../../core/money/usage-log/index.ts';
import { openUsageLog } from '../../../../core/money/usage-log/open.ts';
import type { UsageRecord } from '../../../../core/model/usage-record.ts';
import { openStores, type Stores } from '../../../../core/state/stores.ts';
import { insertRecords, usageRecord } from '../../../suites/usage-log-suite.ts';
import { tries } from '../../../support/tries.ts';
import { temporaryDatabase } from '../../state/support.ts';

const hour = 3_600_000;
const start = Date.UTC(2026, 2, 1, 5);

/** What happens, one after the other. */
type Step =
  | { readonly kind: 'calls'; readonly count: number; readonly hoursAgo: number }
  | { readonly kind: 'wait'; readonly hours: number }
  | { readonly kind: 'add'; readonly steps: number }
  | { readonly kind: 'prune' }
  | {
      readonly kind: 'read';
      readonly hoursAgo: number;
      readonly hours: number;
      readonly by: UsageGrouping & string;
      readonly filter: UsageFilter;
    };

const ages = fc.oneof(
  fc.constantFrom(0, 1, 24, 7 * 24, 30 * 24),
  fc.integer({ min: 0, max: 45 * 24 }),
  fc.double({ min: 0, max: 45 * 24, noNaN: true }),
);

const steps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.oneof(
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constant('calls' as const),
        count: fc.integer({ min: 1, max: 40 }),
        hoursAgo: ages,
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constant('wait' as const),
        hours: fc.constantFrom(0.5, 3, 5, 24, 24, 72, 240),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constant('add' as const),
        steps: fc.constantFrom(1, 3, 20, 10_000, 10_000),
      }),
    },
    { weight: 1, arbitrary: fc.constant({ kind: 'prune' as const }) },
    {
      weight: 6,
      arbitrary: fc.record({
        kind: fc.constant('read' as const),
        hoursAgo: ages,
        hours: fc.oneof(fc.constant(Infinity), ages),
        by: fc.constantFrom(
          'keyId',
          'keyId',
          'member',
          'team',
          'organisation',
          'tag',
          'endUser',
          'model',
          'channel',
          'status' as const,
        ),
        filter: fc.constantFrom<UsageFilter>(
          {},
          {},
          { model: 'model-1' },
          { outcome: 'failed' },
          { keyId: 'key_3' },
          { organisation: 'org_1' },
          { team: 'team_0' },
        ),
      }),
    },
  ),
  { minLength: 20, maxLength: 60 },
);

/** A call whose members differ from number to number. */
function call(number: number, at: number): UsageRecord {
  const isRefused = number % 11 === 0;
  return usageRecord(`req_${number}`, {
    at,
    keyId: `key_${number % 7}`,
    ...(number % 5 === 0
      ? {}
      : { team: `team_${number % 2}`, member: `mem_${number % 3}`, organisation: `org_${number % 2}` }),
    tags: number % 4 === 0 ? [`tag_${number % 3}`] : [],
    ...(number % 3 === 0 ? { endUser: `user_${number % 5}` } : {}),
    model: `model-${number % 4}`,
    status: isRefused ? 429 : number % 13 === 0 ? 502 : 200,
    ...(isRefused ? {} : { channel: `channel-${number % 2}` }),
    input: number,
    output: 1,
    microDollars: number * 3,
    ...(number % 6 === 0 ? { chargedMicroDollars: number * 2 } : {}),
  });
}

const isRefused = ({ status, channel }: UsageRecord): boolean => status === 429 && channel === undefined;

/** By which groups a record counts. */
function groupsOf(record: UsageRecord, by: UsageGrouping & string): readonly (string | number)[] {
  if (by === 'tag') return record.tags ?? [];
  if (by === 'channel') return [record.channel ?? ''];
  const value = record[by as 'keyId'];
  return value === undefined ? [] : [value];
}

function fits(record: UsageRecord, { outcome, ...members }: UsageFilter): boolean {
  if (outcome === 'failed' && (record.status < 400 || isRefused(record))) return false;
  return Object.entries(members).every(([name, value]) => record[name as keyof UsageRecord] === value);
}

/** The sums of these records, by their groups. */
function sumsOf(records: readonly UsageRecord[], by: UsageGrouping & string): unknown {
  const sums = new Map<string | number, Record<string, number>>();
  for (const record of records)
    for (const group of groupsOf(record, by)) {
      const sum = sums.get(group) ?? {
        calls: 0,
        failed: 0,
        refused: 0,
        input: 0,
        output: 0,
        microDollars: 0,
        charged: 0,
      };
      sums.set(group, sum);
      const add = (name: string, value: number): void => {
        sum[name] = (sum[name] ?? 0) + value;
      };
      add('calls', 1);
      add('failed', record.status >= 400 && !isRefused(record) ? 1 : 0);
      add('refused', isRefused(record) ? 1 : 0);
      add('input', record.input);
      add('output', record.output);
      add('microDollars', record.microDollars ?? 0);
      add('charged', record.chargedMicroDollars ?? record.microDollars ?? 0);
    }
  return Object.fromEntries(sums);
}

describe('sums of the usage log', () => {
  afterEach(() => void vi.useRealTimers());

  async function happens(all: readonly Step[], url: string): Promise<void> {
    vi.useFakeTimers({ toFake: ['Date'], now: start });
    const stores: Stores = openStores(url);
    await stores.ready();
    const log: UsageLog = openUsageLog(stores, { fold: 1 });
    const records: UsageRecord[] = [];
    let isPruned = false;
    const doStep = async (step: Step): Promise<void> => {
      const now = Date.now();
      switch (step.kind) {
        case 'calls': {
          // Of the last hours, or of one time that has long passed.
          const calls = Array.from({ length: step.count }, (_, index) =>
            call(records.length + index, Math.round(now - step.hoursAgo * hour - index * 11 * 60_000)),
          );
          records.push(...calls);
          await insertRecords(stores, calls);
          return;
        }
        case 'wait':
          vi.setSystemTime(now + step.hours * hour);
          return;
        case 'add':
          for (let left = step.steps; left > 0 && (await log.addToSums()); left -= 1);
          return;
        case 'prune':
          // Records that are in no sums yet are not removed.
          while (await log.addToSums());
          await log.prune({ days: 20, records: 1_000_000, sumDays: 10_000 });
          isPruned = true;
          return;
        case 'read': {
          const rounded = (time: number): number =>
            isPruned ? Math.floor(time / hour) * hour : Math.round(time);
          const since = rounded(now - step.hoursAgo * hour);
          const until = step.hours === Infinity ? undefined : rounded(since + step.hours * hour);
          // Tags and end users together with others have no sums: they are counted among the records, of which old ones are gone.
          const isOfRecords = step.by === 'tag' || step.by === 'endUser';
          const members = isPruned && isOfRecords ? {} : step.filter;
          const filter = { ...members, since, ...(until !== undefined && { until }) };
          const { sums } = await log.sums(filter, step.by, { limit: 5_000 });
          const found = Object.fromEntries(
            sums.map(({ group, chargedMicroDollars, ...sum }) => [
              group,
              { ...sum, charged: chargedMicroDollars ?? sum.microDollars },
            ]),
          );
          const those = records.filter(
            (record) => record.at >= since && record.at < (until ?? Infinity) && fits(record, members),
          );
          expect([step, found]).toEqual([step, sumsOf(those, step.by)]);
        }
      }
    };
    try {
      // oxlint-disable-next-line no-await-in-loop -- one step after the other
      for (const step of all) await doStep(step);
    } finally {
      vi.useRealTimers();
      await stores.close();
    }
  }

  test('are those of the records, whatever was added, folded, removed and read before, at whatever time', async () => {
    const law = fc.asyncProperty(steps, async (all) => {
      await happens(all, temporaryDatabase());
    });
    await expect(fc.assert(law, { numRuns: tries(300) })).resolves.toBeUndefined();
  });
});
