/** Rules for the fields that people set of a key. */
import { z } from 'zod';
import { isAddressRange } from '../../model/addresses.ts';

const limit = z.int('must be a whole number').min(1, 'must be at least 1').max(1e12, 'is too large');

/** Schema of one budget of a key. */
export const budgetField = z.strictObject({
  unit: z.enum(['micro-dollar', 'token'], 'must be micro-dollar or token'),
  period: z.enum(['day', 'month', 'total'], 'must be day, month or total'),
  amount: z
    .int('must be a whole number: micro-dollars or tokens')
    .min(0, 'must not be negative')
    .max(1e15, 'is too large'),
});

/** Schemas of the fields that people set of a key: the rules of the admin API and of the command line. */
export const apiKeyFields = {
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
    .array(budgetField)
    .max(6, 'must have at most 6 entries')
    .refine(
      (budgets) => new Set(budgets.map(({ unit, period }) => `${unit} ${period}`)).size === budgets.length,
      'must not limit the same unit twice for one period',
    ),
  requestsPerMinute: limit,
  tokensPerMinute: limit,
  concurrency: limit,
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
  team: z.string('must be the id of a team').max(100, 'is too long'),
  member: z.string('must be the id of a member or service account').max(100, 'is too long'),
} as const;

const { expiresAt: _expires, team: _team, member: _member, ...shared } = apiKeyFields;

/** Schemas of the fields that people set of an owner of keys. */
export const ownerFields = {
  ...shared,
  models: apiKeyFields.models.max(50, 'must have at most 50 entries'),
  organisation: z.string('must be the id of an organisation').max(100, 'is too long'),
} as const;
