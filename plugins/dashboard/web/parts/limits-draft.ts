/** Limits of API keys and owners while they are typed, and the values that they stand for. */
import type { BudgetStateView, NewKey } from '../../../admin/schemas/index.ts';
import { budgetOf, draftsOf, readBudgets, type BudgetDraft, type EndUserBudget } from './budget-draft.ts';

/** Name and limits while they are typed: texts as they stand in the fields. */
export interface LimitsDraft {
  readonly name: string;
  readonly note: string;
  /** Separated by spaces, commas or line ends; so are addresses. */
  readonly models: string;
  readonly addresses: string;
  readonly budgets: readonly BudgetDraft[];
  /** The budget of each end user: one, or none. */
  readonly endUserBudget: readonly BudgetDraft[];
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
  readonly endUserBudget?: EndUserBudget | undefined;
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
  | 'endUserBudget'
  | 'requestsPerMinute'
  | 'tokensPerMinute'
  | 'concurrency'
>;

/** Problems by the name of the field, and by the path of a value within one: `pricing.models.0.factor`. */
export type Problems<Draft> = { -readonly [Field in keyof Draft]?: string } & {
  [path: `${string}.${string}`]: string;
};

/** Returns the fields of a form with these limits, or with none. */
export function draftOfLimits(view: LimitsView | undefined): LimitsDraft {
  const text = (value: number | undefined): string => (value === undefined ? '' : String(value));
  return {
    name: view?.name ?? '',
    note: view?.note ?? '',
    models: view?.models?.join('\n') ?? '',
    addresses: view?.addresses?.join('\n') ?? '',
    budgets: draftsOf(view?.budgets ?? []),
    endUserBudget: draftsOf(view?.endUserBudget === undefined ? [] : [view.endUserBudget]),
    requestsPerMinute: text(view?.requestsPerMinute),
    tokensPerMinute: text(view?.tokensPerMinute),
    concurrency: text(view?.concurrency),
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
  const { budgets, problem } = readBudgets(draft.budgets);
  if (problem !== undefined) problems.budgets = problem;
  const each = readBudgets(draft.endUserBudget);
  if (each.problem !== undefined) problems.endUserBudget = each.problem;
  // The form does not offer the period `total` for it.
  const [endUserBudget] = each.budgets as readonly EndUserBudget[];
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
    ...(budgets.length > 0 && { budgets: [...budgets] }),
    ...(endUserBudget !== undefined && { endUserBudget }),
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
  'budgets',
  'endUserBudget',
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
  const { budgets, endUserBudget } = before;
  const plain = {
    ...before,
    budgets: budgets.length === 0 ? undefined : budgets.map(budgetOf),
    endUserBudget: endUserBudget && budgetOf(endUserBudget),
  };
  return Object.fromEntries(
    [...limitFields, ...more]
      .filter((field) => JSON.stringify(plain[field]) !== JSON.stringify(after[field]))
      .map((field) => [field, after[field] ?? null]),
  );
}

/** Returns the field that a `param` of the admin API names: `budgets[0].amount` is the field `budgets`. */
export function fieldOf<Draft extends object>(
  param: string | undefined,
  draft: Draft,
): (keyof Draft & string) | undefined {
  const name = param?.split(/[.[]/, 1)[0];
  return Object.keys(draft).find((field): field is keyof Draft & string => field === name);
}
