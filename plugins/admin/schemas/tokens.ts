/** Schemas of the admin endpoints for tokens of the admin API. */
import { z } from 'zod';
import { apiKeyFields, maxScopes, tokenDays } from 'sluice/internal';
import { scopes } from '../access/needs.ts';
import { time } from './values.ts';

const scope = z.enum(scopes, 'is no scope');
const role = z.enum(['admin', 'auditor'], 'must be admin or auditor');

/** The fields of a new token; its name and scopes are required. */
export const newToken = z.strictObject({
  name: apiKeyFields.name,
  scopes: z
    .array(scope)
    .min(1, 'must not be empty')
    .max(maxScopes, `must have at most ${maxScopes} entries`)
    .describe('what the token may be used for; write includes read'),
  role: role.default('admin').describe('an auditor changes nothing, whatever its scopes'),
  organisation: z
    .string('must be the id of an organisation')
    .max(100, 'is too long')
    .exactOptional()
    .describe('the id of the organisation to which the token is restricted'),
  days: z
    .int('must be a whole number')
    .min(1, 'must be at least 1')
    .max(tokenDays.longest, `must be at most ${tokenDays.longest}`)
    .exactOptional()
    .describe(
      `for how many days it works; by default ${tokenDays.default}, unless the operator has set another number`,
    ),
});

/** A token as people see it: never its value. */
export const token = z.object({
  id: z.string(),
  name: z.string(),
  suffix: z.string().describe('the last characters of the value'),
  role,
  scopes: z.array(z.string()),
  organisation: z.string().optional(),
  createdBy: z.object({ kind: z.string(), id: z.string(), name: z.string() }),
  createdAt: time,
  expiresAt: time,
  state: z.enum(['valid', 'expired']),
  lastUsedAt: time.optional().describe('to within a few minutes'),
});

/** All tokens, newest first; at most 1,000. */
export const tokenList = z.object({ tokens: z.array(token) });

/** A token with its value, which is shown this once. */
export const tokenWithValue = z.object({
  token,
  value: z.string().describe('the value: it cannot be shown again'),
});

/** The types of what stands above, as a page takes them. */
export type NewToken = z.input<typeof newToken>;
export type TokenView = z.output<typeof token>;
export type TokenList = z.output<typeof tokenList>;
export type TokenWithValue = z.output<typeof tokenWithValue>;
