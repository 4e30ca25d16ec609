import type { KeyChanges, KeyView, NewKey } from '../../../admin/schemas/index.ts';

/** A budget while it is typed. */
export interface BudgetDraft {
  readonly id: number;
  /** Dollars or tokens, as typed. */
  readonly amount: string;
  readonly unit: 'micro-dollar' | 'token';
  readonly period: 'hours' | 'day' | 'week' | 'month' | 'total';
  readonly hours?: number;
  readonly timeZone?: string;
}

/** A key while it is typed: texts as they stand in the fields. */
export interface KeyDraft {
  readonly name: string;
  readonly note: string;
  /** Separated by spaces, commas or line ends; so are addresses. */
  readonly models: string;
  readonly addresses: string;
  readonly budgets: readonly BudgetDraft[];
  readonly requestsPerMinute: string;
  readonly tokensPerMinute: string;
  readonly concurrency: string;
  /** As a field for date and time has it, in local time. */
  readonly expiresAt: string;
}

/** What is wrong, by the name of the field. */
export type Problems = { -readonly [Field in keyof KeyDraft]?: string };

/** A key, or nothing, as it stands in the form. */
export function draftOf(key: KeyView | undefined): KeyDraft {
  const text = (value: number | undefined): string => (value === undefined ? '' : String(value));
  return {
    name: key?.name ?? '',
    note: key?.note ?? '',
    models: key?.models?.join('\n') ?? '',
    addresses: key?.addresses?.join('\n') ?? '',
    budgets: (key?.budgets ?? []).map(({ amount, unit, period, hours, timeZone }, id) => ({
      id,
      amount: unit === 'token' ? String(amount) : String(amount / 1e6),
      unit,
      period,
      ...(hours !== undefined && { hours }),
      ...(timeZone !== undefined && { timeZone }),
    })),
    requestsPerMinute: text(key?.requestsPerMinute),
    tokensPerMinute: text(key?.tokensPerMinute),
    concurrency: text(key?.concurrency),
    expiresAt: key?.expiresAt === undefined ? '' : localTime(key.expiresAt),
  };
}

function localTime(at: number): string {
  const date = new Date(at);
  return new Date(at - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

const list = (text: string): string[] => text.split(/[\s,]+/).filter((entry) => entry !== '');

/** Fields that are empty are absent. Problems are what cannot be sent at all; the gateway judges the rest. */
export function readDraft(draft: KeyDraft): { readonly key: NewKey } | { readonly problems: Problems } {
  const problems: Problems = {};
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
    return {
      unit,
      period,
      ...(hours !== undefined && { hours }),
      ...(timeZone !== undefined && { timeZone }),
      amount: unit === 'token' ? number : Math.round(number * 1e6),
    };
  });
  const expiresAt = draft.expiresAt === '' ? undefined : new Date(draft.expiresAt).getTime();
  const models = list(draft.models);
  const addresses = list(draft.addresses);
  const note = draft.note.trim();
  const requestsPerMinute = whole('requestsPerMinute');
  const tokensPerMinute = whole('tokensPerMinute');
  const concurrency = whole('concurrency');
  if (Object.keys(problems).length > 0) return { problems };
  return {
    key: {
      name,
      ...(note !== '' && { note }),
      ...(models.length > 0 && { models }),
      ...(budgets.length > 0 && { budgets }),
      ...(requestsPerMinute !== undefined && { requestsPerMinute }),
      ...(tokensPerMinute !== undefined && { tokensPerMinute }),
      ...(concurrency !== undefined && { concurrency }),
      ...(addresses.length > 0 && { addresses }),
      ...(expiresAt !== undefined && { expiresAt }),
    },
  };
}

/** What differs from a key as it is; null takes a limit away. */
export function changesOf(before: KeyView, after: NewKey): KeyChanges {
  const fields = [
    'name',
    'note',
    'models',
    'requestsPerMinute',
    'tokensPerMinute',
    'concurrency',
    'addresses',
    'expiresAt',
  ] as const;
  const oldBudgets = before.budgets.map(({ unit, period, hours, timeZone, amount }) => ({
    unit,
    period,
    hours,
    timeZone,
    amount,
  }));
  const budgets = after.budgets ?? [];
  const changed = fields.filter((field) => JSON.stringify(before[field]) !== JSON.stringify(after[field]));
  return {
    ...Object.fromEntries(changed.map((field) => [field, after[field] ?? null])),
    ...(JSON.stringify(oldBudgets) !== JSON.stringify(budgets) && {
      budgets: budgets.length === 0 ? null : budgets,
    }),
  };
}

/** Whose field a `param` of the admin API means: `budgets[0].amount` is the field `budgets`. */
export function fieldOf(param: string | undefined): keyof KeyDraft | undefined {
  const name = param?.split(/[.[]/, 1)[0];
  return (Object.keys(draftOf(undefined)) as (keyof KeyDraft)[]).find((field) => field === name);
}
