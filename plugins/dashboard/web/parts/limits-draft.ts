/** Limits of API keys and owners while they are typed, and the values that they stand for. */
import type { BudgetStateView, NewKey } from '../../../admin/schemas/index.ts';
import { draftsOf, readBudgets, type BudgetDraft, type EndUserBudget } from './budget-draft.ts';
import { readCount } from './number-text.ts';

/** Name and limits while they are typed: texts as they stand in the fields. */
export interface LimitsDraft {
  readonly name: string;
  readonly note: string;
  /** One a line: names may have spaces and commas. */
  readonly models: string;
  /** Separated by spaces, commas or line ends. */
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

/** Splits a text, and leaves out spaces around entries and empty entries. */
export const split = (text: string, separator: string | RegExp): string[] =>
  text
    .split(separator)
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');

/** Reads the fields. Empty ones are absent. Problems are what cannot be sent at all; the gateway checks the rest. */
export function readLimits(draft: LimitsDraft): {
  readonly limits: Limits;
  readonly problems: Problems<LimitsDraft>;
} {
  const problems: Problems<LimitsDraft> = {};
  const whole = (field: 'requestsPerMinute' | 'tokensPerMinute' | 'concurrency'): number | undefined => {
    if (draft[field].trim() === '') return undefined;
    const number = readCount(draft[field]) ?? 0;
    if (number < 1) problems[field] = 'must be a whole number of at least 1, such as 1,000';
    return number;
  };
  const name = draft.name.trim();
  if (name === '') problems.name = 'must not be empty';
  const { budgets, problem } = readBudgets(draft.budgets);
  if (problem !== undefined) problems.budgets = problem;
  const each = readBudgets(draft.endUserBudget);
  if (each.problem !== undefined) problems.endUserBudget = each.problem;
  // The form does not offer the period `total` for it.
  const [endUserBudget] = each.budgets as readonly EndUserBudget[];
  const models = split(draft.models, '\n');
  const addresses = split(draft.addresses, /[\s,]/);
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

/**
 * Returns the changed fields, including those of `more`; null removes a limit. `before`: values of the unchanged form. A stored value may
 * be more precise than its text in the form, such as the seconds of a time, and is kept until its text changes.
 */
export function changedFields<Values extends Limits>(
  before: Values,
  after: Values,
  more: readonly (keyof Values & string)[],
): Record<string, unknown> {
  return Object.fromEntries(
    [...limitFields, ...more]
      .filter((field) => JSON.stringify(before[field]) !== JSON.stringify(after[field]))
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
