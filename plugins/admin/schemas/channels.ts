/** Schemas of the admin endpoints for channels. */
import { z } from 'zod';
import { count, jsonObject, percentiles, text, time } from './values.ts';

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

/** A channel with its state. */
export const channel = z.object({
  id: z.string(),
  kind: z.string(),
  enabled: z.boolean(),
  priority: z.number(),
  weight: z.number(),
  models: z.array(z.string()).describe('public names and patterns'),
  speaks: z.record(z.string(), z.array(z.string())).describe('formats by operation, best first'),
  failures: count.describe(
    'attempts that failed, of the calls that came in within the last hour, by the usage log: also where another channel then answered the call',
  ),
  lastFailure: z
    .object({ at: time, model: z.string(), code: z.string(), message: z.string() })
    .optional()
    .describe('the latest of those attempts; `at` is when its call came in'),
  lastHour: z
    .object({ calls: count, failed: count, ms: percentiles, firstMs: percentiles })
    .optional()
    .describe('calls of the last hour that this channel answered, or failed at last, by the usage log'),
  standing: standing.describe('how the best of its keys stands'),
  keys: z
    .array(
      z.object({
        id: z
          .string()
          .describe(
            'a hash of the key, behind the region where the channel has several; without a key the region, or empty',
          ),
        ...health,
        failures: count,
      }),
    )
    .describe('how each of its keys stands, with the failures of the last while'),
  spared: z
    .array(z.object({ key: z.string(), model: z.string(), ...health }))
    .describe('models of the provider that are not asked for now with a key; at most 50'),
  learned: z
    .array(
      z.object({
        model: z.string().describe("the provider's name of the model"),
        member: z.string().describe('path of the member in requests to the provider'),
        since: time,
        until: time.describe('when it is sent again'),
        option: z.string().describe('the option of the channel that makes it permanent'),
      }),
    )
    .describe(
      'members of requests that a model refused and that are left out since, the latest first; at most 50',
    ),
});

/** All channels, in the order of the config. */
export const channelList = z.object({ channels: z.array(channel) });

/** A channel after a change. */
export const changedChannel = z.object({ channel });

/** Which model is asked; default: the first one that the channel names. */
export const channelTest = z.strictObject({ model: text.exactOptional() });

/** Result of a test call. The status is 200 also when the provider failed: then `ok` is false and `error` has the reason. */
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

/** All models and patterns that channels name, and the known models behind the patterns, sorted. */
export const modelList = z.object({ models: z.array(model) });

/** The types of what stands above, as a page takes them. */
export type ChannelView = z.output<typeof channel>;
export type ChannelList = z.output<typeof channelList>;
export type ChannelTestResult = z.output<typeof channelTestResult>;
export type ModelView = z.output<typeof model>;
export type ModelList = z.output<typeof modelList>;
