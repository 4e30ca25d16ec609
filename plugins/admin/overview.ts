/** The overview: what was called in a time, by whom, compared with the time before. */
import type { InternalTools } from 'sluice/internal';
import type { UsageGrouping } from './core-types.ts';
import type { OverviewQuery, OverviewRange } from './schemas/index.ts';
import type { Handlers } from './serve.ts';
import { before, querySums, totalsIn, totalsOf } from './usage-sums.ts';

/** The most groups in one list. */
const mostListed = 10;

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

const lengths: Readonly<Record<OverviewRange, number>> = {
  '1h': hour,
  '24h': day,
  '7d': 7 * day,
  '30d': 30 * day,
};

/**
 * Widths of buckets of time, by the longest time that they are for. A day is shown in hours, because keys and owners have no finer sums: a time that
 * begins within an hour reads the records of that hour for each list.
 */
const widths = [
  { most: 2 * hour, bucket: minute },
  { most: 36 * hour, bucket: hour },
  { most: 10 * day, bucket: 3 * hour },
  { most: 60 * day, bucket: 12 * hour },
  { most: Number.MAX_SAFE_INTEGER, bucket: day },
] as const;

type OverviewTools = Pick<
  InternalTools,
  'usageLog' | 'apiKeys' | 'rates' | 'bookkeeper' | 'catalog' | 'upkeep'
>;

/** Returns the time of an overview. `since` is at the start of a bucket: half a first one would look like a fall. */
function timeOf(query: OverviewQuery, now: number) {
  const { range, since, until, zone } = query;
  const end = until ?? now;
  const length = since === undefined ? lengths[range] : Math.max(0, end - since);
  const { bucket: width } = widths.find(({ most }) => length <= most) ?? { bucket: day };
  // Sums by keys and owners are read soonest where a time begins at noon or midnight.
  const step = length > 2 * day ? Math.max(width, 12 * hour) : width;
  const start = since ?? Math.ceil((end - length) / step) * step;
  return { since: start, until: end, bucket: zone !== undefined && width >= 12 * hour ? day : width };
}

/** Returns true when only the calls of a key or an owner are requested. */
function isOfBearer({ keyId, team, member, organisation }: OverviewQuery): boolean {
  return [keyId, team, member, organisation].some((id) => id !== undefined);
}

/** Returns the handler of the overview. `running` returns the number of running calls. */
export function overviewHandler(
  { usageLog, apiKeys, rates, bookkeeper, catalog, upkeep }: OverviewTools,
  running: () => Promise<number>,
): Handlers<'overview'>['overview'] {
  return async function overview({ query }) {
    const now = Date.now();
    const { since, until, bucket } = timeOf(query, now);
    const { range: _range, zone, since: _since, until: wanted, ...owned } = query;
    const filter = { ...owned, since, ...(wanted === undefined ? {} : { until }) };
    const ranking = async (by: Exclude<UsageGrouping, object>) =>
      (await usageLog.sums(filter, by, { limit: mostListed, order: 'calls', rest: false, names: true })).sums;
    // Names are read from a table that an upgrade fills.
    await apiKeys.names([]);
    const earlier = before(filter, now);
    const series =
      zone !== undefined && bucket === day
        ? querySums(usageLog, { ...filter, until }, { by: 'day', zone }, {})
        : usageLog.sums(filter, { bucket }, { percentiles: true });
    const [found, previous, runs, ...lists] = await Promise.all([
      series,
      totalsIn(usageLog, earlier),
      running(),
      ranking('model'),
      ranking('keyId'),
      ranking('channel'),
      ranking('status'),
      ranking('team'),
      ranking('member'),
      ranking('organisation'),
      // There are no sums of tags by keys and owners: every record of the time would be read.
      isOfBearer(query) ? [] : ranking('tag'),
    ]);
    const [models, keys, channels, statuses, teams, members, organisations, tags] = lists;
    return {
      since,
      until,
      bucket,
      running: runs,
      totals: totalsOf(found.sums),
      previous: { since: earlier.since, until: earlier.until, totals: previous },
      series: found.sums,
      models,
      keys,
      channels,
      statuses,
      teams,
      members,
      organisations,
      tags,
      ...(found.incompleteBefore === undefined ? {} : { incompleteBefore: found.incompleteBefore }),
      health: {
        rates: rates.state,
        unsettled: bookkeeper.waiting,
        disabledChannels: catalog.channels.map(({ id }) => id).filter((id) => !catalog.isOn(id)),
        warnings: upkeep.warned.map(({ warning }) => warning),
      },
    };
  };
}
