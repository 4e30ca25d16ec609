/** Admin endpoints for the usage log. */
import { Readable } from 'node:stream';
import { GatewayError } from 'sluice';
import type { InternalTools } from 'sluice/internal';
import type { UsageSums } from './core-types.ts';
import type { Audit } from './audit.ts';
import { csvOf } from './csv.ts';
import { eachWithNames, withNames } from './key-names.ts';
import { overviewHandler } from './overview.ts';
import { JsonBytes, jsonOf } from './json-bytes.ts';
import type { Handlers } from './serve.ts';
import { before, datesOf, sumsAsked, totalsIn } from './usage-sums.ts';

type UsageTools = Pick<InternalTools, 'usageLog' | 'apiKeys' | 'rates' | 'bookkeeper' | 'catalog' | 'upkeep'>;

/** The routes about what was called. `running` says how many calls run now. */
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
      const options = { limit, order, percentiles: percentiles === 'true' };
      const now = Date.now();
      const asked = {
        by,
        ...(bucket === undefined ? {} : { bucket }),
        ...(zone === undefined ? {} : { zone }),
      };
      // Names are read from a table that an upgrade fills.
      if (by === 'keyId') await apiKeys.names([]);
      const list = async (of: typeof filter): Promise<Record<string, unknown>> => {
        if (by !== 'day' && by !== 'time') {
          const { json, ...others } = await usageLog.sumsInJson(of, by, options);
          return { ...others, sums: new JsonBytes(json) };
        }
        const found = await sumsAsked(usageLog, of, asked, options);
        if (by === 'time') return { ...found };
        const dates = datesOf(zone ?? 'UTC', of.since ?? 0, of.until ?? now);
        return { ...found, sums: found.sums.map((sum) => withName(sum, dates.get(Number(sum.group)))) };
      };
      const earlier = compare === undefined ? undefined : before(filter, now);
      const [found, totals, previous] = await Promise.all([
        list(filter),
        totalsIn(usageLog, filter),
        earlier &&
          Promise.all([list(earlier), totalsIn(usageLog, earlier)]).then(([{ sums }, all]) =>
            jsonOf({ since: earlier.since, until: earlier.until, totals: all, sums }),
          ),
      ]);
      return jsonOf({ ...found, totals, previous });
    },
    async exportUsage(asked) {
      const { ctx, query } = asked;
      await audit.note(asked, { action: 'usage-export', after: { ...query } });
      ctx.attachment(`usage-${new Date().toISOString().slice(0, 10)}.csv`);
      return Readable.from(csvOf(eachWithNames(apiKeys, usageLog.each(query))));
    },
    overview: overviewHandler(tools, running),
  };
}

function withName(sum: UsageSums, name: string | undefined): UsageSums & { name?: string } {
  return name === undefined ? sum : { ...sum, name };
}
