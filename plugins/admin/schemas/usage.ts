/** Schemas of the admin endpoints for usage. */
import { z } from 'zod';
import { count, jsonObject, moment, number, percentiles, text, time } from './values.ts';

const filter = {
  since: moment.exactOptional(),
  until: moment.exactOptional().describe('end of the period, exclusive'),
  keyId: text.exactOptional(),
  team: text.exactOptional().describe('id of the team of the key at the time of the call'),
  member: text.exactOptional().describe('id of the member or service account of the key at that time'),
  organisation: text.exactOptional().describe('id of the organisation of the key at that time'),
  tag: text.exactOptional().describe("one of the call's tags"),
  endUser: text.exactOptional().describe("id of the client's own user, from the request"),
  model: text.exactOptional(),
  modelPart: text.exactOptional().describe("part of the model's name, case-insensitive"),
  channel: text.exactOptional(),
  format: text.exactOptional(),
  operation: text.exactOptional(),
  outcome: z
    .enum(['ok', 'failed', 'refused'], 'must be ok, failed or refused')
    .exactOptional()
    .describe(
      'refused: the gateway returned a status from 400 to 498 and sent the call to no provider; failed: other failures',
    ),
  status: number.exactOptional(),
  statusClass: number
    .min(1, 'must be at least 1')
    .max(5, 'must be at most 5')
    .exactOptional()
    .describe('first digit of the status: 4 for 400 to 499'),
  id: text.exactOptional().describe('id of one call, which its response has in x-request-id'),
  minMs: number.exactOptional().describe('minimum duration in milliseconds'),
  maxMs: number.exactOptional().describe('maximum duration in milliseconds'),
  minMicroDollars: number.exactOptional().describe('minimum cost in micro-dollars'),
  maxMicroDollars: number.exactOptional().describe('maximum cost in micro-dollars'),
} as const;

/** Filter of usage records. A record must match all fields. */
export const usageFilter = z.strictObject(filter);

/** Filter, order and page of usage records. */
export const usageQuery = z.strictObject({
  ...filter,
  limit: number.min(1, 'must be at least 1').max(500, 'must be at most 500').default(50),
  after: z.string().max(500).exactOptional().describe('cursor from the previous page'),
  sort: z
    .enum(['time', 'duration', 'cost'], 'must be time, duration or cost')
    .default('time')
    .describe('Order: newest, longest or most expensive first.'),
});

/** A time zone in a query. */
export const zone = text
  .exactOptional()
  .describe('IANA name of the time zone of days, such as Europe/Berlin; default UTC');

/** Filter and grouping of sums. `bucket` is the width of a time bucket in milliseconds. */
export const sumsQuery = z.strictObject({
  ...filter,
  by: z
    .enum(
      [
        'time',
        'day',
        'keyId',
        'team',
        'member',
        'organisation',
        'tag',
        'endUser',
        'model',
        'channel',
        'format',
        'status',
      ],
      'must be time, day, keyId, team, member, organisation, tag, endUser, model, channel, format or status',
    )
    .describe(
      'Field by which calls are grouped. Calls without an owner, a tag or an end user are in no group. A call with several tags is in several groups. Of each hour, 1,000 tags and end users have groups of their own; others are in the group with an empty name.',
    ),
  zone,
  compare: z
    .enum(['previous'], 'must be previous')
    .exactOptional()
    .describe('adds the sums of the previous period of the same length'),
  bucket: number.min(1000, 'must be at least 1000').exactOptional(),
  limit: number
    .min(1, 'must be at least 1')
    .max(5_000, 'must be at most 5000')
    .default(500)
    .describe('maximum number of groups, except time buckets; further groups are summed in rest'),
  order: z
    .enum(['cost', 'calls'], 'must be cost or calls')
    .default('cost')
    .describe('order of groups, highest first; with more groups than limit, the first ones are listed'),
  percentiles: z
    .enum(['true', 'false'], 'must be true or false')
    .default('false')
    .describe('true: adds ms and firstMs to groups, except to groups by key and of one key'),
});

/** Cause of a failure. */
const cause = z
  .object({
    status: z.int().optional().describe("the provider's HTTP status"),
    message: z.string().optional(),
  })
  .describe(
    'cause of the failure: the error message of the provider, of the service that issues credentials, or of the connection; shortened, and without secrets',
  );

/** Record of one call. Members that do not apply are absent. */
export const usageRecord = z.object({
  id: z.string(),
  at: time,
  keyId: z.string().optional(),
  keyName: z.string().optional().describe('name of the key, also of a deleted one'),
  team: z.string().optional(),
  teamName: z.string().optional(),
  member: z.string().optional(),
  memberName: z.string().optional(),
  organisation: z.string().optional(),
  organisationName: z.string().optional(),
  ip: z.string(),
  operation: z.string(),
  format: z.string(),
  upstreamFormat: z.string().optional(),
  model: z.string(),
  upstreamModel: z.string().optional(),
  channel: z.string().optional(),
  stream: z.boolean(),
  passThrough: z.boolean().optional(),
  status: z.int(),
  code: z.string().optional(),
  reason: z.string().optional().describe('error message that the client received'),
  cause: cause.optional(),
  ended: z.enum(['complete', 'error', 'left', 'interrupted']),
  input: count,
  output: count,
  cacheRead: count,
  cacheWrite: count,
  reasoning: count,
  units: z
    .object({
      images: z.number().optional(),
      seconds: z.number().optional(),
      characters: z.number().optional(),
      pages: z.number().optional(),
      annotatedPages: z.number().optional(),
      imagesAt: z.record(z.string(), z.number()).optional(),
      secondsAt: z.record(z.string(), z.number()).optional(),
      callsAt: z.record(z.string(), z.number()).optional(),
      services: z.record(z.string(), z.number()).optional(),
    })
    .optional()
    .describe('usage that is not counted in tokens'),
  estimated: z.boolean().optional(),
  microDollars: count.optional().describe('cost in micro-dollars; absent if the model has no price'),
  chargedMicroDollars: count
    .optional()
    .describe('charge to budgets by the price rule of a team or organisation; absent without a price rule'),
  tags: z.array(z.string()).optional().describe('tags of the key and of the call'),
  endUser: z.string().optional().describe('end user that the call names'),
  price: jsonObject.optional(),
  ms: z.number(),
  firstMs: z.number().optional(),
  gatewayMs: z.number().optional(),
  losses: z.array(z.string()).optional(),
  attempts: z
    .array(jsonObject)
    .optional()
    .describe('failed attempts: channel, key, model, failure and cause'),
  request: z.string().optional(),
  response: z.string().optional(),
});

/** A page of records, in the requested order. */
export const usagePage = z.object({
  records: z.array(usageRecord),
  next: z
    .string()
    .optional()
    .describe(
      'Cursor of the next page; absent on the last. A page reads at most about 10,000 records and index entries. With a filter that few records match, a page can be short or empty and still have a cursor.',
    ),
  searchedSince: time
    .optional()
    .describe(
      'Time of the oldest records that were read, if the page has reached its limit of records to read. Use next for older ones.',
    ),
  comparedSince: time
    .optional()
    .describe(
      'With sort by duration or cost, for records without an index: time of the oldest that were compared; absent if all were. To compare older records, send this time as until. Without an index are, with SQLite, calls of less than 30 seconds or 0.1 dollars; with PostgreSQL, all calls until partitions of an older version have their indexes.',
    ),
});

/** Members that all sums of calls share. */
export const totals = {
  calls: count,
  failed: count.describe('failed calls, without refused ones'),
  refused: count.describe('calls that the gateway refused and sent to no provider'),
  input: count,
  output: count,
  microDollars: count,
  chargedMicroDollars: count
    .optional()
    .describe(
      'charge to budgets by the price rules of teams and organisations at the time of each call; absent if it equals the cost',
    ),
} as const;

/** Sums of the records of one group. */
export const usageSums = z.object({
  group: z
    .union([z.string(), z.number()])
    .describe('start of the time bucket, or the common value of the records'),
  name: z
    .string()
    .optional()
    .describe(
      'Name of the group. By keyId: the name of the key, also of a deleted one. By team, member or organisation: its name, unless it was deleted. By day: the date.',
    ),
  ...totals,
  ms: percentiles.optional(),
  firstMs: percentiles.optional(),
});

/** Time before which sums are incomplete. */
export const incompleteBefore = time
  .optional()
  .describe(
    'Records before this time are still being added to the sums, after an upgrade from a version without sums; absent if sums are complete.',
  );

/** Sums of the previous period. */
const previousSums = z.object({
  since: time,
  until: time,
  totals: z.object(totals),
  sums: z
    .array(usageSums)
    .describe(
      'sums of the previous period. If not all keys or owners are listed, and at most 1,000 are: only of the listed ones that had calls',
    ),
});

/** Sums in the requested order. Time buckets are in order of time, without empty ones. */
export const usageSumsList = z.object({
  sums: z.array(usageSums),
  totals: z.object(totals).describe('sums of all calls that match the filter, each counted once'),
  previous: previousSums.optional().describe('sums of the previous period, with compare'),
  exact: z
    .literal(false)
    .optional()
    .describe(
      'with by day: false if days of the time zone begin within an hour, so that sums of whole hours are assigned to one day',
    ),
  rest: z
    .object({ groups: count, ...totals })
    .optional()
    .describe('sums of all groups that are not listed; absent if all are listed'),
  incompleteBefore,
});

/** Types of these schemas, for the dashboard. */
export type UsageRecordView = z.output<typeof usageRecord>;
export type UsagePageView = z.output<typeof usagePage>;
export type UsageSumsView = z.output<typeof usageSums>;
export type UsageSumsList = z.output<typeof usageSumsList>;
