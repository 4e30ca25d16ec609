import { expect, test } from 'vitest';
import type { UsageFilter, UsageGrouping } from '../../../core/money/usage-log/index.ts';
import { overviewHandler } from '../../../plugins/admin/overview.ts';
import { overviewQuery } from '../../../plugins/admin/schemas/index.ts';

const usage = { calls: 1, failed: 0, refused: 0, input: 1, output: 1, microDollars: 1 };

/** By what an overview groups calls of the usage log, and the tags that it lists. */
async function viewOf(query: object) {
  const groupings: UsageGrouping[] = [];
  const times = new Set<number | undefined>();
  const tools = {
    usageLog: {
      sums: (filter: UsageFilter, by: UsageGrouping) => {
        groupings.push(by);
        times.add(filter.since);
        return Promise.resolve({ sums: [{ group: 'one', ...usage }] });
      },
    },
    apiKeys: { names: () => Promise.resolve(new Map()) },
    rates: { state: 'ok' },
    bookkeeper: { waiting: 0 },
    catalog: { channels: [], isOn: () => true },
    upkeep: { warned: [] },
  } as unknown as Parameters<typeof overviewHandler>[0];
  const overview = overviewHandler(tools, () => Promise.resolve(0));
  const { tags, bucket } = await overview({ query: overviewQuery.parse(query) } as Parameters<
    typeof overview
  >[0]);
  return { groupings, bucket, times: [...times], tags: tags.map(({ group }) => group) };
}

test.each([
  { keyId: 'key_1' },
  { team: 'team_1' },
  { member: 'mem_1', tag: 'blue' },
  { organisation: 'org_1' },
])('an overview of %j does not read all records for its tags', async (query) => {
  const { groupings, tags } = await viewOf(query);
  expect(groupings).toContain('keyId');
  expect(groupings).not.toContain('tag');
  expect(tags).toEqual([]);
});

test.each([{}, { tag: 'blue' }])('an overview of %j has tags', async (query) => {
  expect(await viewOf(query)).toMatchObject({ tags: ['one'] });
});

test.each([{}, { keyId: 'key_1' }, { tag: 'blue' }])(
  'an overview of a day of %j has points of an hour, and begins with one, so that it reads no records',
  async (query) => {
    const { groupings, bucket, times } = await viewOf({ ...query, range: '24h' });
    expect(bucket).toBe(3_600_000);
    expect(groupings).toContainEqual({ bucket: 3_600_000 });
    expect(Number(times[0]) % 3_600_000).toBe(0);
  },
);
