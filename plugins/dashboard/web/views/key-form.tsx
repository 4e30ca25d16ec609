import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useId, useState, type FormEvent } from 'react';
import type { ChangedKey, KeyView, KeyWithValue, NewKey } from '../../../admin/schemas/index.ts';
import { api, ApiError } from '../parts/api.ts';
import { Dialog } from '../parts/dialog.tsx';
import { Field } from '../parts/fields.tsx';
import { Icon } from '../parts/icons.tsx';
import {
  changesOf,
  draftOf,
  fieldOf,
  readDraft,
  type BudgetDraft,
  type KeyDraft,
  type Problems,
} from '../parts/key-draft.ts';
import { say } from '../parts/toasts.tsx';

/** The form of a new key, or of one to change. */
export function KeyForm({
  apiKey,
  onClose,
  onMade,
}: {
  readonly apiKey: KeyView | undefined;
  readonly onClose: () => void;
  readonly onMade: (made: KeyWithValue) => void;
}) {
  const queries = useQueryClient();
  const form = useId();
  const [draft, setDraft] = useState(() => draftOf(apiKey));
  const [own, setOwn] = useState<Problems>({});
  const save = useMutation({
    mutationFn: (key: NewKey): Promise<KeyWithValue | ChangedKey> =>
      apiKey === undefined ? api.createKey(key) : api.updateKey(apiKey.id, changesOf(apiKey, key)),
    meta: { quiet: true },
    onSuccess: (answer) => {
      void queries.invalidateQueries({ queryKey: ['keys'] });
      onClose();
      if ('value' in answer) onMade(answer);
      else say([`${answer.key.name} is saved.`, ...answer.warnings].join(' '));
    },
  });
  const refused = save.error instanceof ApiError ? fieldOf(save.error.param) : undefined;
  const problems: Problems = { ...(refused !== undefined && { [refused]: save.error?.message }), ...own };
  const set = (changes: Partial<KeyDraft>): void => {
    setOwn({});
    if (save.isError) save.reset();
    setDraft({ ...draft, ...changes });
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const read = readDraft(draft);
    if ('problems' in read) setOwn(read.problems);
    else save.mutate(read.key);
  };
  return (
    <Dialog
      title={apiKey === undefined ? 'Add API key' : `Edit ${apiKey.name}`}
      onClose={onClose}
      bottom={
        <>
          <button type="button" className="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" form={form} className="button primary" disabled={save.isPending}>
            {apiKey === undefined ? 'Create key' : 'Save'}
          </button>
        </>
      }
    >
      <form id={form} className="stack" onSubmit={submit} noValidate>
        {save.error !== null && refused === undefined && (
          <p className="notice bad" role="alert">
            {save.error.message}
          </p>
        )}
        <Field label="Name" problem={problems.name}>
          {(props) => (
            <input
              {...props}
              autoFocus
              autoComplete="off"
              value={draft.name}
              onChange={({ target }) => set({ name: target.value })}
            />
          )}
        </Field>
        <Models value={draft.models} problem={problems.models} onChange={(models) => set({ models })} />
        <Budgets
          budgets={draft.budgets}
          problem={problems.budgets}
          onChange={(budgets) => set({ budgets })}
        />
        <div className="grid thirds">
          {(
            [
              ['requestsPerMinute', 'Calls per minute'],
              ['tokensPerMinute', 'Tokens per minute'],
              ['concurrency', 'Calls at a time'],
            ] as const
          ).map(([name, label]) => (
            <Field key={name} label={label} problem={problems[name]}>
              {(props) => (
                <input
                  {...props}
                  inputMode="numeric"
                  autoComplete="off"
                  placeholder="no limit"
                  value={draft[name]}
                  onChange={({ target }) => set({ [name]: target.value })}
                />
              )}
            </Field>
          ))}
        </div>
        <div className="grid halves">
          <Field
            label="Addresses"
            hint="IP addresses and ranges such as 192.0.2.0/24, one a line. Empty: all."
            problem={problems.addresses}
          >
            {(props) => (
              <textarea
                {...props}
                rows={3}
                className="mono"
                spellCheck={false}
                value={draft.addresses}
                onChange={({ target }) => set({ addresses: target.value })}
              />
            )}
          </Field>
          <div className="stack">
            <Field label="Expires" hint="Empty: never." problem={problems.expiresAt}>
              {(props) => (
                <input
                  {...props}
                  type="datetime-local"
                  value={draft.expiresAt}
                  onChange={({ target }) => set({ expiresAt: target.value })}
                />
              )}
            </Field>
          </div>
        </div>
        <Field label="Note" hint="For you: whose key this is, and what for." problem={problems.note}>
          {(props) => (
            <input
              {...props}
              autoComplete="off"
              value={draft.note}
              onChange={({ target }) => set({ note: target.value })}
            />
          )}
        </Field>
      </form>
    </Dialog>
  );
}

/** Names one a line, with those that there are at hand. */
function Models({
  value,
  problem,
  onChange,
}: {
  readonly value: string;
  readonly problem: string | undefined;
  readonly onChange: (value: string) => void;
}) {
  const models = useQuery({ queryKey: ['models'], queryFn: api.models });
  const chosen = value.split(/[\s,]+/);
  const offered = (models.data?.models ?? []).filter(({ id }) => !chosen.includes(id));
  return (
    <Field
      label="Models"
      hint="Names, and patterns with *, one a line. Empty: every model."
      problem={problem}
    >
      {(props) => (
        <>
          <textarea
            {...props}
            rows={2}
            className="mono"
            spellCheck={false}
            value={value}
            onChange={({ target }) => onChange(target.value)}
          />
          {offered.length > 0 && (
            <select
              aria-label="Add a model to the list"
              value=""
              onChange={({ target }) =>
                onChange([...chosen.filter((name) => name !== ''), target.value].join('\n'))
              }
            >
              <option value="">Add a model…</option>
              {offered.map(({ id }) => (
                <option key={id} value={id}>
                  {id}
                </option>
              ))}
            </select>
          )}
        </>
      )}
    </Field>
  );
}

function Budgets({
  budgets,
  problem,
  onChange,
}: {
  readonly budgets: readonly BudgetDraft[];
  readonly problem: string | undefined;
  readonly onChange: (budgets: readonly BudgetDraft[]) => void;
}) {
  const change = (id: number, changes: Partial<BudgetDraft>): void =>
    onChange(budgets.map((budget) => (budget.id === id ? { ...budget, ...changes } : budget)));
  const add = (): void => {
    const id = Math.max(-1, ...budgets.map((budget) => budget.id)) + 1;
    onChange([...budgets, { id, amount: '', unit: 'micro-dollar', period: 'month' }]);
  };
  return (
    <fieldset>
      <legend>Budgets</legend>
      {budgets.map(({ id, amount, unit, period }, index) => (
        <div key={id} className="budget-row">
          <input
            aria-label={`Amount of budget ${index + 1}`}
            aria-invalid={problem === undefined ? undefined : true}
            inputMode="decimal"
            autoComplete="off"
            placeholder="amount"
            autoFocus={amount === ''}
            value={amount}
            onChange={({ target }) => change(id, { amount: target.value })}
          />
          <select
            aria-label={`Unit of budget ${index + 1}`}
            value={unit}
            onChange={({ target }) => change(id, { unit: target.value as BudgetDraft['unit'] })}
          >
            <option value="micro-dollar">US dollars</option>
            <option value="token">tokens</option>
          </select>
          <select
            aria-label={`Period of budget ${index + 1}`}
            value={period}
            onChange={({ target }) => change(id, { period: target.value as BudgetDraft['period'] })}
          >
            <option value="day">per day (UTC)</option>
            <option value="month">per month (UTC)</option>
            <option value="total">in total</option>
          </select>
          <button
            type="button"
            className="button plain"
            aria-label={`Remove budget ${index + 1}`}
            onClick={() => onChange(budgets.filter((budget) => budget.id !== id))}
          >
            <Icon name="close" />
          </button>
        </div>
      ))}
      {problem !== undefined && (
        <span className="problem small bad-text" role="alert">
          {problem}
        </span>
      )}
      <div>
        <button type="button" className="button small" disabled={budgets.length >= 6} onClick={add}>
          <Icon name="plus" />
          Add a budget
        </button>
      </div>
    </fieldset>
  );
}
