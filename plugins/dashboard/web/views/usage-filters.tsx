import { useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import type { KeyView } from '../../../admin/schemas/index.ts';
import { api } from '../parts/api.ts';
import { Field } from '../parts/fields.tsx';
import { changeQuery } from '../parts/router.ts';

const hour = 3_600_000;
/** Spans of time up to now, in milliseconds. */
export const ranges: Readonly<Record<string, { readonly title: string; readonly length: number }>> = {
  '1h': { title: 'Last hour', length: hour },
  '24h': { title: 'Last 24 hours', length: 24 * hour },
  '7d': { title: 'Last 7 days', length: 168 * hour },
  '30d': { title: 'Last 30 days', length: 720 * hour },
};
const formats = ['chat-completions', 'messages', 'generate-content', 'responses', 'text-completions'];

/** What narrows the usage log. It stands in the address. */
export function UsageFilters({
  query,
  keys,
  narrowed,
}: {
  readonly query: URLSearchParams;
  readonly keys: readonly KeyView[];
  readonly narrowed: boolean;
}) {
  const channels = useQuery({ queryKey: ['channels'], queryFn: api.channels });
  const models = useQuery({ queryKey: ['models'], queryFn: api.models });
  const value = (name: string): string => query.get(name) ?? '';
  const set = (name: string) => (event: { readonly target: { readonly value: string } }) =>
    changeQuery({ [name]: event.target.value }, 'replace');
  const range = value('range') || (value('from') || value('to') ? 'custom' : '');
  const select = (
    label: string,
    name: string,
    all: string,
    options: readonly (readonly [string, string])[],
  ) => (
    <Field label={label}>
      {(props) => (
        <select {...props} value={value(name)} onChange={set(name)}>
          <option value="">{all}</option>
          {value(name) !== '' && !options.some(([option]) => option === value(name)) && (
            <option value={value(name)}>{value(name)}</option>
          )}
          {options.map(([option, text]) => (
            <option key={option} value={option}>
              {text}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
  return (
    <div className="filters" role="search" aria-label="Filter">
      <Field label="Time">
        {(props) => (
          <select
            {...props}
            value={range}
            onChange={({ target }) =>
              changeQuery({ range: target.value, from: undefined, to: undefined }, 'replace')
            }
          >
            <option value="">All</option>
            {Object.entries(ranges).map(([name, { title }]) => (
              <option key={name} value={name}>
                {title}
              </option>
            ))}
            <option value="custom">From … to …</option>
          </select>
        )}
      </Field>
      {range === 'custom' &&
        (['from', 'to'] as const).map((name) => (
          <Field key={name} label={name === 'from' ? 'From' : 'To'}>
            {(props) => <input {...props} type="datetime-local" value={value(name)} onChange={set(name)} />}
          </Field>
        ))}
      {select(
        'API key',
        'keyId',
        'All',
        keys.map(({ id, name }) => [id, name]),
      )}
      <TextFilter
        label="Model"
        name="model"
        value={value('model')}
        options={models.data?.models.map(({ id }) => id) ?? []}
      />
      {select('Channel', 'channel', 'All', channels.data?.channels.map(({ id }) => [id, id]) ?? [])}
      {select(
        'Format',
        'format',
        'All',
        formats.map((name) => [name, name]),
      )}
      {select('Outcome', 'outcome', 'All', [
        ['ok', 'Succeeded'],
        ['failed', 'Failed'],
      ])}
      <TextFilter label="Status" name="status" value={value('status')} numeric />
      {narrowed && (
        <div className="field">
          <span className="label">&nbsp;</span>
          <a className="button" href="#/usage">
            Clear
          </a>
        </div>
      )}
    </div>
  );
}

/** Takes effect when typing pauses. */
function TextFilter({
  label,
  name,
  value,
  options = [],
  numeric = false,
}: {
  readonly label: string;
  readonly name: string;
  readonly value: string;
  readonly options?: readonly string[];
  readonly numeric?: boolean;
}) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    if (text === value) return undefined;
    const timer = setTimeout(() => changeQuery({ [name]: text.trim() }, 'replace'), 400);
    return () => clearTimeout(timer);
  }, [text, value, name]);
  return (
    <Field label={label}>
      {(props) => (
        <>
          <input
            {...props}
            value={text}
            placeholder="All"
            list={`${name}-options`}
            inputMode={numeric ? 'numeric' : 'text'}
            onChange={({ target }) => setText(numeric ? target.value.replaceAll(/\D/g, '') : target.value)}
          />
          <datalist id={`${name}-options`}>
            {options.map((option) => (
              <option key={option} value={option} />
            ))}
          </datalist>
        </>
      )}
    </Field>
  );
}
