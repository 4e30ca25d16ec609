/** Schemas of the admin endpoints for owners of API keys. */
import { z } from 'zod';
import { ownerFields } from 'sluice/internal';
import { changedOwnerLimits, limitsView, newOwnerLimits } from './limits.ts';
import { page, searched, time } from './values.ts';

const fields = ownerFields;
const kind = z.enum(['organisation', 'team', 'member', 'service-account']);

/** The fields of a new owner; only its kind and name are required. */
export const newOwner = z.strictObject({
  kind,
  name: fields.name,
  organisation: fields.organisation.exactOptional().describe('the id of the organisation that it belongs to'),
  ...newOwnerLimits,
  pricing: fields.pricing
    .exactOptional()
    .describe('what budgets of a team or organisation and of its keys are charged instead of the cost'),
  enabled: z.boolean().exactOptional(),
});

/** The fields to change; null takes a limit, or the organisation, away. */
export const ownerChanges = z.strictObject({
  name: fields.name.exactOptional(),
  organisation: fields.organisation.nullable().exactOptional(),
  ...changedOwnerLimits,
  pricing: fields.pricing.nullable().exactOptional(),
  enabled: z.boolean().exactOptional(),
});

/** An owner with the state of its budgets. */
export const owner = z.object({
  id: z.string(),
  version: z.string().describe('for the header if-match of a change'),
  kind,
  name: z.string(),
  note: z.string().optional(),
  organisation: z.string().optional(),
  ...limitsView,
  pricing: fields.pricing.optional(),
  enabled: z.boolean(),
  createdAt: time,
});

/** Which page of the owners is wanted. */
export const ownersQuery = z.strictObject({
  kind: kind.exactOptional(),
  organisation: z
    .string()
    .max(100)
    .exactOptional()
    .describe('the id of an organisation: those that belong to it'),
  search: searched.describe('part of a name, a note or an id, in upper or lower case'),
  ...page,
});

/** A page of owners, newest first. */
export const ownerPage = z.object({
  owners: z.array(owner),
  next: z.string().optional().describe('the cursor of the next page; absent on the last'),
});

/** The types of what stands above, as a page takes them. */
export type NewOwner = z.input<typeof newOwner>;
export type OwnerChanges = z.input<typeof ownerChanges>;
export type OwnerPage = z.output<typeof ownerPage>;
export type OwnerView = z.output<typeof owner>;
