/** Limits of API keys and owners while they are typed, and the values that they stand for. */
import type { BudgetStateView, NewKey } from '../../../admin/schemas/index.ts';

type Budget = NonNullable<NewKey['budgets']>[number];

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

/** Name and limits while they are typed: texts as they stand in the fields. */
export interface LimitsDraft {
  readonly name: string;
  readonly note: string;
  /** Separated by spaces, commas or line ends; so are addresses. */
  readonly models: string;
  readonly addresses: string;
  readonly budgets: readonly BudgetDraft[];
  readonly requestsPerMinute: string;
  readonly tokensPerMinute: string;
  readonly concurrency: string;
}

/** Name and limits as the admin API shows them. */
export interface LimitsView {
  readonly name: string;
  readonly note?: string | undefined;
  readonly models?: readonly string[] | undefined;
  readonly addresses?: readonly string[] | undefined;
  readonly budgets: readonly BudgetStateView[];
  readonly requestsPerMinute?: number | undefined;
  readonly tokensPerMinute?: number | undefined;
  readonly concurrency?: number | undefined;
}

/** Name and limits as the admin API takes them. */
export type Limits = Pick<
  NewKey,
  | 'name'
  | 'note'
  | 'models'
  | 'addresses'
  | 'budgets'
  | 'requestsPerMinute'
  | 'tokensPerMinute'
  | 'concurrency'
>;

/** Problems by the name of the field. */
export type Problems<Draft> = { -readonly [Field in keyof Draft]?: string };

/** Returns the fields of a form with these limits, or with none. */
export function draftOfLimits(view: LimitsView | undefined): LimitsDraft {
  const text = (value: number | undefined): string => (value === undefined ? '' : String(value));
  return {
    name: view?.name ?? '',
    note: view?.note ?? '',
    models: view?.models?.join('\n') ?? '',
    addresses: view?.addresses?.join('\n') ?? '',
    budgets: (view?.budgets ?? []).map(({ amount, unit, period, hours, timeZone }, id) => ({
      id,
      amount: unit === 'token' ? String(amount) : String(amount / 1e6),
      unit,
      period,
      hours: text(hours),
      timeZone: timeZone ?? '',
    })),
    requestsPerMinute: text(view?.requestsPerMinute),
    tokensPerMinute: text(view?.tokensPerMinute),
    concurrency: text(view?.concurrency),
  };
}

/** Returns a budget with the members that its period has. */
function budgetOf({
  unit,
  period,
  hours,
  timeZone,
  amount,
}: {
  readonly [Member in 'unit' | 'period' | 'amount' | 'hours' | 'timeZone']?: Budget[Member] | undefined;
} & Pick<Budget, 'unit' | 'period' | 'amount'>): Budget {
  return {
    unit,
    period,
    ...(period === 'hours' && hours !== undefined && { hours }),
    ...(period !== 'hours' && period !== 'total' && timeZone !== undefined && { timeZone }),
    amount,
  };
}

/** Splits at spaces, commas and line ends. */
export const list = (text: string): string[] => text.split(/[\s,]+/).filter((entry) => entry !== '');

/** Reads the fields. Empty ones are absent. Problems are what cannot be sent at all; the gateway checks the rest. */
export function readLimits(draft: LimitsDraft): {
  readonly limits: Limits;
  readonly problems: Problems<LimitsDraft>;
} {
  const problems: Problems<LimitsDraft> = {};
  const whole = (field: 'requestsPerMinute' | 'tokensPerMinute' | 'concurrency'): number | undefined => {
    const text = draft[field].trim().replaceAll(/[\s,_]/g, '');
    if (text === '') return undefined;
    if (!/^\d+$/.test(text) || Number(text) < 1) problems[field] = 'must be a whole number of at least 1';
    return Number(text);
  };
  const name = draft.name.trim();
  if (name === '') problems.name = 'must not be empty';
  const budgets = draft.budgets.map(({ amount, unit, period, hours, timeZone }) => {
    const number = Number(amount.trim().replaceAll(/[\s,_$]/g, ''));
    if (amount.trim() === '' || !Number.isFinite(number) || number < 0)
      problems.budgets = 'need an amount of 0 or more';
    const length = Number(hours);
    if (period === 'hours' && !(Number.isInteger(length) && length >= 1 && length <= 168))
      problems.budgets = 'by rolling hours need a whole number of 1 to 168 hours';
    return budgetOf({
      unit,
      period,
      hours: length,
      timeZone: timeZone.trim() === '' ? undefined : timeZone.trim(),
      amount: unit === 'token' ? number : Math.round(number * 1e6),
    });
  });
  const models = list(draft.models);
  const addresses = list(draft.addresses);
  const note = draft.note.trim();
  const requestsPerMinute = whole('requestsPerMinute');
  const tokensPerMinute = whole('tokensPerMinute');
  const concurrency = whole('concurrency');
  const limits: Limits = {
    name,
    ...(note !== '' && { note }),
    ...(models.length > 0 && { models }),
    ...(budgets.length > 0 && { budgets }),
    ...(requestsPerMinute !== undefined && { requestsPerMinute }),
    ...(tokensPerMinute !== undefined && { tokensPerMinute }),
    ...(concurrency !== undefined && { concurrency }),
    ...(addresses.length > 0 && { addresses }),
  };
  return { limits, problems };
}

const limitFields = [
  'name',
  'note',
  'models',
  'requestsPerMinute',
  'tokensPerMinute',
  'concurrency',
  'addresses',
] as const;

/** Returns the fields that differ, `more` among them; null takes a limit away. */
export function changedFields<View extends LimitsView, After extends Limits>(
  before: View,
  after: After,
  more: readonly (keyof View & keyof After & string)[],
): Record<string, unknown> {
  const oldBudgets = before.budgets.map(budgetOf);
  const budgets = after.budgets ?? [];
  const changed = [...limitFields, ...more].filter(
    (field) => JSON.stringify(before[field]) !== JSON.stringify(after[field]),
  );
  return {
    ...Object.fromEntries(changed.map((field) => [field, after[field] ?? null])),
    ...(JSON.stringify(oldBudgets) !== JSON.stringify(budgets) && {
      budgets: budgets.length === 0 ? null : budgets,
    }),
  };
}

/** Returns the field that a `param` of the admin API names: `budgets[0].amount` is the field `budgets`. */
export function fieldOf<Draft extends object>(
  param: string | undefined,
  draft: Draft,
): (keyof Draft & string) | undefined {
  const name = param?.split(/[.[]/, 1)[0];
  return Object.keys(draft).find((field): field is keyof Draft & string => field === name);
}
