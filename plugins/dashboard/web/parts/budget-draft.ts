/** Budgets while they are typed, and the values that they stand for. */
import type { KeyView, NewKey } from '../../../admin/schemas/index.ts';
import { amountForm, readAmount } from './number-text.ts';

type Budget = NonNullable<NewKey['budgets']>[number];

/** A budget of each end user, as the admin API shows and takes it. */
export type EndUserBudget = NonNullable<KeyView['endUserBudget']>;

/** A budget while it is typed. */
export interface BudgetDraft {
  readonly id: number;
  /** Dollars or tokens, as typed. */
  readonly amount: string;
  readonly unit: Budget['unit'];
  readonly period: Budget['period'];
  /** Length of the window of the period `hours`, as typed. */
  readonly hours: string;
  /** Name of the time zone; empty for UTC. */
  readonly timeZone: string;
}

/** A budget with further members of its view. */
type SomeBudget = Pick<Budget, 'unit' | 'period' | 'amount'> & {
  readonly [Member in 'hours' | 'timeZone']?: Budget[Member] | undefined;
};

/** Returns budgets as they stand in the fields. */
export function draftsOf(budgets: readonly SomeBudget[]): readonly BudgetDraft[] {
  return budgets.map(({ amount, unit, period, hours, timeZone }, id) => ({
    id,
    amount: unit === 'token' ? String(amount) : String(amount / 1e6),
    unit,
    period,
    hours: hours === undefined ? '' : String(hours),
    timeZone: timeZone ?? '',
  }));
}

/** Returns a budget with the members that its period has, in one order. */
export function budgetOf({ unit, period, hours, timeZone, amount }: SomeBudget): Budget {
  return {
    unit,
    period,
    ...(period === 'hours' && hours !== undefined && { hours }),
    ...(period !== 'hours' && period !== 'total' && timeZone !== undefined && { timeZone }),
    amount,
  };
}

/** Reads the fields. The problem is what cannot be sent at all; the gateway checks the rest. */
export function readBudgets(drafts: readonly BudgetDraft[]): {
  readonly budgets: readonly Budget[];
  readonly problem: string | undefined;
} {
  let problem: string | undefined;
  const budgets = drafts.map(({ amount, unit, period, hours, timeZone }) => {
    const number = readAmount(amount) ?? Number.NaN;
    if (Number.isNaN(number)) problem = `A budget needs an amount of 0 or more, ${amountForm}.`;
    const length = Number(hours);
    if (period === 'hours' && !(Number.isInteger(length) && length >= 1 && length <= 168))
      problem = 'A budget by rolling hours needs a whole number of 1 to 168 hours.';
    return budgetOf({
      unit,
      period,
      hours: length,
      timeZone: timeZone.trim() === '' ? undefined : timeZone.trim(),
      amount: unit === 'token' ? number : Math.round(number * 1e6),
    });
  });
  return { budgets, problem };
}
