/** A field that takes one of many things: it searches on the server while a name is typed. */
import { useQuery } from '@tanstack/react-query';
import { useId, useState, type KeyboardEvent } from 'react';
import { Field } from './fields.tsx';
import { Icon } from './icons.tsx';

/** Number of things that are offered. */
export const offered = 8;

/** One thing that can be taken. */
export interface Choice {
  readonly id: string;
  readonly name: string;
  /** Further words, such as its kind. */
  readonly note?: string | undefined;
}

/** Properties of a picker that its users set. */
export interface PickerProps {
  readonly label: string;
  readonly value: string;
  readonly problem?: string | undefined;
  readonly hint?: string;
  readonly placeholder?: string;
  readonly onChange: (id: string, name: string) => void;
}

type Search = (text: string) => Promise<readonly Choice[]>;

/** State of a picker: what was typed, what was found, and which of that Enter takes. */
function usePicker(queryKey: readonly unknown[], search: Search, onChange: PickerProps['onChange']) {
  const [text, setText] = useState<string>();
  const [active, setActive] = useState(0);
  const found = useQuery({
    queryKey: [...queryKey, text ?? ''],
    queryFn: () => search(text?.trim() ?? ''),
    enabled: text !== undefined,
  });
  const options = text === undefined ? [] : (found.data ?? []);
  const choose = (choice: Choice | undefined): void => {
    setText(undefined);
    onChange(choice?.id ?? '', choice?.name ?? '');
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      if (text === undefined) setText('');
      else setActive(Math.max(0, Math.min(options.length - 1, active + step)));
    } else if (event.key === 'Enter' && options[active] !== undefined) {
      event.preventDefault();
      choose(options[active]);
    } else if (event.key === 'Escape' && text !== undefined) {
      // The dialog around the field stays open.
      event.preventDefault();
      event.stopPropagation();
      setText(undefined);
    }
  };
  return { text, setText, active, setActive, found, options, choose, onKeyDown };
}

/** Takes one thing; `value` is its id, empty for none. `name` is that of the one that is taken, once it is known. */
export function SearchPicker({
  label,
  name,
  what,
  queryKey,
  search,
  value,
  problem,
  hint,
  placeholder = 'None',
  onChange,
}: PickerProps & {
  readonly name: string | undefined;
  /** Word for the things, for when none fits. */
  readonly what: string;
  readonly queryKey: readonly unknown[];
  readonly search: Search;
}) {
  const list = useId();
  const picker = usePicker(queryKey, search, onChange);
  const { text, setText, active, setActive, found, options, choose, onKeyDown } = picker;
  return (
    <Field label={label} hint={hint} problem={problem}>
      {(props) => (
        <div className="picker">
          <input
            {...props}
            role="combobox"
            aria-expanded={options.length > 0}
            aria-controls={list}
            aria-autocomplete="list"
            aria-activedescendant={options[active] === undefined ? undefined : `${list}-${active}`}
            autoComplete="off"
            placeholder={placeholder}
            maxLength={200}
            value={text ?? (value === '' ? '' : (name ?? value))}
            onChange={({ target }) => {
              setActive(0);
              setText(target.value);
            }}
            onClick={() => setText((typed) => typed ?? '')}
            onBlur={() => setText(undefined)}
            onKeyDown={onKeyDown}
          />
          {value !== '' && (
            <button
              type="button"
              className="button plain small"
              aria-label={`Clear ${label.toLowerCase()}`}
              onClick={() => choose(undefined)}
            >
              <Icon name="close" />
            </button>
          )}
          <Choices id={list} label={label} choices={options} active={active} onChoose={choose} />
          {text !== undefined && found.data?.length === 0 && (
            <span className="hint" role="status">
              No {what} has this in its name.
            </span>
          )}
        </div>
      )}
    </Field>
  );
}

/** Options below the field. */
function Choices({
  id,
  label,
  choices,
  active,
  onChoose,
}: {
  readonly id: string;
  readonly label: string;
  readonly choices: readonly Choice[];
  /** Index of the one that Enter takes. */
  readonly active: number;
  readonly onChoose: (choice: Choice) => void;
}) {
  return (
    <ul id={id} role="listbox" aria-label={label} hidden={choices.length === 0}>
      {choices.map((choice, index) => (
        <li
          key={choice.id}
          id={`${id}-${index}`}
          role="option"
          aria-selected={index === active}
          // Before the field loses the focus, which would take the list away.
          onMouseDown={(event) => {
            event.preventDefault();
            onChoose(choice);
          }}
        >
          {choice.name}
          {choice.note !== undefined && <span className="sub">{choice.note}</span>}
        </li>
      ))}
    </ul>
  );
}
