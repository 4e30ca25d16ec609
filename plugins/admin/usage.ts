/** Admin endpoints for the usage log. */
import { Readable } from 'node:stream';
import { GatewayError } from 'sluice';
import type { InternalTools } from 'sluice/internal';
import type { UsageFilter, UsageSums, UsageSumsInJsonOptions } from './core-types.ts';
import type { Audit } from './audit.ts';
import { csvOf } from './csv.ts';
import { eachWithNames, withNames } from './key-names.ts';
import { overviewHandler } from './overview.ts';
import { JsonBytes, jsonOf } from './json-bytes.ts';
import type { Handlers } from './serve.ts';
import { before, datesOf, querySums, totalsIn, type SumGrouping } from './usage-sums.ts';

type UsageTools = Pick<InternalTools, 'usageLog' | 'apiKeys' | 'rates' | 'bookkeeper' | 'catalog' | 'upkeep'>;

/** Returns the handlers of the usage routes. `running` returns the number of running calls. */
export function usageHandlers(
  tools: UsageTools,
  audit: Audit,
  running: () => Promise<number>,
): Handlers<'listUsage' | 'findUsage' | 'sumUsage' | 'exportUsage' | 'overview'> {
  const { usageLog, apiKeys } = tools;
  return {
    async listUsage({ query: { limit, after, sort, ...filter } }) {
      const page =
        sort === 'time'
          ? await usageLog.page(filter, limit, after)
          : await usageLog.largest(filter, sort === 'cost' ? 'microDollars' : 'ms', limit, after);
      return { ...page, records: await withNames(apiKeys, page.records) };
    },
    async findUsage({ id }) {
      const record = await usageLog.find(id);
      if (record === undefined)
        throw new GatewayError('not_found', `There is no record of a call ${id.slice(0, 100)}.`);
      const [found = record] = await withNames(apiKeys, [record]);
      return found;
    },
    async sumUsage({ query: { by, bucket, zone, compare, limit, order, percentiles, ...filter } }) {
      const now = Date.now();
      // Names are read from a table that an upgrade fills.
      if (by === 'keyId') await apiKeys.names([]);
      const earlier = compare === undefined ? undefined : before(filter, now);
      const [found, totals, previous] = await Promise.all([
        sumsOf(
          usageLog,
          { by, bucket, zone, now, options: { limit, order, percentiles: percentiles === 'true' } },
          filter,
          earlier,
        ),
        totalsIn(usageLog, filter),
        earlier && totalsIn(usageLog, earlier),
      ]);
      const { earlierSums, ...sums } = found;
      return jsonOf({
        ...sums,
        totals,
        previous:
          earlier &&
          jsonOf({ since: earlier.since, until: earlier.until, totals: previous, sums: earlierSums }),
      });
    },
    async exportUsage(request) {
      const { ctx, query } = request;
      await audit.note(request, { action: 'usage-export', after: { ...query } });
      ctx.attachment(`usage-${new Date().toISOString().slice(0, 10)}.csv`);
      return Readable.from(csvOf(eachWithNames(apiKeys, usageLog.each(query))));
    },
    overview: overviewHandler(tools, running),
  };
}

function withName(sum: UsageSums, name: string | undefined): UsageSums & { name?: string } {
  return name === undefined ? sum : { ...sum, name };
}

/** Requested sums. */
interface Wanted extends Omit<SumGrouping, 'bucket' | 'zone'> {
  readonly bucket: number | undefined;
  readonly zone: string | undefined;
  readonly now: number;
  readonly options: UsageSumsInJsonOptions;
}

/** Returns the sums of a filter, and those of the time before. */
async function sumsOf(
  usageLog: UsageTools['usageLog'],
  { by, bucket, zone, now, options }: Wanted,
  filter: UsageFilter,
  earlier: UsageFilter | undefined,
): Promise<Record<string, unknown>> {
  if (by !== 'day' && by !== 'time') {
    const {
      json,
      before: old,
      ...others
    } = await usageLog.sumsInJson(filter, by, {
      ...options,
      ...(earlier === undefined ? {} : { before: earlier }),
    });
    return { ...others, sums: new JsonBytes(json), earlierSums: old && new JsonBytes(old) };
  }
  const grouping = {
    by,
    ...(bucket === undefined ? {} : { bucket }),
    ...(zone === undefined ? {} : { zone }),
  };
  const byTime = async (of: UsageFilter) => {
    const list = await querySums(usageLog, of, grouping, options);
    if (by === 'time') return list;
    const dates = datesOf(zone ?? 'UTC', of.since ?? 0, of.until ?? now);
    return { ...list, sums: list.sums.map((sum) => withName(sum, dates.get(Number(sum.group)))) };
  };
  const [list, old] = await Promise.all([byTime(filter), earlier && byTime(earlier)]);
  return { ...list, earlierSums: old?.sums };
}
