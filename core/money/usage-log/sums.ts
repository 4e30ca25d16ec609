/** Reads sums of usage by groups: selects the levels and folds to read, and limits the groups. */
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
import { binsStatement, percentileBins } from './bins.ts';
import { createFirstGroups } from './first-groups.ts';
import { foldedIn } from './folded.ts';
import { foldsFor, foldsOfKind, usedFolds, type Fold } from './folds.ts';
import { day, levelFor, minute, segmentsOf, type Folded, type Segment } from './levels.ts';
import { percentilesStatement, timesOf, type TimesOfCalls } from './percentiles.ts';
import { askedOnce, type Ask } from '../../state/database/long-reads.ts';
import { groupOf, type Group } from './sums-grouping.ts';
import { rangeOf } from './questions.ts';
import type { Row } from './read-rows.ts';
import { namedMembers, type Source } from './narrowing.ts';
import { subjectPlan, subjectSegments, subjectSource } from './subject-source.ts';
import {
  allKeysStatement,
  chosenKeysStatement,
  groupsStatement,
  keysStatement,
  listedRows,
  type Listed,
} from './sums-statement.ts';
import { allOf, keysInOrder, sourceOf, sourceWithBins, type KeysInOrder } from './sums-source.ts';

/** Maximum number of groups in one result. */
export const mostGroups = 5_000;

/** Maximum number of keys whose amounts are looked up one by one. For more keys, adding the sums of all keys is faster. */
const mostLookedUp = 1_000;

/** Members of a filter that sums do not have, so that the records are read. */
const ofRecords = ['id', 'minMs', 'maxMs', 'minMicroDollars', 'maxMicroDollars'] as const;

const hour = 3_600_000;

/** Longest time whose bins are added up here, in milliseconds: of a longer one they are too many bytes. */
const longestOfBins = 62 * day;

/** Maximum number of attempts of a query whose folds were removed while it ran. The last attempt uses no folds. */
const attempts = 3;

/** Thrown when folds of a query were removed while it ran. */
class FoldsGone extends Error {}

/** Opens the sums of a log. `askLarge`: for statements that add up very many rows. */
export function createSums(ask: Ask, askLarge: Ask, kind: Database['kind']): UsageLog['sums'] {
  // Shares equal queries, because an overview requests many sums of one range.
  const sums = createReading(askedOnce(ask), askLarge, kind);
  const first = createFirstGroups(sums);
  return async (filter, grouping, options) => {
    for (let attempt = 1; ; attempt += 1) {
      try {
        const given = { ...options, useFolds: attempt < attempts };
        // oxlint-disable-next-line no-await-in-loop -- again, because it failed
        return (await first(filter, grouping, given)) ?? (await sums(filter, grouping, given));
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
      rest: withRest = true,
      groups,
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
      const source = subjectSource(kind, owned, filter, segments, group.bucket, groups);
      const listed = { limit: groups === undefined ? most : mostGroups, order, used: usedFolds(segments) };
      const list = await listOf(askLarge, kind, groupsStatement(kind, source, group, listed), group, listed);
      return withRest ? among(groups, list) : { sums: list.sums };
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
    const byKey = grouping === 'keyId';
    const listed = { limit: groups === undefined ? most : mostGroups, order, used: usedFolds(segments) };
    const isOfKeys = byKey && segments.some(({ level }) => level !== 'records');
    const inOrder = isOfKeys && most <= mostLookedUp && (!withRest || (await hasHoursSince(ask, start)));
    const keys = (): KeysInOrder => keysInOrder(kind, filter, segments, sumIn(kind), groups);
    const statement = (): Source => {
      if (isOfKeys && groups !== undefined) return chosenKeysStatement(kind, keys(), groups, listed);
      if (inOrder)
        return keysStatement(kind, keys(), withRest ? wholeOf(kind, filter, segments) : undefined, listed);
      if (isOfKeys) return allKeysStatement(kind, keys(), listed);
      const source = sourceOf(kind, filter, segments, { bucket: group.bucket, byKey });
      return groupsStatement(kind, source, group, listed);
    };
    const list = among(groups, await listOf(askLarge, kind, statement(), group, listed));
    const times =
      percentiles && !needsKeys ? await timesIn({ askLarge, kind }, filter, segments, group) : undefined;
    return {
      ...(withRest ? list : { sums: list.sums }),
      ...(times === undefined
        ? {}
        : { sums: list.sums.map((sum) => ({ ...sum, ...times(String(sum.group)) })) }),
      ...(incompleteBefore === undefined ? {} : { incompleteBefore }),
    };
  };
}

/** Returns these groups alone, where there are some. */
function among(groups: readonly string[] | undefined, list: UsageSumsList): UsageSumsList {
  if (groups === undefined) return list;
  const wanted = new Set(groups);
  return { sums: list.sums.filter(({ group }) => wanted.has(String(group))) };
}

/** Returns the times of the calls of each group. */
async function timesIn(
  { askLarge, kind }: { readonly askLarge: Ask; readonly kind: Database['kind'] },
  filter: UsageFilter,
  segments: readonly Segment[],
  { sql: group }: Group,
): Promise<(name: string) => TimesOfCalls> {
  const source = sourceWithBins(kind, filter, segments);
  const [first, last] = [segments[0]?.since ?? 0, segments.at(-1)?.until ?? 0];
  const isOfMany = segments.some(({ level, since, until }) => level === 'records' && until - since > hour);
  if (isOfMany || Math.min(last, Date.now()) - first > longestOfBins) {
    const { sql, values } = percentilesStatement(kind, source, group);
    return timesOf(await askLarge(sql, values));
  }
  const { sql, values } = binsStatement(kind, source, group);
  return timesOf(percentileBins(await askLarge(sql, values)));
}

/** Returns the range of a filter. Rounded to whole hours at an end whose records were removed. */
async function roundedRange(ask: Ask, filter: UsageFilter): Promise<{ start: number; end: number }> {
  const { start, end } = rangeOf(filter);
  const [row] = await ask('SELECT at FROM usage_records ORDER BY at LIMIT 1', []);
  const oldest = row === undefined ? Number.MAX_SAFE_INTEGER : Number(row['at']);
  return {
    start: start < oldest ? Math.floor(start / hour) * hour : start,
    end: end < oldest ? Math.ceil(end / hour) * hour : end,
  };
}

/** True where no hourly sums since a time were removed, so that the sums of all calls and those of keys cover the same calls. */
async function hasHoursSince(ask: Ask, start: number): Promise<boolean> {
  const [row] = await ask('SELECT start FROM usage_totals WHERE level = 1 ORDER BY start LIMIT 1', []);
  return row !== undefined && Number(row['start']) * minute <= start;
}

/** Returns the rows of all calls that the keys of these segments have: sums without keys are far fewer. */
function wholeOf(kind: Database['kind'], filter: UsageFilter, segments: readonly Segment[]): Source {
  const needs = { needsKeys: filter.keyId !== undefined, needsNames: isNamed(filter) };
  const ofSums = segments.filter(({ level }) => level !== 'records');
  const [since, until] = [ofSums[0]?.since ?? 0, ofSums.at(-1)?.until ?? 0];
  return allOf(
    kind,
    filter,
    segmentsOf(
      (size) => (size === minute ? undefined : levelFor(needs, size)),
      undefined,
      since,
      until,
      Date.now(),
    ),
  );
}

function isNamed(filter: UsageFilter): boolean {
  return namedMembers.some((name) => filter[name] !== undefined);
}

/** Returns the time before which records are missing from the sums, where it is later than `start`. */
async function unsummedBefore(ask: Ask, start: number): Promise<number | undefined> {
  const [row] = await ask('SELECT at FROM usage_summing WHERE at > ?', [start]);
  return row === undefined ? undefined : Number(row['at']);
}

async function listOf(
  ask: Ask,
  kind: Database['kind'],
  statement: Source,
  { bucket, isNumber }: Pick<Group, 'bucket' | 'isNumber'>,
  { order, used }: Listed,
): Promise<UsageSumsList> {
  const rows = await listedRows(ask, kind, statement);
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

/** Returns the totals of all groups minus those that are listed. */
function without(
  all: NonNullable<UsageSumsList['rest']>,
  listed: readonly UsageSums[],
): NonNullable<UsageSumsList['rest']> {
  const { chargedMicroDollars, ...others } = all;
  const left = { ...others, groups: all.groups - listed.length };
  // Never below zero, because numbers of providers may be too large to be exact.
  for (const { calls, failed, refused, input, output, microDollars } of listed) {
    left.calls = Math.max(0, left.calls - calls);
    left.failed = Math.max(0, left.failed - failed);
    left.refused = Math.max(0, left.refused - refused);
    left.input = Math.max(0, left.input - input);
    left.output = Math.max(0, left.output - output);
    left.microDollars = Math.max(0, left.microDollars - microDollars);
  }
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
