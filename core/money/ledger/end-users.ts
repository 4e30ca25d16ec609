/** Limits how many end users of a key or team have sums in one period, because clients choose their names. */
import { GatewayError } from '../../sdk/errors.ts';
import type { HeldBudget } from '../../sdk/budget.ts';
import { bucketOf, labelOf } from './windows.ts';

/** Maximum number of end users of one key or team in one period. */
export const maxEndUsers = 10_000;

const hour = 3_600_000;

/** An end user who is counted in a period that ends at `until`. */
export interface CountedEndUser {
  readonly scope: string;
  readonly until: number;
  readonly holder: string;
}

/** Returns the end users among the holders of budgets. Rolling windows are counted by spans of their length. */
export function endUsersIn(budgets: readonly HeldBudget[], now: number): readonly CountedEndUser[] {
  return budgets.flatMap((budget) => {
    const { owner, period, hours = 1 } = budget;
    if (owner?.scope === undefined) return [];
    const length = hours * hour;
    const until =
      period === 'hours' ? (Math.floor(now / length) + 2) * length : bucketOf(labelOf(budget), now).end;
    return [{ scope: owner.scope, until, holder: owner.id }];
  });
}

/** Returns the error for a call of one more end user. */
export function tooManyEndUsers(until: number, now: number, most: number): GatewayError {
  return new GatewayError(
    'insufficient_quota',
    `Calls of ${most.toLocaleString('en-US')} end users were made in this period, which is the maximum for a key or team with a budget for each end user.`,
    { retryAfter: Math.max(1, Math.ceil((until - now) / 1_000)) },
  );
}
