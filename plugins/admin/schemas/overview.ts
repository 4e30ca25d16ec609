/** Schemas of the admin endpoint for the overview. */
import { z } from 'zod';
import { incompleteBefore, totals, usageSums, zone } from './usage.ts';
import { count, moment, text, time } from './values.ts';

/** Period and filter of an overview. */
export const overviewQuery = z.strictObject({
  range: z.enum(['1h', '24h', '7d', '30d'], 'must be 1h, 24h, 7d or 30d').default('24h'),
  since: moment.exactOptional().describe('begin of the period in milliseconds since 1970, in place of range'),
  until: moment.exactOptional().describe('end of the period, with since. Default: now'),
  zone,
  keyId: text.exactOptional(),
  team: text.exactOptional().describe('id of a team. `member` and `organisation` are ids too'),
  member: text.exactOptional(),
  organisation: text.exactOptional(),
  tag: text.exactOptional(),
});

/** Data of the dashboard's first view. */
export const overview = z.object({
  since: time,
  until: time,
  /** Width of the time buckets of `series`, in milliseconds. */
  bucket: count,
  /** Running calls in all processes. */
  running: count,
  totals: z.object(totals),
  previous: z
    .object({ since: time, until: time, totals: z.object(totals) })
    .describe('sums of the previous period of the same length'),
  series: z.array(usageSums).describe('sums by time bucket, without empty buckets'),
  /** At most ten each, most calls first. `name` is absent if the key was deleted. */
  models: z.array(usageSums),
  keys: z.array(usageSums),
  teams: z.array(usageSums),
  members: z.array(usageSums),
  organisations: z.array(usageSums),
  tags: z.array(usageSums).describe('empty if the overview is filtered by key, team, member or organisation'),
  channels: z.array(usageSums),
  statuses: z.array(usageSums),
  incompleteBefore,
  health: z.object({
    /** State of the connection to the shared store of rate limits. */
    rates: z.enum(['ok', 'degraded']),
    /** Ended calls that are not charged and recorded yet. */
    unsettled: count,
    /** Disabled channels. */
    disabledChannels: z.array(z.string()),
    /** Stored data whose clean-up is behind, or that is deleted earlier than configured. */
    warnings: z.array(z.string()),
  }),
});

/** Types of these schemas, for the dashboard. */
export type OverviewQuery = z.output<typeof overviewQuery>;
export type OverviewRange = z.output<typeof overviewQuery>['range'];
export type Overview = z.output<typeof overview>;
