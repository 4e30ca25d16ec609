import type { Database } from '../../state/database/index.ts';
import type {
  UsageFilter,
  UsageGrouping,
  UsageLog,
  UsageSums,
  UsageSumsList,
  UsageSumsOptions,
  UsageTotals,
} from './index.ts';
import { sumIn } from './added-up.ts';
import { countOfFolds, foldedIn } from './folded.ts';
import { foldsFor, foldsOfKind, usedFolds, type Fold } from './folds.ts';
import { levelFor, segmentsOf, type Folded, type Segment } from './levels.ts';
import { Percentiles } from './percentiles.ts';
import { askedOnce, type Ask } from '../../state/database/long-reads.ts';
import { groupOf, type Group } from './sums-grouping.ts';
import { rangeOf } from './questions.ts';
import type { Row } from './read-rows.ts';
import { namedMembers, type Source } from './narrowing.ts';
import { subjectPlan, subjectSegments, subjectSource } from './subject-source.ts';
import { sourceOf, sourceWithBins } from './sums-source.ts';

/** Maximum number of groups in one answer. */
export const mostGroups = 5_000;

/** Members of a filter that the sums know nothing of. */
const ofRecords = ['id', 'minMs', 'maxMs', 'minMicroDollars', 'maxMicroDollars'] as const;

const hour = 3_600_000;

/** How often a question is asked again where folds went while it was asked. */
const attempts = 3;

/** Thrown where folds that a question was to read are there no more. */
class FoldsGone extends Error {}

/** Opens the sums of a log. `askLarge`: for statements that add up very many rows. */
export function createSums(ask: Ask, askLarge: Ask, kind: Database['kind']): UsageLog['sums'] {
  // An overview is many sums of one time.
  const sums = createReading(askedOnce(ask), askLarge, kind);
  return async (filter, grouping, options) => {
    for (let attempt = 1; ; attempt += 1) {
      try {
        // oxlint-disable-next-line no-await-in-loop -- again, because it failed
        return await sums(filter, grouping, { ...options, useFolds: attempt < attempts });
      } catch (error) {
        if (!(error instanceof FoldsGone)) throw error;
      }
    }
  };
}

function createReading(ask: Ask, askLarge: Ask, kind: Database['kind']) {
  return async (
    filter: UsageFilter,
    grouping: UsageGrouping,
    {
      limit = mostGroups,
      order = 'cost',
      percentiles = false,
      useFolds,
    }: UsageSumsOptions & { readonly useFolds: boolean },
  ): Promise<UsageSumsList> => {
    const { start, end } = await roundedRange(ask, filter);
    const plan = subjectPlan(filter, grouping);
    const group = groupOf(grouping, plan?.grouped !== undefined);
    const most = Math.max(1, Math.min(mostGroups, limit));
    const isOfRecords = ofRecords.some((name) => filter[name] !== undefined);
    const folded = (all: readonly Fold[]): Promise<readonly Folded[]> =>
      foldedIn(ask, useFolds && !isOfRecords ? all : [], start, end);
    if (plan !== undefined) {
      const owned = isOfRecords ? ({ ...plan, kind: 'records' } as const) : plan;
      const segments = subjectSegments(
        owned,
        group.bucket,
        start,
        end,
        owned.kind === 'records' ? [] : await folded(foldsOfKind(owned.kind, owned.needsNames)),
      );
      if (segments.length === 0) return { sums: [] };
      const source = subjectSource(kind, owned, filter, segments, group.bucket);
      return listOf(askLarge, kind, source, group, most, order, segments);
    }
    const needsKeys = filter.keyId !== undefined || grouping === 'keyId';
    const needs = {
      needsKeys,
      needsNames: isNamed(filter) || (typeof grouping !== 'object' && grouping !== 'keyId'),
    };
    const segments: readonly Segment[] = isOfRecords
      ? [{ level: 'records', since: start, until: end }]
      : segmentsOf(
          (size) => levelFor(needs, size),
          group.bucket,
          start,
          end,
          Date.now(),
          await folded(foldsFor(needs)),
        );
    if (segments.length === 0) return { sums: [] };
    const incompleteBefore = await unsummedBefore(ask, start);
    const source = sourceOf(kind, filter, segments, { bucket: group.bucket, byKey: grouping === 'keyId' });
    const list = await listOf(askLarge, kind, source, group, most, order, segments);
    const times =
      percentiles && !needsKeys
        ? await timesOf(askLarge, kind, sourceWithBins(kind, filter, segments), group, list.sums)
        : undefined;
    return {
      ...list,
      ...(times === undefined ? {} : { sums: list.sums.map((sum) => ({ ...sum, ...times(sum.group) })) }),
      ...(incompleteBefore === undefined ? {} : { incompleteBefore }),
    };
  };
}

/** The range of a filter. Where the records of its ends have gone, it has whole hours. */
async function roundedRange(ask: Ask, filter: UsageFilter): Promise<{ start: number; end: number }> {
  const { start, end } = rangeOf(filter);
  const [row] = await ask('SELECT at FROM usage_records ORDER BY at LIMIT 1', []);
  const oldest = row === undefined ? Number.MAX_SAFE_INTEGER : Number(row['at']);
  return {
    start: start < oldest ? Math.floor(start / hour) * hour : start,
    end: end < oldest ? Math.ceil(end / hour) * hour : end,
  };
}

function isNamed(filter: UsageFilter): boolean {
  return namedMembers.some((name) => filter[name] !== undefined);
}

/** The time before which records are missing from the sums, when it is later than the time that is asked about. */
async function unsummedBefore(ask: Ask, start: number): Promise<number | undefined> {
  const [row] = await ask('SELECT at FROM usage_summing WHERE at > ?', [start]);
  return row === undefined ? undefined : Number(row['at']);
}

async function listOf(
  ask: Ask,
  kind: Database['kind'],
  { sql, values }: Source,
  { sql: group, columns: grouped, order: place, name, bucket, isNumber }: Group,
  limit: number,
  order: 'cost' | 'calls',
  segments: readonly Segment[],
): Promise<UsageSumsList> {
  const used = usedFolds(segments);
  const [first, second] = order === 'cost' ? ['micro_dollars', 'calls'] : ['calls', 'micro_dollars'];
  const sum = sumIn(kind);
  const added = (names: Readonly<Record<string, string>>): string =>
    Object.entries(names)
      .map(([column, value]) => `${sum(value)} AS ${column}`)
      .join(', ');
  const own = ['calls', 'failed', 'refused', 'input', 'output', 'micro_dollars', 'charged_more'];
  const ofGroup = {
    ...Object.fromEntries(own.map((column) => [column, column])),
    failed: 'failed_calls',
    refused: 'refused_calls',
  };
  // Buckets are bounded by who asks for them.
  const most =
    bucket === undefined
      ? ` ORDER BY ${first} DESC, ${second} DESC, ${place} LIMIT ${Math.trunc(limit)}`
      : '';
  // Of many groups the first are found without the others being put in order.
  const rows = await ask(
    `WITH source AS (${sql}),
     groups AS (SELECT ${grouped}, ${added(ofGroup)} FROM source GROUP BY ${group}),
     listed AS (SELECT * FROM groups${most})
     SELECT ${name} AS name, 1 AS listed, 1 AS groups, ${own.join(', ')}, ${countOfFolds(used)} AS folds FROM listed
     UNION ALL SELECT NULL, 0, COUNT(*), ${own.map((column) => sum(column)).join(', ')}, ${countOfFolds(used)} FROM groups`,
    values,
  );
  if (rows.some(({ folds }) => Number(folds) !== used.length)) throw new FoldsGone();
  const sums: UsageSums[] = [];
  let all: UsageSumsList['rest'];
  for (const row of rows) {
    if (Number(row['listed']) === 1)
      sums.push({ group: isNumber ? Number(row['name']) : String(row['name'] ?? ''), ...totalsOf(row) });
    else all = { groups: Number(row['groups']), ...totalsOf(row) };
  }
  const rest = all === undefined || all.groups <= sums.length ? undefined : without(all, sums);
  return {
    sums:
      bucket === undefined
        ? sums.toSorted(byOrder(order))
        : sums.toSorted((a, b) => Number(a.group) - Number(b.group)),
    ...(rest === undefined ? {} : { rest }),
  };
}

/** Returns what is left of all groups without those that are listed. */
function without(
  all: NonNullable<UsageSumsList['rest']>,
  listed: readonly UsageSums[],
): NonNullable<UsageSumsList['rest']> {
  const { chargedMicroDollars, ...others } = all;
  const left = { ...others, groups: all.groups - listed.length };
  // Never below zero: of numbers that are too large to be exact, as providers may give them, more than all may be listed.
  for (const one of listed)
    for (const name of ['calls', 'failed', 'refused', 'input', 'output', 'microDollars'] as const)
      left[name] = Math.max(0, left[name] - one[name]);
  const ofListed = listed.reduce((sum, one) => sum + (one.chargedMicroDollars ?? one.microDollars), 0);
  const charged = Math.max(0, (chargedMicroDollars ?? all.microDollars) - ofListed);
  if (charged !== left.microDollars) return { ...left, chargedMicroDollars: charged };
  return left;
}

function byOrder(order: 'cost' | 'calls'): (one: UsageSums, other: UsageSums) => number {
  const [first, second] =
    order === 'cost' ? (['microDollars', 'calls'] as const) : (['calls', 'microDollars'] as const);
  return (one, other) => other[first] - one[first] || other[second] - one[second];
}

function totalsOf(row: Row): UsageTotals {
  const microDollars = Number(row['micro_dollars'] ?? 0);
  const more = Number(row['charged_more'] ?? 0);
  return {
    calls: Number(row['calls']),
    failed: Number(row['failed']),
    refused: Number(row['refused']),
    input: Number(row['input']),
    output: Number(row['output']),
    microDollars,
    ...(more === 0 ? {} : { chargedMicroDollars: microDollars + more }),
  };
}

/** Percentiles of the groups that are listed. */
async function timesOf(
  ask: Ask,
  kind: Database['kind'],
  { sql, values }: Source,
  { sql: group, isNumber }: Group,
  listed: readonly UsageSums[],
): Promise<(group: string | number) => Pick<Required<UsageSums>, 'ms' | 'firstMs'>> {
  const each =
    kind === 'sqlite' ? 'json_each(source.bins) AS bin' : 'jsonb_each_text(source.bins::jsonb) AS bin';
  const calls = kind === 'sqlite' ? 'bin.value' : 'bin.value::bigint';
  const rows = await ask(
    `WITH source AS (${sql}) SELECT ${group} AS name, bin.key AS bin, SUM(${calls}) AS calls FROM source CROSS JOIN ${each}
     GROUP BY ${group}, bin.key`,
    values,
  );
  const found = new Map<string | number, { readonly ms: Percentiles; readonly firstMs: Percentiles }>();
  for (const { group: name } of listed)
    found.set(name, { ms: new Percentiles(), firstMs: new Percentiles() });
  for (const row of rows) {
    const times = found.get(isNumber ? Number(row['name']) : String(row['name'] ?? ''));
    const bin = String(row['bin']);
    if (bin.startsWith('f')) times?.firstMs.add(Number(bin.slice(1)), Number(row['calls']));
    else times?.ms.add(Number(bin), Number(row['calls']));
  }
  return (name) => {
    const times = found.get(name);
    return { ms: times?.ms.told() ?? [0, 0, 0], firstMs: times?.firstMs.told() ?? [0, 0, 0] };
  };
}
