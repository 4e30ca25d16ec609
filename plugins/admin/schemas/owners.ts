/** Schemas of the admin endpoints for owners of API keys. */
import { z } from 'zod';
import { ownerFields } from 'sluice/internal';
import { changedOwnerLimits, limitsView, newOwnerLimits } from './limits.ts';
import { page, searched, time } from './values.ts';

const fields = ownerFields;
const kind = z.enum(['organisation', 'team', 'member', 'service-account']);

/** Fields of a new owner. Only kind and name are required. */
export const newOwner = z.strictObject({
  kind,
  name: fields.name,
  organisation: fields.organisation.exactOptional().describe('id of the organisation of the owner'),
  ...newOwnerLimits,
  pricing: fields.pricing
    .exactOptional()
    .describe(
      'price rule of a team or organisation: charge to its budgets, and those of its keys, in place of the cost',
    ),
  enabled: z.boolean().exactOptional(),
});

/** Fields to change; null removes a limit or the organisation. */
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
  version: z.string().describe('version for the header if-match of a change'),
  kind,
  name: z.string(),
  note: z.string().optional(),
  organisation: z.string().optional(),
  ...limitsView,
  pricing: fields.pricing.optional(),
  enabled: z.boolean(),
  createdAt: time,
});

/** Filter and page of owners. */
export const ownersQuery = z.strictObject({
  kind: kind.exactOptional(),
  organisation: z.string().max(100).exactOptional().describe('id of an organisation: lists only its owners'),
  search: searched.describe('part of a name, note or id, case-insensitive'),
  ...page,
});

/** A page of owners, newest first. */
export const ownerPage = z.object({
  owners: z.array(owner),
  next: z.string().optional().describe('cursor of the next page; absent on the last'),
});

/** Types of these schemas, for the dashboard. */
export type NewOwner = z.input<typeof newOwner>;
export type OwnerChanges = z.input<typeof ownerChanges>;
export type OwnerPage = z.output<typeof ownerPage>;
export type OwnerView = z.output<typeof owner>;
