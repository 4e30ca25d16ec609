/** Schemas of the admin endpoints for usage. */
import { z } from 'zod';
import { count, jsonObject, moment, number, percentiles, text, time } from './values.ts';

const filter = {
  since: moment.exactOptional(),
  until: moment.exactOptional().describe('exclusive'),
  keyId: text.exactOptional(),
  team: text.exactOptional().describe('id of the team of the key at the time of the call'),
  member: text.exactOptional().describe('id of the member or service account of the key at that time'),
  organisation: text.exactOptional().describe('id of the organisation of the key at that time'),
  tag: text.exactOptional().describe("one of the call's tags"),
  endUser: text.exactOptional().describe("the client's own user, as the request names it"),
  model: text.exactOptional(),
  modelPart: text.exactOptional().describe("a part of the model's name, in letters of any case"),
  channel: text.exactOptional(),
  format: text.exactOptional(),
  operation: text.exactOptional(),
  outcome: z
    .enum(['ok', 'failed', 'refused'], 'must be ok, failed or refused')
    .exactOptional()
    .describe(
      'refused: the gateway itself answered with a status from 400 to 498, and sent the call to no provider; failed: other failures',
    ),
  status: number.exactOptional(),
  statusClass: number
    .min(1, 'must be at least 1')
    .max(5, 'must be at most 5')
    .exactOptional()
    .describe('first digit of the status: 4 for 400 to 499'),
  id: text.exactOptional().describe('the id of one call, as its client saw it in x-request-id'),
  minMs: number.exactOptional().describe('duration in milliseconds, at least'),
  maxMs: number.exactOptional().describe('duration in milliseconds, at most'),
  minMicroDollars: number.exactOptional().describe('cost in micro-dollars, at least'),
  maxMicroDollars: number.exactOptional().describe('cost in micro-dollars, at most'),
} as const;

/** Which records are wanted: all members narrow. */
export const usageFilter = z.strictObject(filter);

/** Which records are wanted, and which page of them. */
export const usageQuery = z.strictObject({
  ...filter,
  limit: number.min(1, 'must be at least 1').max(500, 'must be at most 500').default(50),
  after: z.string().max(500).exactOptional().describe('the cursor of the page before'),
  sort: z
    .enum(['time', 'duration', 'cost'], 'must be time, duration or cost')
    .default('time')
    .describe('Order: newest, longest or most expensive first.'),
});

/** A time zone in a query. */
export const zone = text
  .exactOptional()
  .describe('IANA name of the time zone whose days are meant, such as Europe/Berlin; default UTC');

/** Which records are summed, and by what. `bucket` is the width of a bucket of time. */
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
      'Calls without an owner, a tag or an end user are in no group of these. A call with several tags is in several groups. Of the tags and end users of an hour 1,000 are told apart; others are in the group with an empty name.',
    ),
  zone,
  compare: z
    .enum(['previous'], 'must be previous')
    .exactOptional()
    .describe('adds the sums of the period of the same length before since'),
  bucket: number.min(1000, 'must be at least 1000').exactOptional(),
  limit: number
    .min(1, 'must be at least 1')
    .max(5_000, 'must be at most 5000')
    .default(500)
    .describe('maximum number of groups that are not buckets of time; the others are in rest'),
  order: z
    .enum(['cost', 'calls'], 'must be cost or calls')
    .default('cost')
    .describe('which groups come first, and are listed where there are more than limit'),
  percentiles: z
    .enum(['true', 'false'], 'must be true or false')
    .default('false')
    .describe('whether groups have ms and firstMs, which those by key and of one key never have'),
});

/** Cause of a failure. */
const cause = z
  .object({
    status: z.int().optional().describe("the provider's HTTP status"),
    message: z.string().optional(),
  })
  .describe(
    'what lies behind the failure: the words of the provider, of the service that gives credentials, or of the connection; cut, and without secrets',
  );

/** Record of one call. Members that do not apply are absent. */
export const usageRecord = z.object({
  id: z.string(),
  at: time,
  keyId: z.string().optional(),
  keyName: z.string().optional().describe('the name of the key, also of one that was deleted'),
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
  reason: z.string().optional().describe('the sentence that the client was told'),
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
    .describe('what was used besides tokens'),
  estimated: z.boolean().optional(),
  microDollars: count.optional().describe('the cost; absent when the model has no price'),
  chargedMicroDollars: count
    .optional()
    .describe('what budgets were charged by the price rule of a team or organisation; absent without one'),
  tags: z.array(z.string()).optional().describe('tags of the key and of the call'),
  endUser: z.string().optional().describe('the end user that the call names'),
  price: jsonObject.optional(),
  ms: z.number(),
  firstMs: z.number().optional(),
  gatewayMs: z.number().optional(),
  losses: z.array(z.string()).optional(),
  attempts: z
    .array(jsonObject)
    .optional()
    .describe('those that failed: channel, key, model, failure, and cause as above'),
  request: z.string().optional(),
  response: z.string().optional(),
});

/** A page of records, in the order that was asked for. */
export const usagePage = z.object({
  records: z.array(usageRecord),
  next: z
    .string()
    .optional()
    .describe(
      'Cursor of the next page; absent on the last. One page reads about 10,000 records and index entries at most, so a page of a filter that few records fit may be short or empty and still have a cursor.',
    ),
  searchedSince: time
    .optional()
    .describe(
      'Time of the oldest records that were looked at, where the page has looked at as many as it may. Older ones follow with next.',
    ),
  comparedSince: time
    .optional()
    .describe(
      'With sort by duration or cost, where no index has the records: time of the oldest that were compared; absent when all were. To compare older records, ask again with this time as until. With SQLite these are calls of less than 30 seconds or 0.1 dollars; with PostgreSQL all calls, until partitions of an older version have their indexes.',
    ),
});

/** Members that all sums of calls share. */
export const totals = {
  calls: count,
  failed: count.describe('calls that failed, without those that were refused'),
  refused: count.describe('calls that the gateway itself refused, and sent to no provider'),
  input: count,
  output: count,
  microDollars: count,
  chargedMicroDollars: count
    .optional()
    .describe(
      'what budgets were charged by the price rules of teams and organisations, by those of the time of each call; absent where that is the cost',
    ),
} as const;

/** Sums of the records of one group. */
export const usageSums = z.object({
  group: z.union([z.string(), z.number()]).describe("a bucket's start, or what the records have in common"),
  name: z
    .string()
    .optional()
    .describe(
      'Of sums by keyId: the name of the key, also of one that was deleted. By team, member and organisation: its name, while there is one. By day: the date.',
    ),
  ...totals,
  ms: percentiles.optional(),
  firstMs: percentiles.optional(),
});

/** A time before which sums are not complete yet. */
export const incompleteBefore = time
  .optional()
  .describe(
    'Records from before this time are still being added to the sums, after an upgrade from a version without them; absent when nothing is missing.',
  );

/** Sums of the period before. */
const previousSums = z.object({
  since: time,
  until: time,
  totals: z.object(totals),
  sums: z
    .array(usageSums)
    .describe(
      'where not all keys or owners are listed, and 1,000 at most are: those that are, without those that had no calls',
    ),
});

/** Sums in the order that was asked for; by time in its order, without empty buckets. */
export const usageSumsList = z.object({
  sums: z.array(usageSums),
  totals: z.object(totals).describe('of all calls that fit the filter, each counted once'),
  previous: previousSums.optional().describe('with compare'),
  exact: z
    .literal(false)
    .optional()
    .describe('by day: false where days of the zone begin within an hour whose sums cannot be divided'),
  rest: z
    .object({ groups: count, ...totals })
    .optional()
    .describe('the groups that are not listed, together; absent when all are listed'),
  incompleteBefore,
});

/** The types of what stands above, as a page takes them. */
export type UsageRecordView = z.output<typeof usageRecord>;
export type UsagePageView = z.output<typeof usagePage>;
export type UsageSumsView = z.output<typeof usageSums>;
export type UsageSumsList = z.output<typeof usageSumsList>;
