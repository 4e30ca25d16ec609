/** Options of the guard. */
import { z } from 'zod';
import { secret, secretUrl } from 'sluice';
import { entityNames } from './detectors/index.ts';
import { azureOptions } from './remote/azure.ts';
import { bedrockOptions } from './remote/bedrock.ts';
import { jsonSchemaOptions } from './remote/json-schema.ts';
import { lakeraOptions } from './remote/lakera.ts';
import { judgeOptions } from './remote/llm-judge.ts';
import { modelArmorOptions } from './remote/model-armor.ts';
import { moderationOptions } from './remote/moderation.ts';
import { presidioOptions } from './remote/presidio.ts';
import { webhookOptions } from './remote/webhook.ts';

const common = {
  /** Name of the check in errors, the header `x-sluice-guard`, the log and the metrics. */
  name: z.string().regex(/^[A-Za-z0-9][\w.-]{0,63}$/, 'letters, digits, "_", "." and "-", at most 64'),
  /** Default `both`. */
  on: z.enum(['request', 'response', 'both']).default('both'),
  /** `refuse` with an error, `mask`, `tag` in a header and the log, or `alert` the operator. */
  action: z.enum(['refuse', 'mask', 'tag', 'alert']),
  /** Names and patterns (`gpt-*`) of models. Default: all. */
  models: z.array(z.string().min(1)).min(1).optional(),
  /** Ids, names and patterns of names (`team-a-*`) of API keys. Default: all, and calls without a key. */
  keys: z.array(z.string().min(1)).min(1).optional(),
  /** Message of the error that a refused client gets. */
  message: z.string().min(1).max(500).optional(),
};

const local = {
  ...common,
  /** Restores the masked values in the response. For `mask`. */
  restore: z.boolean().default(false),
};

const remote = {
  ...common,
  restore: local.restore,
  /** Sends the request to the provider at once and holds the response back until the check is done. A refused request then costs tokens. */
  parallel: z.boolean().default(false),
  /** Texts of a request that are checked: all, or those since the model's last turn. */
  scope: z.enum(['all', 'last']).default('all'),
  /** Timeout of one check, in milliseconds. */
  timeout: z.int().min(1).max(600_000).default(5_000),
  /** Decision if the check does not respond, or responds with an error. Default: `refuse`. */
  whenDown: z.enum(['allow', 'refuse']).default('refuse'),
  /** Maximum number of characters that are sent. A longer text counts as a check without a response. */
  longest: z.int().min(1).default(1_000_000),
};

const label = z.string().regex(/^[A-Z][A-Z_]{0,38}[A-Z]$/, 'capital letters and "_"');

const pattern = z.strictObject({
  /** Regular expression. Only syntax that runs in linear time is allowed. */
  pattern: z.string().min(1).max(2_000),
  ignoreCase: z.boolean().default(false),
  /** Label in placeholders: `[LABEL_1]`. */
  label: label.default('VALUE'),
});

/** Options of one check, by its kind. */
export const checkOptions = z.discriminatedUnion('kind', [
  z.strictObject({
    ...local,
    kind: z.literal('entities'),
    /** Names of entities and of groups. */
    entities: z.array(z.enum(entityNames)).min(1),
  }),
  z.strictObject({
    ...local,
    kind: z.literal('words'),
    words: z.array(z.string().min(1).max(200)).min(1).max(50_000),
    caseSensitive: z.boolean().default(false),
    /** Finds words also inside of other words. */
    within: z.boolean().default(false),
    label: label.default('WORD'),
  }),
  z.strictObject({
    ...local,
    kind: z.literal('patterns'),
    patterns: z.array(pattern).min(1).max(200),
    /** Maximum length of a match, in characters. At most as many characters of a stream are held back. */
    window: z.int().min(1).max(8_192).default(256),
  }),
  z.strictObject({ ...common, kind: z.literal('json-schema'), ...jsonSchemaOptions }),
  z.strictObject({ ...remote, kind: z.literal('moderation'), ...moderationOptions }),
  z.strictObject({ ...remote, kind: z.literal('judge'), ...judgeOptions }),
  z.strictObject({ ...remote, kind: z.literal('webhook'), ...webhookOptions }),
  z.strictObject({ ...remote, kind: z.literal('bedrock'), ...bedrockOptions }),
  z.strictObject({ ...remote, kind: z.literal('azure-content-safety'), ...azureOptions }),
  z.strictObject({ ...remote, kind: z.literal('model-armor'), ...modelArmorOptions }),
  z.strictObject({ ...remote, kind: z.literal('lakera'), ...lakeraOptions }),
  z.strictObject({ ...remote, kind: z.literal('presidio'), ...presidioOptions }),
]);

/** Options of one check, with their defaults. */
export type CheckOptions = z.output<typeof checkOptions>;

/** Options of the plugin. */
export const guardOptions = z.strictObject({
  /** Checks, in the order in which they run. See the guide on guards. */
  checks: z.array(checkOptions).max(200).default([]),
  /** Handling of calls that no check can read: realtime sessions, embeddings of tokens. Default: `refuse`. */
  uncovered: z.enum(['allow', 'refuse']).default('refuse'),
  alerts: z
    .strictObject({
      /** Minimum interval between alerts of one check, in milliseconds. Alerts in between are counted. */
      every: z.int().min(0).default(60_000),
      /** URL that receives each alert as JSON, beside the log. */
      url: secretUrl(z.url()).optional(),
      /** Secret that signs alerts, like the option `secret` of a webhook. */
      secret: secret(z.string().min(8)).optional(),
    })
    .default({ every: 60_000 }),
});

/** Options of the plugin, with their defaults. */
export type GuardOptions = z.output<typeof guardOptions>;
