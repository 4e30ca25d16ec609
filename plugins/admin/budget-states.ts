/** Budgets with what is spent and reserved of them, as the admin API shows them. */
import type { HeldBudget } from 'sluice';
import type { InternalTools } from 'sluice/internal';
import type { BudgetStateView } from './schemas/index.ts';

/**
 * Returns how budgets stand. What gateways hold ready for calls to come is left out: it is given back when it is wanted, so that nobody has to
 * know of it. `keyId`: the key whose budgets those without an owner are.
 */
export async function budgetStates(
  keyId: string,
  budgets: readonly HeldBudget[],
  ledger: InternalTools['ledger'],
): Promise<BudgetStateView[]> {
  if (budgets.length === 0) return [];
  const states = await ledger.states(keyId, budgets);
  return states.map(({ unit, period, amount, hours, timeZone, since, until, spent, reserved }) => ({
    unit,
    period,
    amount,
    ...(hours === undefined ? {} : { hours }),
    ...(timeZone === undefined ? {} : { timeZone }),
    since,
    ...(until === undefined ? {} : { until }),
    spent,
    reserved,
  }));
}
