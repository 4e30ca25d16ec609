/** Finds the hours in which a filter has records, by the sums. */
import type { UsageFilter } from './index.ts';
import type { Query } from '../../state/database/long-reads.ts';
import { namedMembers, narrowing, ownedMembers } from './narrowing.ts';
import type { MatchingHour } from './matching-hour.ts';
import { subjectHours } from './subject-hours.ts';
import { listSlice } from './questions.ts';
import { minute } from './levels.ts';
import { minutesOf, olderTotalsIn, totalsIn } from './totals.ts';

const hour = 3_600_000;
const day = 24 * hour;

/** Members of a filter that sums are made by. */
const summed = ['keyId', 'outcome', ...namedMembers, ...ownedMembers] as const;

/** True when the sums know in which hours there are records of a filter. */
export async function knowsHours(query: Query, filter: UsageFilter): Promise<boolean> {
  if (summed.every((name) => filter[name] === undefined)) return false;
  return (await query('SELECT 1 FROM usage_summing', [])).length === 0;
}

/** True when there are more calls of a filter's names and outcome in the last week of a time than are read together. */
export async function hasMany(query: Query, filter: UsageFilter, until: number): Promise<boolean> {
  const latest = Math.floor(Math.min(until, Date.now()) / day) * day;
  const sums = totalsIn({ level: 4, since: latest - 7 * day, until }, filter, ['calls']);
  const [row] = await query(`SELECT SUM(calls) AS calls FROM (${sums.sql}) AS sums`, sums.values);
  return Number(row?.['calls'] ?? 0) > listSlice;
}

/** True for a filter that names an owner, a tag or an end user. No index of records is by these. */
export function isOwned(filter: UsageFilter): boolean {
  return ownedMembers.some((name) => filter[name] !== undefined);
}

/**
 * Gives the hours from the newest to the oldest in which there are records of a filter, as far as sums are made by its members. What is rare, or
 * never occurs, is found without a look at the records in between.
 */
export async function* matchingHours(
  query: Query,
  filter: UsageFilter,
  since: number,
  until: number,
): AsyncGenerator<MatchingHour> {
  const { sql, values } = narrowing(filter);
  const from = Math.floor(since / hour) * hour;
  if (isOwned(filter)) {
    yield* subjectHours(query, filter, from, until);
    return;
  }
  // First what is in no sums yet: what is added to them meanwhile is found in the sums.
  const unsummed = await query(
    `SELECT DISTINCT at - at % ${hour} AS start FROM usage_unsummed WHERE at >= ? AND at < ?${sql} ORDER BY start DESC`,
    [since, until, ...values],
  );
  const waiting = unsummed.map(({ start }) => Number(start));
  const hoursOf = async (level: number, first: number, end: number): Promise<Found[]> => {
    const sums = totalsIn({ level, since: first, until: end }, filter, ['start', 'calls']);
    const rows = await query(
      `SELECT start, SUM(calls) AS calls FROM (${sums.sql}) AS sums GROUP BY start ORDER BY start DESC`,
      sums.values,
    );
    return rows.map((row) => ({ start: Number(row['start']), calls: Number(row['calls']) }));
  };
  const isOfKey = filter.keyId !== undefined;
  // Days first, of which there are fewer sums than of hours. The index by keys has hours alone. The latest are enough for most.
  async function* stretches(): AsyncGenerator<Found> {
    for (const week of ofWeeks(isOfKey ? from : Math.floor(since / day) * day, until)) {
      if (isOfKey) yield week;
      else yield* await daysOf(query, filter, week.start, week.end ?? until);
    }
  }
  for await (const group of groupsOf(stretches())) {
    const [latest, oldest] = [group[0]?.start ?? 0, group.at(-1)?.start ?? 0];
    const hours =
      group[0]?.names !== undefined
        ? await hoursOfNames(query, filter, group)
        : isOfKey
          ? await hoursOf(5, oldest, group[0]?.end ?? until)
          : await hoursOf(3, Math.max(from, oldest), Math.min(until, latest + day));
    for (const one of hours) {
      if (one.start < from || one.start >= until) continue;
      while (waiting[0] !== undefined && waiting[0] >= one.start) {
        const next = waiting.shift() ?? one.start;
        if (next > one.start) yield { start: next, calls: 0 };
      }
      yield one;
    }
  }
  for (const start of waiting) yield { start, calls: 0 };
}

/** Maximum number of names, and of days, whose hours are looked up together. */
const [mostNames, mostDays] = [32, 7];

/** Returns the days that have records of a filter, the latest first, with the names of these where they are few. */
async function daysOf(
  query: Query,
  filter: UsageFilter,
  since: number,
  until: number,
): Promise<readonly Found[]> {
  const named = narrowing(filter, 'n.');
  const older = olderTotalsIn({ level: 4, since, until }, filter, ['start', 'calls']);
  const rows = await query(
    `SELECT start, SUM(calls) AS calls, CASE WHEN COUNT(*) <= ${mostNames} THEN string_agg(CAST(names AS TEXT), ',') END AS names FROM (
       SELECT CAST(t.start AS BIGINT) * ${minute} AS start, t.calls AS calls, t.names AS names FROM usage_totals t
       JOIN usage_names n ON n.id = t.names WHERE t.level = 4 AND t.start >= ? AND t.start < ?${named.sql}
       UNION ALL SELECT start, calls, 0 AS names FROM (${older.sql}) AS older) AS sums GROUP BY start ORDER BY start DESC`,
    [minutesOf(since), minutesOf(until), ...named.values, ...older.values],
  );
  return rows.map(({ start, calls, names }) => ({
    start: Number(start),
    calls: Number(calls),
    ...(typeof names === 'string' && { names: names.split(',').map(Number) }),
  }));
}

/** Returns the hours of days that have records of names: to look them up one by one costs less than to read all sums of the days. */
async function hoursOfNames(
  query: Query,
  filter: UsageFilter,
  days: readonly Found[],
): Promise<readonly Found[]> {
  const [latest, oldest] = [days[0]?.start ?? 0, days.at(-1)?.start ?? 0];
  const older = olderTotalsIn({ level: 3, since: oldest, until: latest + day }, filter, ['start', 'calls']);
  const hours = days.flatMap(({ start }) =>
    Array.from({ length: day / hour }, (_, index) => minutesOf(start + index * hour)),
  );
  const rows = await query(
    `SELECT start, SUM(calls) AS calls FROM (
       SELECT CAST(t.start AS BIGINT) * ${minute} AS start, t.calls AS calls FROM usage_totals t
       WHERE t.level = 3 AND t.start IN (${hours.join(', ')}) AND t.key = 0 AND t.names IN (${[...namesOf(days)].join(', ')})
       UNION ALL ${older.sql}) AS sums GROUP BY start ORDER BY start DESC`,
    older.values,
  );
  return rows.map((row) => ({ start: Number(row['start']), calls: Number(row['calls']) }));
}

function namesOf(days: readonly Found[]): ReadonlySet<number> {
  return new Set(days.flatMap(({ names = [] }) => names));
}

/** Joins days that have few names; the latest stays alone, because it is enough for most. */
async function* groupsOf(days: AsyncIterable<Found>): AsyncGenerator<readonly Found[]> {
  let group: Found[] = [];
  let size = 1;
  for await (const one of days) {
    const isJoined =
      group.length < size && one.names !== undefined && namesOf([...group, one]).size <= mostNames;
    if (!isJoined && group.length > 0) {
      yield group;
      [group, size] = [[], mostDays];
    }
    group.push(one);
    if (one.names !== undefined) continue;
    yield group;
    group = [];
  }
  if (group.length > 0) yield group;
}

/** A time that has records, or in which they are searched for. */
interface Found extends MatchingHour {
  readonly end?: number;
  readonly names?: readonly number[];
}

/** Divides a time into stretches of one week, four weeks and the rest, the latest first. */
function ofWeeks(since: number, until: number): readonly Found[] {
  const latest = Math.floor(Math.min(until, Date.now()) / day) * day;
  const starts = [latest - 7 * day, latest - 28 * day, since].map((start) => Math.max(since, start));
  return starts
    .map((start, index) => ({ start, end: starts[index - 1] ?? until, calls: 0 }))
    .filter(({ start, end }) => start < end);
}

/** A stretch of time. */
export interface Stretch {
  readonly since: number;
  readonly until: number;
}

/** Hours that have records of a filter. `runs`: those of them that follow each other, the latest first; `calls`: number of calls that the sums know. */
export interface Joined extends Stretch {
  readonly runs: readonly Stretch[];
  readonly calls: number;
}

/** Maximum number of hours that are joined. */
const mostJoined = 24;

/**
 * Joins hours that follow each other, because one look at them costs less than one at each. With `wanted`, hours are joined across those
 * without records, until they have so many calls: that is for indexes that find the records of the filter alone.
 */
export async function* joinedHours(
  hours: AsyncIterable<MatchingHour>,
  wanted: number | undefined,
): AsyncGenerator<Joined> {
  let runs: Stretch[] = [];
  let joined = 0;
  for await (const { start, calls } of hours) {
    const [first, last] = [runs[0], runs.at(-1)];
    const isNext = last?.since === start + hour;
    const isNear =
      wanted === undefined
        ? isNext && (first?.until ?? 0) - start <= mostJoined * hour
        : joined < wanted && joined + calls <= listSlice;
    if (!isNear && runs.length > 0) {
      yield joinedOf(runs, joined);
      [runs, joined] = [[], 0];
    }
    if (isNear && isNext) runs[runs.length - 1] = { since: start, until: last.until };
    else runs.push({ since: start, until: start + hour });
    joined += calls;
  }
  if (runs.length > 0) yield joinedOf(runs, joined);
}

function joinedOf(runs: readonly Stretch[], calls: number): Joined {
  return { since: runs.at(-1)?.since ?? 0, until: runs[0]?.until ?? 0, runs, calls };
}
