/** The form in which keys and owners are stored, so that gateways of older versions refuse keys that they would overspend. */
import type { ApiKey } from '../../sdk/api-key.ts';
import type { Owner } from '../../sdk/owner.ts';

type Stored = Pick<ApiKey | Owner, 'budgets' | 'pricing' | 'endUserBudget'>;

/**
 * Returns a record as it is stored. Gateways of the version before know no owners. Of keys they drop members that they do not know: they would
 * serve end users without a budget, or count days of UTC. They take budgets for a list and refuse a record with anything else there, so that the list stands in an object.
 * Periods that they do not know they refuse anyway.
 */
export function toStored(record: Stored): unknown {
  const { budgets, pricing, endUserBudget } = record;
  const isNew =
    pricing !== undefined ||
    endUserBudget !== undefined ||
    budgets?.some(({ timeZone }) => timeZone !== undefined) === true;
  return isNew ? { ...record, budgets: { list: budgets ?? null } } : record;
}

/** Returns what {@link toStored} was given, of a value as it was read. */
export function fromStored(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || !('budgets' in value)) return value;
  const { budgets, ...rest } = value;
  if (typeof budgets !== 'object' || budgets === null || !('list' in budgets)) return value;
  return budgets.list === null ? rest : { ...rest, budgets: budgets.list };
}
