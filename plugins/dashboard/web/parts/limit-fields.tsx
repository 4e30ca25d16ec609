/** Form fields of the limits that API keys and owners have. */
import { useQuery } from '@tanstack/react-query';
import { useId, type ReactNode } from 'react';
import { api } from './api.ts';
import { Field } from './fields.tsx';
import { Icon } from './icons.tsx';
import type { BudgetDraft, LimitsDraft, Problems } from './limits-draft.ts';

/** Models, budgets, rates and addresses. `beside` stands next to the addresses. */
export function LimitFields({
  draft,
  problems,
  onChange,
  beside,
}: {
  readonly draft: LimitsDraft;
  readonly problems: Problems<LimitsDraft>;
  readonly onChange: (changes: Partial<LimitsDraft>) => void;
  readonly beside?: ReactNode;
}) {
  return (
    <>
      <Models value={draft.models} problem={problems.models} onChange={(models) => onChange({ models })} />
      <Budgets
        budgets={draft.budgets}
        problem={problems.budgets}
        onChange={(budgets) => onChange({ budgets })}
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
                onChange={({ target }) => onChange({ [name]: target.value })}
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
              onChange={({ target }) => onChange({ addresses: target.value })}
            />
          )}
        </Field>
        {beside}
      </div>
    </>
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
  const zones = useId();
  const change = (id: number, changes: Partial<BudgetDraft>): void =>
    onChange(budgets.map((budget) => (budget.id === id ? { ...budget, ...changes } : budget)));
  const add = (): void => {
    const id = Math.max(-1, ...budgets.map((budget) => budget.id)) + 1;
    onChange([
      ...budgets,
      { id, amount: '', unit: 'micro-dollar', period: 'month', hours: '5', timeZone: '' },
    ]);
  };
  return (
    <fieldset>
      <legend>Budgets</legend>
      {budgets.map(({ id, amount, unit, period, hours, timeZone }, index) => (
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
            <option value="hours">in rolling hours</option>
            <option value="day">per day</option>
            <option value="week">per week</option>
            <option value="month">per month</option>
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
          {period === 'hours' && (
            <input
              aria-label={`Hours of budget ${index + 1}`}
              inputMode="numeric"
              autoComplete="off"
              placeholder="hours, 1 to 168"
              value={hours}
              onChange={({ target }) => change(id, { hours: target.value })}
            />
          )}
          {period !== 'hours' && period !== 'total' && (
            <input
              aria-label={`Time zone of budget ${index + 1}`}
              list={zones}
              autoComplete="off"
              placeholder="UTC"
              value={timeZone}
              onChange={({ target }) => change(id, { timeZone: target.value })}
            />
          )}
        </div>
      ))}
      <datalist id={zones}>
        {Intl.supportedValuesOf('timeZone').map((zone) => (
          <option key={zone} value={zone} />
        ))}
      </datalist>
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
