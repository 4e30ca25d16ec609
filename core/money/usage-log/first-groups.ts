/** Lists the groups with the most calls by adding up those alone that may be among them. */
import type { UsageFilter, UsageGrouping, UsageSumsList, UsageSumsOptions } from './index.ts';
import { foldGrace } from './folds.ts';
import { day, fourHours, halfDay, hour } from './levels.ts';

/** Reads sums of groups, as `UsageLog` does. */
type ReadSums<Options> = (
  filter: UsageFilter,
  grouping: UsageGrouping,
  options: Options,
) => Promise<UsageSumsList>;

/** Groupings that may have very many groups, most of them with few calls in an hour. */
const groupings: ReadonlySet<UsageGrouping> = new Set<UsageGrouping>(['keyId', 'member', 'team']);

/** Filters that sums of days have for these groups. */
const filters: ReadonlySet<string> = new Set(['since', 'until', 'organisation', 'team']);

/** Maximum number of listed groups. */
const mostListed = 20;

/** Number of candidates for each listed group. Several, because a group may have most of its calls in the parts of the days that are outside of the time. */
const candidatesOfEach = 10;

/** Minimum number of hours outside of whole days. With fewer, the days are more to read, because two days have about as many sums as five hours. */
const fewestHours = 6;

/** Pause in milliseconds after an attempt whose candidates were too few. */
const pause = 600_000;

/**
 * Opens the list of the groups with the most calls. Whole days that contain a time have at least the calls of that time. So the groups with the most
 * calls in these days are added up for the time itself, and are the first ones where the last of them has more calls than the next group has in the
 * days. Undefined where that is not so, and where the time has few hours outside of whole days. With 50,000 keys, 24 hours have 350,000 sums of
 * hours, and two days 150,000 (November 2026).
 */
export function createFirstGroups<Options extends UsageSumsOptions>(
  sums: ReadSums<Options>,
): (...asked: Parameters<ReadSums<Options>>) => Promise<UsageSumsList | undefined> {
  const missed = new Map<UsageGrouping, number>();
  return async (filter, grouping, options) => {
    const { limit = Number.MAX_SAFE_INTEGER } = options;
    const now = Date.now();
    if (limit > mostListed || !isOfMostCalls(options) || !groupings.has(grouping)) return undefined;
    if (hoursAround(filter, now) < fewestHours || (missed.get(grouping) ?? 0) > now) return undefined;
    const most = limit * candidatesOfEach;
    const { sums: ofDays } = await sums(daysOf(filter), grouping, { ...options, limit: most + 1 });
    const groups = ofDays.slice(0, most).map(({ group }) => String(group));
    if (groups.length === 0) return undefined;
    const next = ofDays[most];
    const found = await sums(filter, grouping, { ...options, groups });
    const last = found.sums[limit - 1];
    if (next !== undefined && (last === undefined || last.calls <= next.calls)) {
      missed.set(grouping, now + pause);
      return undefined;
    }
    return { ...found, sums: found.sums.slice(0, limit) };
  };
}

/** True for a list by calls, without anything about other groups. */
function isOfMostCalls({ order, rest, groups, percentiles }: UsageSumsOptions): boolean {
  return order === 'calls' && rest === false && groups === undefined && percentiles !== true;
}

/** Rows of folds by their size, as a number of hours with as many rows. Half days count as days do. */
const rowsInHours: ReadonlyMap<number, number> = new Map([
  [halfDay, 0],
  [fourHours, 2.5],
]);

/** Returns how much a time has to read outside of days and half days, as a number of hours; 0 for filters that sums of days do not have. */
function hoursAround(filter: UsageFilter, now: number): number {
  const { since, until = now, ...others } = filter;
  const isOfDays = Object.entries(others).every(([name, value]) => value === undefined || filters.has(name));
  if (since === undefined || !isOfDays) return 0;
  let hours = 0;
  let start = since;
  while (start % day !== 0 && start < until) {
    const from = start;
    const size =
      [...rowsInHours.keys()].find((one) => from % one === 0 && from + one + foldGrace <= now) ?? hour;
    start = Math.floor(from / size) * size + size;
    hours += rowsInHours.get(size) ?? (start - from) / hour;
  }
  const end = until < now ? Math.max(start, Math.floor(until / fourHours) * fourHours) : until;
  return hours + (until - end) / hour;
}

/** Returns the filter for the days that contain a time. */
function daysOf({ since = 0, until, ...others }: UsageFilter): UsageFilter {
  return {
    ...others,
    since: Math.floor(since / day) * day,
    ...(until === undefined ? {} : { until: Math.ceil(until / day) * day }),
  };
}
