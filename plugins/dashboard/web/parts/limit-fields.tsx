/** Form fields of the limits that API keys and owners have. */
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { api } from './api.ts';
import { BudgetFields } from './budget-fields.tsx';
import { Field } from './fields.tsx';
import { split, type LimitsDraft, type Problems } from './limits-draft.ts';

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
      <BudgetFields
        budgets={draft.budgets}
        problem={problems.budgets}
        onChange={(budgets) => onChange({ budgets })}
      />
      <BudgetFields
        forEndUsers
        budgets={draft.endUserBudget}
        problem={problems.endUserBudget}
        onChange={(endUserBudget) => onChange({ endUserBudget })}
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
  const chosen = split(value, '\n');
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
              onChange={({ target }) => onChange([...chosen, target.value].join('\n'))}
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
