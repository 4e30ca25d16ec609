/** Schemas of the admin endpoints for tokens of the admin API. */
import { z } from 'zod';
import { apiKeyFields, maxScopes, tokenDays } from 'sluice/internal';
import { scopes } from '../access/needs.ts';
import { time } from './values.ts';

const scope = z.enum(scopes, 'is no scope');
const role = z.enum(['admin', 'auditor'], 'must be admin or auditor');

/** Fields of a new token. Its name and scopes are required. */
export const newToken = z.strictObject({
  name: apiKeyFields.name,
  scopes: z
    .array(scope)
    .min(1, 'must not be empty')
    .max(maxScopes, `must have at most ${maxScopes} entries`)
    .describe('scopes of the token; write includes read'),
  role: role
    .default('admin')
    .describe('role of the token. An auditor cannot change anything, regardless of its scopes'),
  organisation: z
    .string('must be the id of an organisation')
    .max(100, 'is too long')
    .exactOptional()
    .describe('id of the organisation to which the token is restricted'),
  days: z
    .int('must be a whole number')
    .min(1, 'must be at least 1')
    .max(tokenDays.longest, `must be at most ${tokenDays.longest}`)
    .exactOptional()
    .describe(`lifetime in days. Default: ${tokenDays.default}, or the number that the operator has set`),
});

/** A token without its value. */
export const token = z.object({
  id: z.string(),
  name: z.string(),
  suffix: z.string().describe('last characters of the value'),
  role,
  scopes: z.array(z.string()),
  organisation: z.string().optional(),
  createdBy: z.object({ kind: z.string(), id: z.string(), name: z.string() }),
  createdAt: time,
  expiresAt: time,
  state: z.enum(['valid', 'expired']),
  lastUsedAt: time.optional().describe('time of the last use, accurate to a few minutes'),
});

/** All tokens, newest first; at most 1,000. */
export const tokenList = z.object({ tokens: z.array(token) });

/** A token with its value, which is shown only once. */
export const tokenWithValue = z.object({
  token,
  value: z.string().describe('value of the token; it cannot be shown again'),
});

/** Types of these schemas, for the dashboard. */
export type NewToken = z.input<typeof newToken>;
export type TokenView = z.output<typeof token>;
export type TokenList = z.output<typeof tokenList>;
export type TokenWithValue = z.output<typeof tokenWithValue>;
