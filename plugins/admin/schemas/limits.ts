/** Schemas of the limits that keys and their owners have. */
import { z } from 'zod';
import { apiKeyFields, budgetField, endUserBudgetField, ownerFields } from 'sluice/internal';
import { count, time } from './values.ts';

type Fields = Pick<
  typeof apiKeyFields,
  | 'note'
  | 'models'
  | 'budgets'
  | 'endUserBudget'
  | 'requestsPerMinute'
  | 'tokensPerMinute'
  | 'concurrency'
  | 'addresses'
>;

const newLimits = (fields: Fields) => ({
  note: fields.note.exactOptional(),
  models: fields.models.exactOptional().describe('exact names and patterns with *'),
  budgets: fields.budgets.exactOptional(),
  endUserBudget: fields.endUserBudget.exactOptional().describe('budget of each end user'),
  requestsPerMinute: fields.requestsPerMinute.exactOptional(),
  tokensPerMinute: fields.tokensPerMinute.exactOptional(),
  concurrency: fields.concurrency.exactOptional(),
  addresses: fields.addresses.exactOptional().describe('IP addresses and CIDR ranges'),
});

const changedLimits = (fields: Fields) => ({
  note: fields.note.nullable().exactOptional(),
  models: fields.models.nullable().exactOptional(),
  budgets: fields.budgets.nullable().exactOptional(),
  endUserBudget: fields.endUserBudget.nullable().exactOptional(),
  requestsPerMinute: fields.requestsPerMinute.nullable().exactOptional(),
  tokensPerMinute: fields.tokensPerMinute.nullable().exactOptional(),
  concurrency: fields.concurrency.nullable().exactOptional(),
  addresses: fields.addresses.nullable().exactOptional(),
});

/** Limits of a new key or owner, with a note for people. An absent limit means no limit. */
export const newKeyLimits = newLimits(apiKeyFields);
export const newOwnerLimits = newLimits(ownerFields);

/** Limits to change; null removes a limit. */
export const changedKeyLimits = changedLimits(apiKeyFields);
export const changedOwnerLimits = changedLimits(ownerFields);

/** A budget with the spent and reserved amounts of its current period. */
export const budgetState = z.object({
  unit: budgetField.shape.unit,
  period: budgetField.shape.period,
  amount: count,
  hours: z.number().optional().describe('length of the window in hours, for the period hours'),
  timeZone: z.string().optional().describe('time zone in which days, weeks and months begin; absent for UTC'),
  since: time.describe('begin of the period or window; 0 for total'),
  until: time.optional().describe('begin of the next period; absent for hours and total'),
  spent: count,
  reserved: count.describe('amount that running calls have reserved'),
});

/** Limits in responses. */
export const limitsView = {
  models: z.array(z.string()).optional(),
  budgets: z.array(budgetState),
  endUserBudget: endUserBudgetField.optional(),
  requestsPerMinute: count.optional(),
  tokensPerMinute: count.optional(),
  concurrency: count.optional(),
  addresses: z.array(z.string()).optional(),
};

/** Type of this schema, for the dashboard. */
export type BudgetStateView = z.output<typeof budgetState>;
