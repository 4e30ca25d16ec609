/** Fields of forms with their labels, hints and problems. */
import { useEffect, useId, useRef, type ReactNode } from 'react';

/** A label, whatever takes the value, and a hint or a problem that screen readers read with it. */
export function Field({
  label,
  hint,
  problem,
  children,
}: {
  readonly label: string;
  readonly hint?: ReactNode;
  readonly problem?: string | undefined;
  readonly children: (props: {
    readonly id: string;
    readonly 'aria-describedby'?: string;
    readonly 'aria-invalid'?: true;
  }) => ReactNode;
}) {
  const id = useId();
  const note = problem ?? hint;
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children({
        id,
        ...(note !== undefined && { 'aria-describedby': `${id}-note` }),
        ...(problem !== undefined && { 'aria-invalid': true as const }),
      })}
      {note !== undefined && (
        <span id={`${id}-note`} className={problem === undefined ? 'hint' : 'problem'}>
          {note}
        </span>
      )}
    </div>
  );
}

/** One of a few, side by side. */
export function Segments<T extends string>({
  label,
  options,
  value,
  onChange,
}: {
  readonly label: string;
  readonly options: readonly (readonly [T, string])[];
  readonly value: T;
  readonly onChange: (value: T) => void;
}) {
  const row = useRef<HTMLDivElement>(null);
  // On phones the row scrolls sideways: the chosen one comes into view.
  useEffect(() => {
    const box = row.current;
    const chosen = box?.querySelector<HTMLElement>('[aria-pressed="true"]');
    if (box === null || chosen == null) return;
    const start = chosen.offsetLeft - box.offsetLeft;
    if (start < box.scrollLeft || start + chosen.offsetWidth > box.scrollLeft + box.clientWidth)
      box.scrollLeft = start - (box.clientWidth - chosen.offsetWidth) / 2;
  }, [value]);
  return (
    <div className="segments" role="group" aria-label={label} ref={row}>
      {options.map(([option, text]) => (
        <button key={option} type="button" aria-pressed={option === value} onClick={() => onChange(option)}>
          {text}
        </button>
      ))}
    </div>
  );
}

/** A one-line text with a label. */
export function TextField({
  label,
  hint,
  problem,
  value,
  onChange,
  ...rest
}: {
  readonly label: string;
  readonly hint?: ReactNode;
  readonly problem?: string | undefined;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly autoFocus?: boolean;
  readonly autoComplete?: string;
  readonly type?: 'text' | 'email' | 'password' | 'datetime-local';
  readonly placeholder?: string;
  readonly inputMode?: 'numeric' | 'decimal';
  readonly className?: string;
}) {
  return (
    <Field label={label} hint={hint} problem={problem}>
      {(props) => (
        <input
          autoComplete="off"
          {...rest}
          {...props}
          value={value}
          onChange={({ target }) => onChange(target.value)}
        />
      )}
    </Field>
  );
}
