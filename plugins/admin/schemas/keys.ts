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
  tags: fields.tags.exactOptional().describe('words by which usage is attributed'),
  callTags: fields.callTags
    .exactOptional()
    .describe('true where calls may bring further tags in x-sluice-tags'),
  expiresAt: fields.expiresAt.exactOptional(),
  team: fields.team.exactOptional().describe('the id of its team'),
  member: fields.member.exactOptional().describe('the id of its member or service account'),
});

/** The fields to change; null takes a limit away. */
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
    .describe('for how many seconds the old secret goes on working; an older one ends at once'),
});

/** A key as people see it: never its secret. */
export const key = z.object({
  id: z.string(),
  version: z.string().describe('for the header if-match of a change'),
  name: z.string(),
  note: z.string().optional(),
  prefix: z.string().describe('the first characters of the secret'),
  suffix: z.string().describe('the last characters of the secret'),
  state: z.enum(['valid', 'disabled', 'expired']),
  ...limitsView,
  tags: z.array(z.string()).optional(),
  callTags: z.boolean().optional(),
  expiresAt: time.optional(),
  team: z.string().optional(),
  member: z.string().optional(),
  teamName: z.string().optional().describe('absent for a team that was deleted'),
  memberName: z.string().optional().describe('absent for a member or service account that was deleted'),
  enabled: z.boolean(),
  createdAt: time,
  lastUsedAt: time.optional().describe('to within about a minute'),
  oldSecret: z
    .object({
      prefix: z.string(),
      suffix: z.string(),
      until: time.describe('when it stops working'),
      lastUsedAt: time.optional().describe('since the rotation, to within about a minute'),
    })
    .optional()
    .describe('the secret from before the last rotation, while it works'),
  spent: z
    .object({ since: time, calls: count, microDollars: count })
    .optional()
    .describe('with spend: what its calls cost the provider in the last 30 days, in UTC, today among them'),
});

/** Which page of the keys is wanted. */
export const keysQuery = z.strictObject({
  owner: z
    .string()
    .min(1, 'must not be empty')
    .max(100, 'must be at most 100 characters')
    .exactOptional()
    .describe('the id of a team, member or service account: its keys'),
  ...page,
  search: searched.describe(
    'part of a name, a note or an id, in upper or lower case; or the first characters of a secret, 7 at most. One or two characters are looked for in 25,000 keys a page: such a page may be empty and have a next one',
  ),
  spend: z
    .enum(['true', 'false'], 'must be true or false')
    .default('false')
    .describe('whether keys have spent'),
  sort: z
    .enum(['created', 'spend'], 'must be created or spend')
    .default('created')
    .describe(
      'Order: newest, or highest spend of the last 30 days first. By spend there is one page, of keys that were used in that time, and no search: the sums of days of all keys are compared.',
    ),
});

/** A page of keys, in the order that was asked for. */
export const keyPage = z.object({
  keys: z.array(key),
  next: z.string().optional().describe('the cursor of the next page; absent on the last'),
});

/** A key after a change. Warnings are sentences about what is allowed but looks like a mistake. */
export const changedKey = z.object({ key, warnings: z.array(z.string()) });

/** A key with its secret, which is shown this once. */
export const keyWithValue = z.object({
  key,
  value: z.string().describe('the secret: it cannot be shown again'),
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
    .describe('with move: the id of the new team; null for none'),
});

/** Result of a change of several keys: each is changed or not by itself. */
export const keysChanged = z.object({
  changed: z.array(z.string()).describe('the ids of the keys that were changed'),
  failed: z.array(z.object({ id: z.string(), message: z.string() })),
});

/** The types of what stands above, as a page takes them. */
export type NewKey = z.input<typeof newKey>;
export type KeyChanges = z.input<typeof keyChanges>;
export type KeyView = z.output<typeof key>;
export type KeyPage = z.output<typeof keyPage>;
export type ChangedKey = z.output<typeof changedKey>;
export type KeyWithValue = z.output<typeof keyWithValue>;
export type KeysChange = z.input<typeof keysChange>;
export type KeysChanged = z.output<typeof keysChanged>;
