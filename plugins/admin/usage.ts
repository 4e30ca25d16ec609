import { Readable } from 'node:stream';
import { GatewayError } from 'sluice';
import type { InternalTools, UsageGrouping, UsageSums } from 'sluice/internal';
import type { Audit } from './audit.ts';
import { csvOf } from './csv.ts';
import { eachWithKeyName, withKeyNames } from './key-names.ts';
import type { OverviewRange } from './schemas/index.ts';
import type { Handlers } from './serve.ts';

/** The most buckets of time in one answer. */
const mostBuckets = 2_000;
/** The most groups in one list of an overview. */
const mostListed = 10;

const minute = 60_000;
const hour = 60 * minute;
/** How long each range is, and the width of its buckets. */
const ranges: Readonly<Record<OverviewRange, { readonly length: number; readonly bucket: number }>> = {
  '1h': { length: hour, bucket: minute },
  '24h': { length: 24 * hour, bucket: 30 * minute },
  '7d': { length: 7 * 24 * hour, bucket: 3 * hour },
  '30d': { length: 30 * 24 * hour, bucket: 12 * hour },
};

type UsageTools = Pick<InternalTools, 'usageLog' | 'apiKeys' | 'rates' | 'bookkeeper' | 'catalog' | 'upkeep'>;

/** The routes about what was called. `running` says how many calls run now. */
export function usageHandlers(
  { usageLog, apiKeys, rates, bookkeeper, catalog, upkeep }: UsageTools,
  audit: Audit,
  running: () => Promise<number>,
): Handlers<'listUsage' | 'findUsage' | 'sumUsage' | 'exportUsage' | 'overview'> {
  /** Adds the names of the keys to sums by key. */
  const named = async (sums: readonly UsageSums[]) => {
    const names = await apiKeys.names(sums.map(({ group }) => String(group)));
    return sums.map((sum) => ({ ...sum, name: names.get(String(sum.group)) }));
  };

  return {
    async listUsage({ query: { limit, after, sort, ...filter } }) {
      if (sort !== 'time' && after !== undefined)
        throw new GatewayError(
          'invalid_value',
          'A list sorted by duration or cost has one page: leave "after" out, and narrow the filter instead.',
          { param: 'after' },
        );
      const page =
        sort === 'time'
          ? await usageLog.page(filter, limit, after)
          : await usageLog.largest(filter, sort === 'cost' ? 'microDollars' : 'ms', limit);
      return { ...page, records: await withKeyNames(apiKeys, page.records) };
    },
    async findUsage({ id }) {
      const record = await usageLog.find(id);
      if (record === undefined)
        throw new GatewayError('not_found', `There is no record of a call ${id.slice(0, 100)}.`);
      const [found = record] = await withKeyNames(apiKeys, [record]);
      return found;
    },
    async sumUsage({ query: { by, bucket, limit, order, percentiles, ...filter } }) {
      const list = await usageLog.sums(filter, by === 'time' ? bucketsOf(bucket, filter) : by, {
        limit,
        order,
        percentiles: percentiles === 'true',
      });
      return by === 'keyId' ? { ...list, sums: await named(list.sums) } : list;
    },
    async exportUsage(asked) {
      const { ctx, query } = asked;
      await audit.note(asked, { action: 'usage-export', after: { ...query } });
      ctx.attachment(`usage-${new Date().toISOString().slice(0, 10)}.csv`);
      return Readable.from(csvOf(eachWithKeyName(apiKeys, usageLog.each(query))));
    },
    async overview({ query: { range } }) {
      const { length, bucket } = ranges[range];
      const now = Date.now();
      // Whole buckets but for the last: half a first one would look like a fall.
      const since = Math.ceil((now - length) / bucket) * bucket;
      const ranking = (grouping: UsageGrouping) =>
        usageLog.sums({ since }, grouping, { limit: mostListed, order: 'calls' });
      const [series, models, keys, channels, statuses, runs] = await Promise.all([
        usageLog.sums({ since }, { bucket }, { percentiles: true }),
        ranking('model'),
        ranking('keyId'),
        ranking('channel'),
        ranking('status'),
        running(),
      ]);
      return {
        since,
        until: now,
        bucket,
        running: runs,
        totals: totalsOf(series.sums),
        series: series.sums,
        models: models.sums,
        keys: await named(keys.sums),
        channels: channels.sums,
        statuses: statuses.sums,
        ...(series.incompleteBefore === undefined ? {} : { incompleteBefore: series.incompleteBefore }),
        health: {
          rates: rates.state,
          unsettled: bookkeeper.waiting,
          disabledChannels: catalog.channels.map(({ id }) => id).filter((id) => !catalog.isOn(id)),
          warnings: upkeep.warned.map(({ warning }) => warning),
        },
      };
    },
  };
}

function bucketsOf(
  bucket: number | undefined,
  { since, until = Date.now() }: { readonly since?: number; readonly until?: number },
): UsageGrouping {
  if (bucket === undefined)
    throw new GatewayError('missing_required_parameter', 'The parameter bucket is missing.', {
      param: 'bucket',
    });
  if (since === undefined)
    throw new GatewayError('missing_required_parameter', 'The parameter since is missing.', {
      param: 'since',
    });
  if ((until - since) / bucket > mostBuckets) {
    const least = Math.ceil((until - since) / mostBuckets);
    throw new GatewayError(
      'invalid_value',
      `bucket is too small for this time: more than ${mostBuckets} buckets. Make it ${least} or more.`,
      { param: 'bucket' },
    );
  }
  return { bucket };
}

function totalsOf(sums: readonly UsageSums[]) {
  const totals = { calls: 0, failed: 0, input: 0, output: 0, microDollars: 0 };
  for (const sum of sums) {
    totals.calls += sum.calls;
    totals.failed += sum.failed;
    totals.input += sum.input;
    totals.output += sum.output;
    totals.microDollars += sum.microDollars;
  }
  return totals;
}
