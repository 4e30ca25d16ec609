import { z } from 'zod';
import type { ErrorCode } from 'sluice';
import { errorTable, isAddressRange } from 'sluice/internal';

/*
 * Everything that goes in and out of the admin API. Times are in milliseconds since 1970, durations in milliseconds, money in whole
 * micro-dollars. The types at the end are what a page imports.
 */

const count = z.int().min(0);
const time = z.int().min(0).describe('milliseconds since 1970');
const percentiles = z
  .tuple([z.number(), z.number(), z.number()])
  .describe('milliseconds at the 50th, 95th and 99th percentile');
const jsonObject = z.record(z.string(), z.unknown());

/** A query with nothing in it. */
export const noQuery = z.strictObject({});

/** What a request that only says "do it" carries: nothing, or an empty object. */
export const noBody = z.strictObject({});

/** What a change without an answer of its own gives. */
export const done = z.object({ ok: z.literal(true) });

/* ---- Errors ------------------------------------------------------------------------------------------------------- */

/** Every refusal. `param` names the field or query parameter: `budgets[0].amount`. */
export const failure = z.object({
  error: z.object({
    code: z.enum(Object.keys(errorTable) as [ErrorCode, ...ErrorCode[]]),
    message: z.string().describe('a sentence for a person'),
    param: z.string().optional(),
  }),
});

/* ---- Login -------------------------------------------------------------------------------------------------------- */

/** The body of a login. */
export const login = z.strictObject({
  password: z
    .string('must be a text')
    .min(1, 'must not be empty')
    .max(1024, 'must be at most 1024 characters'),
});

/** A session: what a login gives, and what a page asks when it is loaded again. */
export const session = z.object({
  /** The first characters of its id, as the audit shows them. */
  session: z.string(),
  /** Goes into the header `x-csrf-token` of every request that changes something. */
  csrfToken: z.string(),
  /** Moves on while it is used. */
  expiresAt: time,
});

/* ---- API keys ----------------------------------------------------------------------------------------------------- */

const whole = z.int('must be a whole number').min(1, 'must be at least 1').max(1e12, 'is too large');

const budget = z.strictObject({
  unit: z.enum(['micro-dollar', 'token'], 'must be micro-dollar or token'),
  period: z.enum(['day', 'month', 'total'], 'must be day, month or total'),
  amount: z
    .int('must be a whole number: micro-dollars or tokens')
    .min(0, 'must not be negative')
    .max(1e15, 'is too large'),
});

const fields = {
  name: z
    .string('must be a text')
    .trim()
    .min(1, 'must not be empty')
    .max(200, 'must be at most 200 characters'),
  note: z.string('must be a text').max(2000, 'must be at most 2000 characters'),
  models: z
    .array(
      z
        .string('must be a text')
        .trim()
        .min(1, 'must not be empty')
        .max(200, 'must be at most 200 characters'),
    )
    .min(1, 'must not be empty: leave it out to allow every model')
    .max(200, 'must have at most 200 entries'),
  budgets: z
    .array(budget)
    .max(6, 'must have at most 6 entries')
    .refine(
      (budgets) => new Set(budgets.map(({ unit, period }) => `${unit} ${period}`)).size === budgets.length,
      'must not limit the same unit twice for one period',
    ),
  requestsPerMinute: whole,
  tokensPerMinute: whole,
  concurrency: whole,
  addresses: z
    .array(
      z
        .string('must be a text')
        .trim()
        .refine(isAddressRange, 'must be an IP address or a range such as 192.0.2.0/24'),
    )
    .min(1, 'must not be empty: leave it out to allow every address')
    .max(500, 'must have at most 500 entries'),
  expiresAt: z.int('must be milliseconds since 1970'),
} as const;

/** What a new key is made of; only the name is required. An absent limit means that there is none. */
export const newKey = z.strictObject({
  name: fields.name,
  note: fields.note.exactOptional(),
  models: fields.models.exactOptional().describe('exact names and patterns with *'),
  budgets: fields.budgets.exactOptional(),
  requestsPerMinute: whole.exactOptional(),
  tokensPerMinute: whole.exactOptional(),
  concurrency: whole.exactOptional(),
  addresses: fields.addresses.exactOptional().describe('IP addresses and CIDR ranges'),
  expiresAt: fields.expiresAt.exactOptional(),
});

/** The fields to change; null takes a limit away. */
export const keyChanges = z.strictObject({
  name: fields.name.exactOptional(),
  note: fields.note.nullable().exactOptional(),
  models: fields.models.nullable().exactOptional(),
  budgets: fields.budgets.nullable().exactOptional(),
  requestsPerMinute: whole.nullable().exactOptional(),
  tokensPerMinute: whole.nullable().exactOptional(),
  concurrency: whole.nullable().exactOptional(),
  addresses: fields.addresses.nullable().exactOptional(),
  expiresAt: fields.expiresAt.nullable().exactOptional(),
});

/** A budget with what is spent and claimed in its present period. */
export const budgetState = z.object({
  unit: budget.shape.unit,
  period: budget.shape.period,
  amount: count,
  since: time.describe('when the period began; 0 for total'),
  spent: count,
  reserved: count.describe('claimed by calls that run'),
});

/** A key as people see it: never its secret. */
export const key = z.object({
  id: z.string(),
  name: z.string(),
  note: z.string().optional(),
  prefix: z.string().describe('the first characters of the secret'),
  suffix: z.string().describe('the last characters of the secret'),
  state: z.enum(['valid', 'disabled', 'expired']),
  models: z.array(z.string()).optional(),
  budgets: z.array(budgetState),
  requestsPerMinute: count.optional(),
  tokensPerMinute: count.optional(),
  concurrency: count.optional(),
  addresses: z.array(z.string()).optional(),
  expiresAt: time.optional(),
  enabled: z.boolean(),
  createdAt: time,
  lastUsedAt: time.optional().describe('to within about a minute'),
});

/** All keys, newest first. */
export const keyList = z.object({ keys: z.array(key) });

/** A key after a change. Warnings are sentences about what is allowed but looks like a mistake. */
export const changedKey = z.object({ key, warnings: z.array(z.string()) });

/** A key with its secret, which is shown this once. */
export const keyWithValue = z.object({
  key,
  value: z.string().describe('the secret: it cannot be shown again'),
  warnings: z.array(z.string()),
});

/* ---- Usage -------------------------------------------------------------------------------------------------------- */

const number = z.coerce
  .number<string>('must be a number')
  .int('must be a whole number')
  .min(0, 'must not be negative');
const text = z.string().min(1, 'must not be empty').max(200, 'must be at most 200 characters');

const filter = {
  since: number.exactOptional(),
  until: number.exactOptional().describe('exclusive'),
  keyId: text.exactOptional(),
  model: text.exactOptional(),
  channel: text.exactOptional(),
  format: text.exactOptional(),
  operation: text.exactOptional(),
  outcome: z.enum(['ok', 'failed'], 'must be ok or failed').exactOptional(),
  status: number.exactOptional(),
} as const;

/** Which records are wanted: all members narrow. */
export const usageFilter = z.strictObject(filter);

/** Which records are wanted, and which page of them. */
export const usageQuery = z.strictObject({
  ...filter,
  limit: number.min(1, 'must be at least 1').max(500, 'must be at most 500').default(50),
  after: z.string().max(500).exactOptional().describe('the cursor of the page before'),
});

/** Which records are summed, and by what. `bucket` is the width of a bucket of time. */
export const sumsQuery = z.strictObject({
  ...filter,
  by: z.enum(
    ['time', 'keyId', 'model', 'channel', 'format', 'status'],
    'must be time, keyId, model, channel, format or status',
  ),
  bucket: number.min(1000, 'must be at least 1000').exactOptional(),
});

/** One call, as it was recorded. Members that do not apply are absent. */
export const usageRecord = z.object({
  id: z.string(),
  at: time,
  keyId: z.string().optional(),
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
  reason: z.string().optional(),
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
    })
    .optional()
    .describe('what was used besides tokens'),
  estimated: z.boolean().optional(),
  microDollars: count.optional().describe('absent when the model has no price'),
  price: jsonObject.optional(),
  ms: z.number(),
  firstMs: z.number().optional(),
  gatewayMs: z.number().optional(),
  losses: z.array(z.string()).optional(),
  attempts: z.array(jsonObject).optional(),
  request: z.string().optional(),
  response: z.string().optional(),
});

/** A page of records, newest first. */
export const usagePage = z.object({
  records: z.array(usageRecord),
  next: z.string().optional().describe('the cursor of the next page; absent on the last'),
});

const totals = { calls: count, failed: count, input: count, output: count, microDollars: count } as const;

/** What the records of one group come to. */
export const usageSums = z.object({
  group: z.union([z.string(), z.number()]).describe("a bucket's start, or what the records have in common"),
  ...totals,
  ms: percentiles,
  firstMs: percentiles,
});

/** Sums, largest number of calls first; by time in its order, without empty buckets. */
export const usageSumsList = z.object({ sums: z.array(usageSums) });

/* ---- Channels and models ------------------------------------------------------------------------------------------ */

const standing = z
  .enum(['up', 'cooling', 'resting', 'probing'])
  .describe(
    'cooling: it asked for patience; resting: after failures; probing: one call finds out whether it answers again',
  );

const health = {
  standing,
  until: time.optional().describe('when calls may go there again; absent when they may now'),
  last: z
    .object({ at: time, code: z.string(), message: z.string() })
    .optional()
    .describe('what went wrong last, in the words of the provider where it gave any'),
} as const;

/** A channel with its state. Failures are those that this process has seen since it started. */
export const channel = z.object({
  id: z.string(),
  kind: z.string(),
  enabled: z.boolean(),
  priority: z.number(),
  weight: z.number(),
  models: z.array(z.string()).describe('public names and patterns'),
  speaks: z.record(z.string(), z.array(z.string())).describe('formats by operation, best first'),
  failures: count,
  lastFailure: z.object({ at: time, model: z.string(), code: z.string(), message: z.string() }).optional(),
  lastHour: z.object({ calls: count, failed: count, ms: percentiles, firstMs: percentiles }).optional(),
  standing: standing.describe('how the best of its keys stands'),
  keys: z
    .array(
      z.object({
        id: z.string().describe('tells keys apart, and gives none away'),
        ...health,
        failures: count,
      }),
    )
    .describe('how each of its keys stands, with the failures of the last while'),
  spared: z
    .array(z.object({ key: z.string(), model: z.string(), ...health }))
    .describe('models of the provider that are not asked for now with a key; at most 50'),
});

/** All channels, in the order of the config. */
export const channelList = z.object({ channels: z.array(channel) });

/** A channel after a change. */
export const changedChannel = z.object({ channel });

/** Which model is asked; default: the first one that the channel names. */
export const channelTest = z.strictObject({ model: text.exactOptional() });

/** What a test call came to. It is answered 200 also when the provider failed: then `ok` is false and `error` says why. */
export const channelTestResult = z.object({
  ok: z.boolean(),
  model: z.string(),
  /** The format spoken to the provider. */
  format: z.string().optional(),
  ms: z.number(),
  /** The first characters of the answer. */
  text: z.string().optional(),
  input: count.optional(),
  output: count.optional(),
  error: z.object({ code: z.string(), status: z.int(), message: z.string() }).optional(),
});

/** A model by its public name, with who serves it and what it costs. */
export const model = z.object({
  id: z.string().describe('a name, or a pattern with *'),
  channels: z.array(
    z.object({
      id: z.string(),
      upstreamModel: z.string(),
      enabled: z.boolean(),
      price: jsonObject.optional().describe('what is charged for it there; absent when it has no price'),
    }),
  ),
  price: jsonObject
    .optional()
    .describe(
      'that of the first channel that has one. `model`: the row that it is; `source`: where that comes from, unless from the config',
    ),
  inputLimit: count.optional(),
  outputLimit: count.optional(),
  reasoning: z.boolean().optional(),
  operation: z.string().optional().describe('what it is known to be for; absent: chat, or not known'),
  takes: z.array(z.string()).optional().describe('besides text, as far as the catalogue knows'),
  can: z.array(z.string()).optional().describe('what the catalogue knows that it does'),
  cannot: z.array(z.string()).optional(),
});

/** All models and patterns that channels name, and what is known to stand behind the patterns, sorted. */
export const modelList = z.object({ models: z.array(model) });

/* ---- Overview ----------------------------------------------------------------------------------------------------- */

/** The span that an overview covers, up to now. */
export const overviewQuery = z.strictObject({
  range: z.enum(['1h', '24h', '7d', '30d'], 'must be 1h, 24h, 7d or 30d').default('24h'),
});

/** What the first view shows. */
export const overview = z.object({
  since: time,
  until: time,
  /** The width of the buckets of `series`. */
  bucket: count,
  /** Calls that run now, in all processes. */
  running: count,
  totals: z.object(totals),
  series: z.array(usageSums).describe('by time, without empty buckets'),
  /** At most ten each, most calls first. `name` is absent where a key is gone. */
  models: z.array(usageSums),
  keys: z.array(usageSums.extend({ name: z.string().optional() })),
  channels: z.array(usageSums),
  statuses: z.array(usageSums),
  health: z.object({
    /** Whether the shared store of rates answers. */
    rates: z.enum(['ok', 'degraded']),
    /** Calls that wait to be charged and recorded. */
    unsettled: count,
    /** Channels that are switched off. */
    disabledChannels: z.array(z.string()),
  }),
});

/* ---- Processes ---------------------------------------------------------------------------------------------------- */

/** What came of a reload: without `ok` the configuration before stays in force, for these reasons. */
export const reloadOutcome = z.object({ ok: z.boolean(), problems: z.array(z.string()) });

/** The processes of this gateway. */
export const status = z.object({
  version: z.string().describe('of the configuration in force; empty where it is not known'),
  since: time.describe('when it came into force'),
  reloads: z.boolean().describe('false: this gateway is part of another program'),
  watching: z.boolean().describe('changes of files are followed'),
  lastReload: reloadOutcome.extend({ at: time, ms: z.number() }).optional(),
  crashes: count.describe('workers that ended by themselves'),
  worker: count.describe('the one that answers'),
  workers: z.array(
    z.object({
      worker: count,
      pid: count,
      state: z.enum(['starting', 'serving', 'leaving']),
      version: z.string(),
      since: time,
    }),
  ),
  /** Of the worker that answers. */
  load: z.object({
    running: count,
    waiting: count,
    refused: count.describe('since its start'),
    bodies: count.describe('bytes of bodies that calls hold'),
    lag: z.number().describe('milliseconds'),
    memory: z.number().describe('share that is full, 0 to 1'),
    strain: z.enum(['lag', 'memory']).optional().describe('why new calls are refused now'),
  }),
});

/* ---- Live view ---------------------------------------------------------------------------------------------------- */

/** A call that runs or has just ended. Members fill up on the way: key and model are known once its body was read. */
export const liveCall = z.object({
  id: z.string(),
  at: time,
  phase: z.enum(['waiting', 'answering', 'ended']),
  ip: z.string(),
  operation: z.string(),
  format: z.string(),
  stream: z.boolean(),
  keyId: z.string().optional(),
  keyName: z.string().optional(),
  model: z.string().optional(),
  channel: z.string().optional(),
  upstreamModel: z.string().optional(),
  upstreamFormat: z.string().optional(),
  passThrough: z.boolean().optional(),
  /** Attempts that failed: channel and reason. */
  failedAttempts: z.array(z.string()).optional(),
  firstMs: z.number().optional(),
  input: count.optional(),
  output: count.optional(),
  /** With phase `ended`. */
  ended: z.enum(['complete', 'error', 'left']).optional(),
  status: z.int().optional(),
  code: z.string().optional(),
  ms: z.number().optional(),
});

/**
 * The data of every event of the live stream. The event `snapshot` comes first, with the calls that run now; each `calls` after it has
 * those that have changed since, whole: replace them by id. At most four events a second.
 */
export const liveFrame = z.object({
  /** Calls that run now, in all processes. */
  running: count,
  calls: z.array(liveCall),
  /** Changes that were left out because there were too many. */
  skipped: count.optional(),
});

/* ---- Audit -------------------------------------------------------------------------------------------------------- */

/** Which page of the audit is wanted. */
export const auditQuery = z.strictObject({
  limit: number.min(1, 'must be at least 1').max(500, 'must be at most 500').default(100),
  after: z.string().max(100).exactOptional().describe('the cursor of the page before'),
});

/** One change that somebody made. `before` and `after` hold no secrets. */
export const auditEntry = z.object({
  id: z.string(),
  at: time,
  session: z.string().describe('the first characters of the session id'),
  ip: z.string(),
  action: z.enum([
    'login',
    'logout',
    'key-create',
    'key-update',
    'key-rotate',
    'key-enable',
    'key-disable',
    'key-delete',
    'channel-test',
    'channel-enable',
    'channel-disable',
    'channel-reset',
    'usage-export',
    'reload',
  ]),
  /** The id of what was changed. */
  target: z.string().optional(),
  before: jsonObject.optional(),
  after: jsonObject.optional(),
});

/** A page of the audit, newest first. */
export const auditPage = z.object({
  entries: z.array(auditEntry),
  next: z.string().optional().describe('the cursor of the next page; absent on the last'),
});

/* ---- Types -------------------------------------------------------------------------------------------------------- */

/** The types of what stands above, under the names that a page uses. */
export type Failure = z.output<typeof failure>;
export type Session = z.output<typeof session>;
export type NewKey = z.input<typeof newKey>;
export type KeyChanges = z.input<typeof keyChanges>;
export type BudgetStateView = z.output<typeof budgetState>;
export type KeyView = z.output<typeof key>;
export type KeyList = z.output<typeof keyList>;
export type ChangedKey = z.output<typeof changedKey>;
export type KeyWithValue = z.output<typeof keyWithValue>;
export type UsageRecordView = z.output<typeof usageRecord>;
export type UsagePageView = z.output<typeof usagePage>;
export type UsageSumsView = z.output<typeof usageSums>;
export type UsageSumsList = z.output<typeof usageSumsList>;
export type ChannelView = z.output<typeof channel>;
export type ChannelList = z.output<typeof channelList>;
export type ChannelTestResult = z.output<typeof channelTestResult>;
export type ModelView = z.output<typeof model>;
export type ModelList = z.output<typeof modelList>;
export type OverviewRange = z.output<typeof overviewQuery>['range'];
export type Overview = z.output<typeof overview>;
export type ReloadOutcome = z.output<typeof reloadOutcome>;
export type Status = z.output<typeof status>;
export type LiveCall = z.output<typeof liveCall>;
export type LiveFrame = z.output<typeof liveFrame>;
export type AuditEntry = z.output<typeof auditEntry>;
export type AuditPage = z.output<typeof auditPage>;
