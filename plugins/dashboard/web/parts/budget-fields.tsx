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
      {budgets.map((budget, index) => (
        <BudgetRow
          key={budget.id}
          budget={budget}
          what={forEndUsers ? 'end-user budget' : `budget ${index + 1}`}
          zones={zones}
          hasTotal={!forEndUsers}
          isWrong={problem !== undefined}
          onChange={(changes) =>
            onChange(budgets.map((one) => (one.id === budget.id ? { ...one, ...changes } : one)))
          }
          onRemove={() => onChange(budgets.filter(({ id }) => id !== budget.id))}
        />
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

/** The fields of one budget. */
function BudgetRow({
  budget: { amount, unit, period, hours, timeZone },
  what,
  zones,
  hasTotal,
  isWrong,
  onChange,
  onRemove,
}: {
  readonly budget: BudgetDraft;
  /** Words for the budget in the names of its fields. */
  readonly what: string;
  /** Id of the list of time zones. */
  readonly zones: string;
  /** True where a budget may hold for all time. */
  readonly hasTotal: boolean;
  readonly isWrong: boolean;
  readonly onChange: (changes: Partial<BudgetDraft>) => void;
  readonly onRemove: () => void;
}) {
  return (
    <div className="budget-row">
      <input
        aria-label={`Amount of ${what}`}
        aria-invalid={isWrong ? true : undefined}
        inputMode="decimal"
        autoComplete="off"
        placeholder="amount"
        autoFocus={amount === ''}
        value={amount}
        onChange={({ target }) => onChange({ amount: target.value })}
      />
      <select
        aria-label={`Unit of ${what}`}
        value={unit}
        onChange={({ target }) => onChange({ unit: target.value as BudgetDraft['unit'] })}
      >
        <option value="micro-dollar">US dollars</option>
        <option value="token">tokens</option>
      </select>
      <select
        aria-label={`Period of ${what}`}
        value={period}
        onChange={({ target }) => onChange({ period: target.value as BudgetDraft['period'] })}
      >
        <option value="hours">in rolling hours</option>
        <option value="day">per day</option>
        <option value="week">per week</option>
        <option value="month">per month</option>
        {hasTotal && <option value="total">in total</option>}
      </select>
      <button type="button" className="button plain" aria-label={`Remove ${what}`} onClick={onRemove}>
        <Icon name="close" />
      </button>
      {period === 'hours' && (
        <input
          aria-label={`Hours of ${what}`}
          inputMode="numeric"
          autoComplete="off"
          placeholder="hours, 1 to 168"
          value={hours}
          onChange={({ target }) => onChange({ hours: target.value })}
        />
      )}
      {period !== 'hours' && period !== 'total' && (
        <input
          aria-label={`Time zone of ${what}`}
          list={zones}
          autoComplete="off"
          placeholder="UTC"
          value={timeZone}
          onChange={({ target }) => onChange({ timeZone: target.value })}
        />
      )}
    </div>
  );
}
