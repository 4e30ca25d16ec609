/** Schemas of the admin endpoints for run-time configuration. */
import { z } from 'zod';
import { entryKinds, runtimeLimits } from 'sluice/internal';
import { channelTestResult } from './channels.ts';
import { entryProblem } from './failure.ts';
import { count, jsonObject, number, text, time } from './values.ts';

const kind = z.enum(entryKinds);

const name = z
  .string()
  .min(1, 'must not be empty')
  .max(runtimeLimits.nameLength, `must be at most ${runtimeLimits.nameLength} characters`)
  .regex(/^[^\p{C}]+$/u, 'must not have control characters')
  .describe(
    'name of the entry: the id of a channel, an alias, the model or pattern of a price, the id of a key or owner with model access (* for all), or plugin.option',
  );

const value = z
  .unknown()
  .refine((given) => given !== undefined, 'is missing')
  .describe(
    'channel: { type, options } with the options as in the config file. alias: the model. price: a row of prices. access: allowed models, as names and patterns. plugin: the value of the option. A secret is shown as { secret: true, last4, setAt }; if that is sent back, the secret is unchanged. It can be { env: "NAME" } or { file: "/path" } if the config file lists them.',
  );

const version = z.int().min(1).describe('version that is changed; 412 if the entry was changed since');

/** Option to wait until a change is applied. */
export const configWait = z.strictObject({
  wait: z
    .enum(['true', 'false'])
    .default('true')
    .describe('true: responds when this gateway has applied the change, or after 30 seconds'),
});

/** An entry of the configuration. */
export const configEntry = z.object({
  id: z.string().describe('kind:name'),
  kind,
  name: z.string(),
  origin: z.enum(['file', 'run-time']).describe('file: read-only here, and changed in gateway.config.ts'),
  state: z
    .enum(['active', 'disabled', 'shadowed', 'inactive', 'refused'])
    .describe(
      'shadowed: the config file has an entry of the same name, which takes precedence; inactive: its plugin is off; refused: it is invalid, see `reason`',
    ),
  reason: z.string().optional(),
  problem: entryProblem.optional().describe('the reason, with the option that it concerns'),
  place: z.string().optional().describe('location of an entry of the config file'),
  value: z.unknown().optional().describe('absent if the stored value cannot be decrypted'),
  version: count.optional(),
  createdAt: time.optional(),
  updatedAt: time.optional(),
});

/** Filter and page of entries. */
export const configQuery = z.strictObject({
  kind: kind.exactOptional(),
  origin: z.enum(['file', 'run-time']).exactOptional(),
  search: text.exactOptional().describe('part of a name, case-insensitive'),
  limit: number.min(1, 'must be at least 1').max(500, 'must be at most 500').default(100),
  after: z.string().max(300).exactOptional().describe('cursor from the previous page'),
});

/** A page of entries: those of the file, then the run-time channels in their order, then all others by name. */
export const configPage = z.object({
  entries: z.array(configEntry),
  next: z.string().optional().describe('cursor of the next page; absent on the last'),
  revision: count.describe('number of changes so far'),
  running: count.describe('revision that this process runs'),
  enabled: z.boolean().describe('false: the config file does not allow changes at run time'),
});

/** A new entry. */
export const newConfigEntry = z.strictObject({ kind, name, value, enabled: z.boolean().exactOptional() });

/** A change of an entry. */
export const configEntryChange = z.strictObject({
  version,
  value: value.exactOptional(),
  enabled: z.boolean().exactOptional(),
});

/** A switch of an entry. */
export const configEntryVersion = z.strictObject({ version });

/** Version of the entry to delete. */
export const configDeleteQuery = z.strictObject({
  version: number.min(1, 'must be at least 1'),
  ...configWait.shape,
});

const applied = z
  .object({ ok: z.boolean(), problems: z.array(z.string()) })
  .optional()
  .describe(
    'result of applying the change on this gateway; absent if it is still running, or if the request does not wait',
  );

/** Result of a change. */
export const configChanged = z.object({
  entry: configEntry
    .optional()
    .describe('the entry after the change; absent if it was deleted, or if several were changed'),
  revision: count,
  applied,
});

/** An order of all run-time channels. */
export const configOrder = z.strictObject({
  names: z.array(name).max(runtimeLimits.channels),
  revision: count.describe('revision on which the order is based'),
});

/** A channel that is tried without being stored. */
export const configTest = z.strictObject({ name, value, model: text.exactOptional() });

/** Result of the trial. */
export const configTestResult = channelTestResult;

/** The kinds of channels, by name. */
export const channelTypes = z.object({ types: z.array(z.string()) });

/** A JSON Schema for a form. */
export const configForm = z.object({ name: z.string(), schema: jsonObject });

/** A JSON Schema for the form of a channel. */
export const channelFormView = configForm.extend({
  own: z.array(z.string()).describe('names of the options of this kind beside those of all channels'),
});

/** JSON Schemas of the options of plugins that may be set at run time. */
export const configForms = z.object({
  forms: z.array(configForm),
  price: jsonObject.describe('JSON Schema of a price'),
  kinds: z.array(kind).describe('kinds of entries that can be created with the enabled plugins'),
});

/** Page of the history. */
export const configHistoryQuery = z.strictObject({
  limit: number.min(1, 'must be at least 1').max(100, 'must be at most 100').default(50),
  before: number.exactOptional().describe('revision of the last record of the previous page'),
});

/** A page of the history, newest first. */
export const configHistory = z.object({
  records: z.array(
    z.object({
      revision: count,
      at: time,
      actor: z.string(),
      action: z.enum(['create', 'update', 'enable', 'disable', 'delete', 'reorder', 'undo']),
      changes: z.array(
        z.object({
          id: z.string(),
          before: z.unknown().optional(),
          after: z.unknown().optional(),
          changed: z.array(z.string()).describe('paths of the value that differ'),
        }),
      ),
      order: z.object({ before: z.array(z.string()), after: z.array(z.string()) }).optional(),
    }),
  ),
  next: count.optional(),
});

/** Types of these schemas, for the dashboard. */
export type ConfigEntryView = z.output<typeof configEntry>;
export type ConfigPage = z.output<typeof configPage>;
export type ConfigForm = z.output<typeof configForm>;
export type ChannelFormView = z.output<typeof channelFormView>;
export type ConfigForms = z.output<typeof configForms>;
export type ConfigChanged = z.output<typeof configChanged>;
export type NewConfigEntry = z.output<typeof newConfigEntry>;
export type ConfigHistory = z.output<typeof configHistory>;
