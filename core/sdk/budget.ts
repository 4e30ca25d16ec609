/** Budgets of keys and of their owners. */

/** How much may be spent with a key in a period. Days and months are those of UTC. */
export interface Budget {
  readonly unit: 'micro-dollar' | 'token';
  readonly period: 'day' | 'month' | 'total';
  readonly amount: number;
}

/**
 * A budget that a call must fit in: of its key, or of an owner of the key, which is a member, a team or an organisation.
 *
 * @example
 * const ofTeam = key.budgets?.find(({ owner }) => owner?.name.startsWith('the team'));
 */
export interface HeldBudget extends Budget {
  /** Absent for a budget of the key. `name` is for sentences: `the team "research"`. */
  readonly owner?: { readonly id: string; readonly name: string };
}
