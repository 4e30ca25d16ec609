/** Schemas of the admin endpoints for channels. */
import { z } from 'zod';
import { count, jsonObject, percentiles, text, time } from './values.ts';

const standing = z
  .enum(['up', 'cooling', 'resting', 'probing'])
  .describe(
    'state of the circuit breaker. cooling: after a 429; resting: after failures; probing: one call probes the provider',
  );

const health = {
  standing,
  until: time.optional().describe('time at which the cooldown ends; absent without one'),
  last: z
    .object({ at: time, code: z.string(), message: z.string() })
    .optional()
    .describe('latest failure, with the error message of the provider if it sent one'),
} as const;

/** A channel with its state. */
export const channel = z.object({
  id: z.string(),
  kind: z.string(),
  enabled: z.boolean(),
  priority: z.number(),
  weight: z.number(),
  models: z.array(z.string()).describe('public names and patterns of models'),
  speaks: z.record(z.string(), z.array(z.string())).describe('formats by operation, best first'),
  failures: count.describe(
    'failed attempts of calls of the last hour, from the usage log; also of calls for which a fallback succeeded',
  ),
  lastFailure: z
    .object({ at: time, model: z.string(), code: z.string(), message: z.string() })
    .optional()
    .describe('latest failed attempt; `at` is the time of its call'),
  lastHour: z
    .object({ calls: count, failed: count, ms: percentiles, firstMs: percentiles })
    .optional()
    .describe('calls of the last hour whose last attempt was at this channel, from the usage log'),
  standing: standing.describe('state of the key in the best state'),
  keys: z
    .array(
      z.object({
        id: z
          .string()
          .describe(
            'hash of the key, after the region if the channel has several; without a key, the region or empty',
          ),
        ...health,
        failures: count,
      }),
    )
    .describe('state of each key, with its failures within the window of its circuit breaker'),
  spared: z
    .array(z.object({ key: z.string(), model: z.string(), ...health }))
    .describe('models of the provider with an open circuit breaker or a cooldown at a key; at most 50'),
  learned: z
    .array(
      z.object({
        model: z.string().describe('name of the model at the provider'),
        member: z.string().describe('path of the field in requests to the provider'),
        since: time,
        until: time.describe('time from which it is sent again'),
        option: z.string().describe('channel option that makes the omission permanent'),
      }),
    )
    .describe('request fields that a model has refused and that are omitted since, latest first; at most 50'),
});

/** All channels, in the order of the config. */
export const channelList = z.object({ channels: z.array(channel) });

/** A channel after a change. */
export const changedChannel = z.object({ channel });

/** Model of a test call. Default: the first model that the channel names. */
export const channelTest = z.strictObject({ model: text.exactOptional() });

/** Result of a test call. The status is 200 also when the provider failed: then `ok` is false and `error` has the reason. */
export const channelTestResult = z.object({
  ok: z.boolean(),
  model: z.string(),
  /** Format of the request to the provider. */
  format: z.string().optional(),
  ms: z.number(),
  /** First characters of the response. */
  text: z.string().optional(),
  input: count.optional(),
  output: count.optional(),
  error: z.object({ code: z.string(), status: z.int(), message: z.string() }).optional(),
});

/** A model by its public name, with its channels and prices. */
export const model = z.object({
  id: z.string().describe('name, or pattern with *'),
  channels: z.array(
    z.object({
      id: z.string(),
      upstreamModel: z.string(),
      enabled: z.boolean(),
      price: jsonObject.optional().describe('price at this channel; absent if there is none'),
    }),
  ),
  price: jsonObject
    .optional()
    .describe(
      'price of the first channel that has one. `model`: name of the price row; `source`: origin of the row, if not the config',
    ),
  inputLimit: count.optional(),
  outputLimit: count.optional(),
  reasoning: z.boolean().optional(),
  operation: z.string().optional().describe('operation of the model, if known; absent: chat, or unknown'),
  takes: z.array(z.string()).optional().describe('inputs beside text, according to the catalogue'),
  can: z.array(z.string()).optional().describe('capabilities, according to the catalogue'),
  cannot: z.array(z.string()).optional(),
});

/** All models and patterns that channels name, and the known models that match the patterns, sorted. */
export const modelList = z.object({ models: z.array(model) });

/** Types of these schemas, for the dashboard. */
export type ChannelView = z.output<typeof channel>;
export type ChannelList = z.output<typeof channelList>;
export type ChannelTestResult = z.output<typeof channelTestResult>;
export type ModelView = z.output<typeof model>;
export type ModelList = z.output<typeof modelList>;
