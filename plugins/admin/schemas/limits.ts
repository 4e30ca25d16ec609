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
  endUserBudget: fields.endUserBudget.exactOptional().describe('the budget that each end user has by itself'),
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

/** Limits of a new key or owner, with a note for people. An absent limit means that there is none. */
export const newKeyLimits = newLimits(apiKeyFields);
export const newOwnerLimits = newLimits(ownerFields);

/** Limits to change; null takes one away. */
export const changedKeyLimits = changedLimits(apiKeyFields);
export const changedOwnerLimits = changedLimits(ownerFields);

/** A budget with what is spent and claimed in its present period. */
export const budgetState = z.object({
  unit: budgetField.shape.unit,
  period: budgetField.shape.period,
  amount: count,
  hours: z.number().optional().describe('length of the window of the period hours'),
  timeZone: z.string().optional().describe('where days, weeks and months begin; absent for UTC'),
  since: time.describe('when the period or the window began; 0 for total'),
  until: time.optional().describe('when the next period begins; absent for hours and total'),
  spent: count,
  reserved: count.describe('claimed by calls that run'),
});

/** Limits as people see them. */
export const limitsView = {
  models: z.array(z.string()).optional(),
  budgets: z.array(budgetState),
  endUserBudget: endUserBudgetField.optional(),
  requestsPerMinute: count.optional(),
  tokensPerMinute: count.optional(),
  concurrency: count.optional(),
  addresses: z.array(z.string()).optional(),
};

/** The type of what stands above, as a page takes it. */
export type BudgetStateView = z.output<typeof budgetState>;
