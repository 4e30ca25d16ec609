/** A field that takes one owner: it searches on the server while a name is typed, because there may be thousands. */
import { useQuery } from '@tanstack/react-query';
import { useId, useState, type KeyboardEvent } from 'react';
import type { OwnerView } from '../../../admin/schemas/index.ts';
import { api } from './api.ts';
import { Field } from './fields.tsx';
import { Icon } from './icons.tsx';
import { kindNames } from './owner-names.ts';

type Kind = OwnerView['kind'];

/** Number of owners that are offered. */
const offered = 8;

/** Takes an owner of some kinds; `value` is its id, empty for none. */
export function OwnerPicker({
  label,
  kinds,
  value,
  problem,
  hint,
  placeholder = 'None',
  onChange,
}: {
  readonly label: string;
  readonly kinds: readonly [Kind, ...Kind[]];
  readonly value: string;
  readonly problem?: string | undefined;
  readonly hint?: string;
  readonly placeholder?: string;
  readonly onChange: (id: string, name: string) => void;
}) {
  const list = useId();
  const [text, setText] = useState<string>();
  const [active, setActive] = useState(0);
  const chosen = useQuery({
    queryKey: ['owners', 'one', value],
    queryFn: () => api.owner(value),
    enabled: value !== '',
    retry: false,
  });
  const found = useQuery({
    queryKey: ['owners', 'offered', kinds, text ?? ''],
    queryFn: async () => {
      const pages = await Promise.all(
        kinds.map((kind) => api.owners({ kind, search: text?.trim(), limit: offered })),
      );
      return pages.flatMap(({ owners }) => owners).slice(0, offered);
    },
    enabled: text !== undefined,
  });
  const options = text === undefined ? [] : (found.data ?? []);
  const choose = (owner: OwnerView | undefined): void => {
    setText(undefined);
    onChange(owner?.id ?? '', owner?.name ?? '');
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
  const name = value === '' ? '' : (chosen.data?.name ?? value);
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
            value={text ?? name}
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
          <ul id={list} role="listbox" aria-label={label} hidden={options.length === 0}>
            {options.map((owner, index) => (
              <li
                key={owner.id}
                id={`${list}-${index}`}
                role="option"
                aria-selected={index === active}
                // Before the field loses the focus, which would take the list away.
                onMouseDown={(event) => {
                  event.preventDefault();
                  choose(owner);
                }}
              >
                {owner.name}
                {kinds.length > 1 && <span className="sub">{kindNames[owner.kind].one}</span>}
              </li>
            ))}
          </ul>
          {text !== undefined && found.data?.length === 0 && (
            <span className="hint" role="status">
              No {kinds.map((kind) => kindNames[kind].one.toLowerCase()).join(' or ')} has this in its name.
            </span>
          )}
        </div>
      )}
    </Field>
  );
}
