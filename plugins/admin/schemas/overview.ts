/** Schemas of the admin endpoint for the overview. */
import { z } from 'zod';
import { incompleteBefore, totals, usageSums, zone } from './usage.ts';
import { count, moment, text, time } from './values.ts';

/** The span that an overview covers, up to now. */
export const overviewQuery = z.strictObject({
  range: z.enum(['1h', '24h', '7d', '30d'], 'must be 1h, 24h, 7d or 30d').default('24h'),
  since: moment.exactOptional().describe('in the place of range: from when, in milliseconds since 1970'),
  until: moment.exactOptional().describe('with since; default now'),
  zone,
  keyId: text.exactOptional(),
  team: text.exactOptional().describe('id of a team; so are member and organisation'),
  member: text.exactOptional(),
  organisation: text.exactOptional(),
  tag: text.exactOptional(),
});

/** Data of the dashboard's first view. */
export const overview = z.object({
  since: time,
  until: time,
  /** The width of the buckets of `series`. */
  bucket: count,
  /** Calls that run now, in all processes. */
  running: count,
  totals: z.object(totals),
  previous: z
    .object({ since: time, until: time, totals: z.object(totals) })
    .describe('the period of the same length before'),
  series: z.array(usageSums).describe('by time, without empty buckets'),
  /** At most ten each, most calls first. `name` is absent where a key is gone. */
  models: z.array(usageSums),
  keys: z.array(usageSums),
  teams: z.array(usageSums),
  members: z.array(usageSums),
  organisations: z.array(usageSums),
  tags: z
    .array(usageSums)
    .describe('empty where the overview is narrowed by a key, a team, a member or an organisation'),
  channels: z.array(usageSums),
  statuses: z.array(usageSums),
  incompleteBefore,
  health: z.object({
    /** State of the connection to the shared store of rate limits. */
    rates: z.enum(['ok', 'degraded']),
    /** Calls that wait to be charged and recorded. */
    unsettled: count,
    /** Channels that are switched off. */
    disabledChannels: z.array(z.string()),
    /** Stored data whose clean-up is behind, or that is deleted earlier than configured. */
    warnings: z.array(z.string()),
  }),
});

/** The types of what stands above, as a page takes them. */
export type OverviewQuery = z.output<typeof overviewQuery>;
export type OverviewRange = z.output<typeof overviewQuery>['range'];
export type Overview = z.output<typeof overview>;
