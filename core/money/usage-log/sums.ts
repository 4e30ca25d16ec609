/** Reads sums of usage by groups: selects the levels and folds to read, and limits the groups. */
import type { Database } from '../../state/database/index.ts';
import type { UsageFilter, UsageGrouping, UsageLog, UsageSumsList, UsageSumsOptions } from './index.ts';
import { sumIn } from './added-up.ts';
import { binsStatement, percentileBins } from './bins.ts';
import { createFirstGroups } from './first-groups.ts';
import { foldedIn } from './folded.ts';
import { foldsFor, foldsOfKind, usedFolds, type Fold } from './folds.ts';
import { day, levelFor, minute, segmentsOf, type Folded, type Segment } from './levels.ts';
import { FoldsGone, listOf } from './listed-sums.ts';
import { percentilesStatement, timesOf, type TimesOfCalls } from './percentiles.ts';
import { shareEqualQueries, type Query } from '../../state/database/long-reads.ts';
import { groupOf, type Group } from './sums-grouping.ts';
import { rangeOf } from './questions.ts';
import { namedMembers, type Source } from './narrowing.ts';
import { subjectPlan, subjectSegments, subjectSource } from './subject-source.ts';
import {
  allKeysStatement,
  chosenKeysStatement,
  groupsStatement,
  keysStatement,
  type Listed,
} from './sums-statement.ts';
import { allOf, allOfOthers, keysInOrder, sourceOf, sourceWithBins, type KeyRange } from './sums-source.ts';

/** Maximum number of groups in one result. */
export const mostGroups = 5_000;

/** Maximum number of keys whose amounts are looked up one by one. For more keys, adding the sums of all keys is faster. */
const mostLookedUp = 1_000;

/** Number of keys from which on their sums are read in two halves. Fewer keys are added up in some milliseconds. */
const fewestInHalves = 10_000;

/** Members of a filter that sums do not have, so that the records are read. */
const ofRecords = ['id', 'minMs', 'maxMs', 'minMicroDollars', 'maxMicroDollars'] as const;

const hour = 3_600_000;

/** Longest time whose bins are added up here, in milliseconds: of a longer one they are too many bytes. */
const longestOfBins = 62 * day;

/** Maximum number of attempts of a query whose folds were removed while it ran. The last attempt uses no folds. */
const attempts = 3;

/** Opens the sums of a log. `queryLarge`: for statements that add up very many rows. `halvesFrom`: number of keys whose sums are read in two halves. */
export function createSums(
  query: Query,
  queryLarge: Query,
  kind: Database['kind'],
  { halvesFrom = fewestInHalves }: { readonly halvesFrom?: number } = {},
): UsageLog['sums'] {
  // Shares equal queries, because an overview requests many sums of one range.
  const sums = createReading(shareEqualQueries(query), queryLarge, kind, halvesFrom);
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

function createReading(query: Query, queryLarge: Query, kind: Database['kind'], halvesFrom: number) {
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
    const { start, end } = await roundedRange(query, filter);
    const plan = subjectPlan(filter, grouping);
    const group = groupOf(grouping, plan?.grouped !== undefined);
    const most = Math.max(1, Math.min(mostGroups, limit));
    const isOfRecords = ofRecords.some((name) => filter[name] !== undefined);
    const folded = (all: readonly Fold[]): Promise<readonly Folded[]> =>
      foldedIn(query, useFolds && !isOfRecords ? all : [], start, end);
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
      const statement = groupsStatement(kind, source, group, listed);
      const list = await listOf(queryLarge, kind, [statement], group, listed);
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
    const incompleteBefore = await unsummedBefore(query, start);
    const byKey = grouping === 'keyId';
    const listed = { limit: groups === undefined ? most : mostGroups, order, used: usedFolds(segments) };
    const isOfKeys = byKey && segments.some(({ level }) => level !== 'records');
    const wanted = { kind, filter, segments, groups, listed, withRest, halvesFrom };
    const statements = isOfKeys
      ? await keyStatements(query, { ...wanted, isLookedUp: most <= mostLookedUp })
      : [
          groupsStatement(
            kind,
            sourceOf(kind, filter, segments, { bucket: group.bucket, byKey }),
            group,
            listed,
          ),
        ];
    const list = among(groups, await listOf(queryLarge, kind, statements, group, listed));
    const times =
      percentiles && !needsKeys ? await timesIn({ queryLarge, kind }, filter, segments, group) : undefined;
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
  { queryLarge, kind }: { readonly queryLarge: Query; readonly kind: Database['kind'] },
  filter: UsageFilter,
  segments: readonly Segment[],
  { sql: group }: Group,
): Promise<(name: string) => TimesOfCalls> {
  const source = sourceWithBins(kind, filter, segments);
  const [first, last] = [segments[0]?.since ?? 0, segments.at(-1)?.until ?? 0];
  const isOfMany = segments.some(({ level, since, until }) => level === 'records' && until - since > hour);
  if (isOfMany || Math.min(last, Date.now()) - first > longestOfBins) {
    const { sql, values } = percentilesStatement(kind, source, group);
    return timesOf(await queryLarge(sql, values));
  }
  const { sql, values } = binsStatement(kind, source, group);
  return timesOf(percentileBins(await queryLarge(sql, values)));
}

/** Returns the range of a filter. Rounded to whole hours at an end whose records were removed. */
async function roundedRange(query: Query, filter: UsageFilter): Promise<{ start: number; end: number }> {
  const { start, end } = rangeOf(filter);
  const [row] = await query('SELECT at FROM usage_records ORDER BY at LIMIT 1', []);
  const oldest = row === undefined ? Number.MAX_SAFE_INTEGER : Number(row['at']);
  return {
    start: start < oldest ? Math.floor(start / hour) * hour : start,
    end: end < oldest ? Math.ceil(end / hour) * hour : end,
  };
}

/** True where no hourly sums since a time were removed, so that the sums of all calls and those of keys cover the same calls. */
async function hasHoursSince(query: Query, start: number): Promise<boolean> {
  const [row] = await query('SELECT start FROM usage_totals WHERE level = 1 ORDER BY start LIMIT 1', []);
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
async function unsummedBefore(query: Query, start: number): Promise<number | undefined> {
  const [row] = await query('SELECT at FROM usage_summing WHERE at > ?', [start]);
  return row === undefined ? undefined : Number(row['at']);
}

/** A question by keys that sums answer. */
interface KeysQuery {
  readonly kind: Database['kind'];
  readonly filter: UsageFilter;
  readonly segments: readonly Segment[];
  readonly groups: readonly string[] | undefined;
  readonly listed: Listed;
  readonly withRest: boolean;
  readonly halvesFrom: number;
  /** True for a list of few enough keys that their amounts are looked up one by one. */
  readonly isLookedUp: boolean;
}

/** Returns the statements that together list the first keys. */
async function keyStatements(query: Query, wanted: KeysQuery): Promise<readonly Source[]> {
  const { kind, filter, segments, groups, listed, withRest, halvesFrom, isLookedUp } = wanted;
  const sum = sumIn(kind);
  if (groups !== undefined) {
    const keys = keysInOrder(kind, filter, segments, sum, { ids: groups });
    return [chosenKeysStatement(kind, keys, groups, listed)];
  }
  const inOrder = isLookedUp && (!withRest || (await hasHoursSince(query, segments[0]?.since ?? 0)));
  // An overview, which has no rest, asks many things at once already.
  const ranges = withRest && filter.keyId === undefined ? await keyRanges(query, kind, halvesFrom) : [{}];
  return ranges.map((range, index) => {
    const keys = keysInOrder(kind, filter, segments, sum, { range });
    if (!inOrder) return allKeysStatement(kind, keys, listed);
    if (!withRest) return keysStatement(kind, keys, undefined, listed);
    // One of the statements adds up the sums of all keys, and each those of its own keys that are in no sums.
    return keysStatement(kind, keys, index === 0 ? wholeOf(kind, filter, segments) : allOfOthers, listed);
  });
}

/**
 * Returns the ranges of keys whose sums are read beside each other, each in a statement of its own. PostgreSQL adds up in one process, because its
 * own parallel plans send groups of keys from process to process, which takes longer than it gains.
 */
async function keyRanges(
  query: Query,
  kind: Database['kind'],
  halvesFrom: number,
): Promise<readonly KeyRange[]> {
  if (kind === 'sqlite') return [{}];
  const [row] = await query('SELECT MAX(id) AS id FROM usage_keys', []);
  const last = Number(row?.['id'] ?? 0);
  if (last < halvesFrom) return [{}];
  const half = Math.ceil(last / 2);
  return [{ before: half }, { from: half }];
}
