/** Form fields of budgets. */
import { useId } from 'react';
import type { BudgetDraft } from './budget-draft.ts';
import { Icon } from './icons.tsx';

/** Budgets one below the other; of end users one, which each has by itself. */
export function BudgetFields({
  budgets,
  forEndUsers = false,
  problem,
  onChange,
}: {
  readonly budgets: readonly BudgetDraft[];
  readonly forEndUsers?: boolean;
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
      <legend>{forEndUsers ? 'Budget of each end user' : 'Budgets'}</legend>
      {budgets.map(({ id, amount, unit, period, hours, timeZone }, index) => {
        const what = forEndUsers ? 'end-user budget' : `budget ${index + 1}`;
        return (
          <div key={id} className="budget-row">
            <input
              aria-label={`Amount of ${what}`}
              aria-invalid={problem === undefined ? undefined : true}
              inputMode="decimal"
              autoComplete="off"
              placeholder="amount"
              autoFocus={amount === ''}
              value={amount}
              onChange={({ target }) => change(id, { amount: target.value })}
            />
            <select
              aria-label={`Unit of ${what}`}
              value={unit}
              onChange={({ target }) => change(id, { unit: target.value as BudgetDraft['unit'] })}
            >
              <option value="micro-dollar">US dollars</option>
              <option value="token">tokens</option>
            </select>
            <select
              aria-label={`Period of ${what}`}
              value={period}
              onChange={({ target }) => change(id, { period: target.value as BudgetDraft['period'] })}
            >
              <option value="hours">in rolling hours</option>
              <option value="day">per day</option>
              <option value="week">per week</option>
              <option value="month">per month</option>
              {!forEndUsers && <option value="total">in total</option>}
            </select>
            <button
              type="button"
              className="button plain"
              aria-label={`Remove ${what}`}
              onClick={() => onChange(budgets.filter((budget) => budget.id !== id))}
            >
              <Icon name="close" />
            </button>
            {period === 'hours' && (
              <input
                aria-label={`Hours of ${what}`}
                inputMode="numeric"
                autoComplete="off"
                placeholder="hours, 1 to 168"
                value={hours}
                onChange={({ target }) => change(id, { hours: target.value })}
              />
            )}
            {period !== 'hours' && period !== 'total' && (
              <input
                aria-label={`Time zone of ${what}`}
                list={zones}
                autoComplete="off"
                placeholder="UTC"
                value={timeZone}
                onChange={({ target }) => change(id, { timeZone: target.value })}
              />
            )}
          </div>
        );
      })}
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
      {budgets.length < (forEndUsers ? 1 : 10) && (
        <div>
          <button type="button" className="button small" onClick={add}>
            <Icon name="plus" />
            {forEndUsers ? 'Add an end-user budget' : 'Add a budget'}
          </button>
        </div>
      )}
      {forEndUsers && (
        <span className="hint">For each end user that calls name. Calls that name none share one.</span>
      )}
    </fieldset>
  );
}
