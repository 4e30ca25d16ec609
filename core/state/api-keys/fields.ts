/** Rules for the fields that people set of a key. */
import { z } from 'zod';
import { isAddressRange } from '../../model/addresses.ts';
import { isTimeZone } from '../../model/time-zones.ts';
import { rowSchema } from '../../settings/prices.ts';

const limit = z.int('must be a whole number').min(1, 'must be at least 1').max(1e12, 'is too large');

const periods = ['hours', 'day', 'week', 'month', 'total'] as const;

const budgetMembers = {
  unit: z.enum(['micro-dollar', 'token'], 'must be micro-dollar or token'),
  period: z.enum(periods, 'must be hours, day, week, month or total'),
  amount: z
    .int('must be a whole number: micro-dollars or tokens')
    .min(0, 'must not be negative')
    .max(1e15, 'is too large'),
  hours: z
    .int('must be a whole number')
    .min(1, 'must be at least 1')
    .max(168, 'must be at most 168')
    .exactOptional(),
  timeZone: z
    .string('must be a text')
    .max(64, 'is too long')
    .refine(isTimeZone, 'must be a time zone such as Europe/Berlin')
    .exactOptional(),
};

/** Schema of the members of one budget, without the rules that hold between them. */
export const budgetShape = z.strictObject(budgetMembers);

const hasHours = ({ period, hours }: { period: string; hours?: number | undefined }): boolean =>
  (period === 'hours') === (hours !== undefined);
const mayHaveZone = ({ period, timeZone }: { period: string; timeZone?: string | undefined }): boolean =>
  timeZone === undefined || (period !== 'hours' && period !== 'total');
const hoursRule = { path: ['hours'], error: 'belongs to the period hours, which needs it' };
const zoneRule = { path: ['timeZone'], error: 'belongs to the periods day, week and month' };

/** Schema of one budget of a key. */
export const budgetField = budgetShape.refine(hasHours, hoursRule).refine(mayHaveZone, zoneRule);

/** Schema of the budget of each end user. */
export const endUserBudgetField = z
  .strictObject({
    ...budgetMembers,
    period: z.enum(['hours', 'day', 'week', 'month'], 'must be hours, day, week or month'),
  })
  .refine(hasHours, hoursRule)
  .refine(mayHaveZone, zoneRule);

const factor = z.number('must be a number').min(0, 'must not be negative').max(1000, 'must be at most 1,000');

const modelPattern = z
  .string('must be a text')
  .trim()
  .min(1, 'must not be empty')
  .max(200, 'must be at most 200 characters');

/** Maximum length of the prices of models of one owner, as JSON: each process holds them all. */
const maxPrices = 50_000;

const isWithinLength = (models: unknown): boolean => JSON.stringify(models).length <= maxPrices;

const modelPrice = z
  .strictObject({
    model: modelPattern,
    factor: factor.exactOptional(),
    price: rowSchema
      .exactOptional()
      .describe('prices like a row of `prices` in the config, in dollars per million tokens'),
  })
  .refine((one) => (one.factor === undefined) !== (one.price === undefined), 'must have a factor or a price');

/** Schema of the price rule of a team or organisation. */
export const pricingField = z.strictObject({
  factor: factor.exactOptional(),
  models: z
    .array(modelPrice)
    .min(1, 'must not be empty')
    .max(200, 'must have at most 200 entries')
    .refine(isWithinLength, `must not be longer than ${maxPrices} characters as JSON`)
    .readonly()
    .exactOptional(),
});

/** Schema of the tags of a key. */
const tagsField = z
  .array(
    z
      .string('must be a text')
      .regex(
        /^[\p{L}\p{N}][\p{L}\p{N} _.:/@=+-]{0,63}$/u,
        'must be 1 to 64 letters, digits, spaces and _.:/@=+-',
      ),
  )
  .min(1, 'must not be empty')
  .max(20, 'must have at most 20 entries')
  .refine((tags) => new Set(tags).size === tags.length, 'must not name a tag twice');

/** Schemas of the fields that people set of a key: the rules of the admin API and of the command line. */
export const apiKeyFields = {
  name: z
    .string('must be a text')
    .trim()
    .min(1, 'must not be empty')
    .max(200, 'must be at most 200 characters'),
  note: z.string('must be a text').max(2000, 'must be at most 2000 characters'),
  models: z
    .array(modelPattern)
    .min(1, 'must not be empty: leave it out to allow every model')
    .max(200, 'must have at most 200 entries'),
  budgets: z
    .array(budgetField)
    .max(10, 'must have at most 10 entries')
    .refine(
      (budgets) =>
        new Set(budgets.map(({ unit, period, hours = '' }) => `${unit} ${period} ${hours}`)).size ===
        budgets.length,
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
  endUserBudget: endUserBudgetField,
  tags: tagsField,
  callTags: z.boolean('must be true or false'),
  expiresAt: z.int('must be milliseconds since 1970'),
  team: z.string('must be the id of a team').max(100, 'is too long'),
  member: z.string('must be the id of a member or service account').max(100, 'is too long'),
} as const;

const { expiresAt: _e, team: _t, member: _m, tags: _tags, callTags: _c, ...shared } = apiKeyFields;

/** Schemas of the fields that people set of an owner of keys. */
export const ownerFields = {
  ...shared,
  models: apiKeyFields.models.max(50, 'must have at most 50 entries'),
  organisation: z.string('must be the id of an organisation').max(100, 'is too long'),
  pricing: pricingField,
} as const;
