/** Schemas of the admin endpoints for API keys. */
import { z } from 'zod';
import { apiKeyFields } from 'sluice/internal';
import { changedKeyLimits, limitsView, newKeyLimits } from './limits.ts';
import { count, page, searched, time } from './values.ts';

const fields = apiKeyFields;

/** Fields of a new key; only the name is required. An absent limit means no limit. */
export const newKey = z.strictObject({
  name: fields.name,
  ...newKeyLimits,
  tags: fields.tags.exactOptional().describe('tags by which usage is attributed'),
  callTags: fields.callTags.exactOptional().describe('true: calls can add tags in x-sluice-tags'),
  expiresAt: fields.expiresAt.exactOptional(),
  team: fields.team.exactOptional().describe('id of the team of the key'),
  member: fields.member.exactOptional().describe('id of the member or service account of the key'),
});

/** Fields to change; null removes a limit. */
export const keyChanges = z.strictObject({
  name: fields.name.exactOptional(),
  ...changedKeyLimits,
  tags: fields.tags.nullable().exactOptional(),
  callTags: fields.callTags.nullable().exactOptional(),
  expiresAt: fields.expiresAt.nullable().exactOptional(),
  team: fields.team.nullable().exactOptional(),
  member: fields.member.nullable().exactOptional(),
});

/** Options of a key rotation: how long the old secret stays valid. */
export const keyRotation = z.strictObject({
  graceSeconds: z
    .int('must be a whole number')
    .min(0, 'must not be negative')
    .max(30 * 86_400, 'must be at most 2592000, which is 30 days')
    .default(0)
    .describe('seconds for which the old secret stays valid; an even older one becomes invalid at once'),
});

/** A key without its secret. */
export const key = z.object({
  id: z.string(),
  version: z.string().describe('version for the header if-match of a change'),
  name: z.string(),
  note: z.string().optional(),
  prefix: z.string().describe('first characters of the secret'),
  suffix: z.string().describe('last characters of the secret'),
  state: z.enum(['valid', 'disabled', 'expired']),
  ...limitsView,
  tags: z.array(z.string()).optional(),
  callTags: z.boolean().optional(),
  expiresAt: time.optional(),
  team: z.string().optional(),
  member: z.string().optional(),
  teamName: z.string().optional().describe('name of the team; absent if it was deleted'),
  memberName: z
    .string()
    .optional()
    .describe('name of the member or service account; absent if it was deleted'),
  enabled: z.boolean(),
  createdAt: time,
  lastUsedAt: time.optional().describe('time of the last use, accurate to about a minute'),
  oldSecret: z
    .object({
      prefix: z.string(),
      suffix: z.string(),
      until: time.describe('time at which it becomes invalid'),
      lastUsedAt: time
        .optional()
        .describe('time of the last use since the rotation, accurate to about a minute'),
    })
    .optional()
    .describe('previous secret, while it is valid after a rotation'),
  spent: z
    .object({ since: time, calls: count, microDollars: count })
    .optional()
    .describe('with spend: cost of its calls at the provider in the last 30 days (UTC), with today'),
});

/** Filter, order and page of keys. */
export const keysQuery = z.strictObject({
  owner: z
    .string()
    .min(1, 'must not be empty')
    .max(100, 'must be at most 100 characters')
    .exactOptional()
    .describe('id of a team, member or service account: lists only its keys'),
  ...page,
  search: searched.describe(
    'part of a name, note or id, case-insensitive; or the first characters of a secret, at most 7. A search for one or two characters reads 25,000 keys per page, so that a page can be empty and still have a cursor',
  ),
  spend: z
    .enum(['true', 'false'], 'must be true or false')
    .default('false')
    .describe('true: adds spent to keys'),
  sort: z
    .enum(['created', 'spend'], 'must be created or spend')
    .default('created')
    .describe(
      'Order: newest, or highest spend of the last 30 days first. With spend, there is one page of keys that were used in that time, and search is not supported, because the daily sums of all keys are compared.',
    ),
});

/** A page of keys, in the requested order. */
export const keyPage = z.object({
  keys: z.array(key),
  next: z.string().optional().describe('cursor of the next page; absent on the last'),
});

/** A key after a change. Warnings are sentences about values that are allowed but look like a mistake. */
export const changedKey = z.object({ key, warnings: z.array(z.string()) });

/** A key with its secret, which is shown only once. */
export const keyWithValue = z.object({
  key,
  value: z.string().describe('secret of the key; it cannot be shown again'),
  warnings: z.array(z.string()),
});

/** Maximum number of keys that one request changes. */
export const maxKeysAtOnce = 100;

/** A change of several keys. */
export const keysChange = z.strictObject({
  action: z.enum(['enable', 'disable', 'delete', 'move']),
  ids: z
    .array(z.string().min(1, 'must not be empty').max(100, 'must be at most 100 characters'))
    .min(1, 'must not be empty')
    .max(maxKeysAtOnce, `must have at most ${maxKeysAtOnce} ids`),
  team: z
    .string()
    .max(100, 'must be at most 100 characters')
    .nullable()
    .exactOptional()
    .describe('with move: id of the new team; null for none'),
});

/** Result of a change of several keys. Each key succeeds or fails independently. */
export const keysChanged = z.object({
  changed: z.array(z.string()).describe('ids of the keys that were changed'),
  failed: z.array(z.object({ id: z.string(), message: z.string() })),
});

/** Types of these schemas, for the dashboard. */
export type NewKey = z.input<typeof newKey>;
export type KeyChanges = z.input<typeof keyChanges>;
export type KeyView = z.output<typeof key>;
export type KeyPage = z.output<typeof keyPage>;
export type ChangedKey = z.output<typeof changedKey>;
export type KeyWithValue = z.output<typeof keyWithValue>;
export type KeysChange = z.input<typeof keysChange>;
export type KeysChanged = z.output<typeof keysChanged>;
