/** Fields for searches and filters, which take effect when typing pauses. */
import { useEffect, useState } from 'react';
import { changeQuery } from './router.ts';
import { Field } from './fields.tsx';

/** Milliseconds without a key press after which a text takes effect. */
const pause = 400;

/** Returns a text and its setter. `onPause` is called with the text when typing pauses. */
function useTyped(value: string, onPause: (text: string) => void): readonly [string, (text: string) => void] {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    if (text.trim() === value) return undefined;
    const timer = setTimeout(() => onPause(text.trim()), pause);
    return () => clearTimeout(timer);
    // Not `onPause`: a new function for the same text starts no new pause.
  }, [text, value]);
  return [text, setText];
}

/** A search field without a visible label. */
export function SearchBox({
  label,
  hint,
  value,
  onChange,
}: {
  readonly label: string;
  readonly hint: string;
  readonly value: string;
  readonly onChange: (text: string) => void;
}) {
  const [text, setText] = useTyped(value, onChange);
  return (
    <input
      type="search"
      className="search"
      aria-label={label}
      placeholder={hint}
      maxLength={200}
      value={text}
      onChange={({ target }) => setText(target.value)}
    />
  );
}

/** Characters that a numeric filter drops. */
const dropped = { whole: /\D/g, decimal: /[^\d.]/g } as const;

/** A filter whose value is in the address. */
export function TextFilter({
  label,
  name,
  value,
  options,
  numeric,
  replaces,
  placeholder = 'All',
}: {
  readonly label: string;
  readonly name: string;
  readonly value: string;
  readonly options?: readonly string[];
  readonly numeric?: keyof typeof dropped;
  readonly placeholder?: string;
  /** Another filter of the address whose value is shown here until one types. */
  readonly replaces?: string;
}) {
  const [text, setText] = useTyped(value, (typed) =>
    changeQuery({ ...(replaces !== undefined && { [replaces]: undefined }), [name]: typed }, 'replace'),
  );
  return (
    <Field label={label}>
      {(props) => (
        <>
          <input
            {...props}
            value={text}
            placeholder={placeholder}
            maxLength={200}
            list={options === undefined ? undefined : `${name}-options`}
            inputMode={numeric === undefined ? 'text' : numeric === 'whole' ? 'numeric' : 'decimal'}
            onChange={({ target }) =>
              setText(numeric === undefined ? target.value : target.value.replaceAll(dropped[numeric], ''))
            }
          />
          {options !== undefined && (
            <datalist id={`${name}-options`}>
              {options.map((option) => (
                <option key={option} value={option} />
              ))}
            </datalist>
          )}
        </>
      )}
    </Field>
  );
}
