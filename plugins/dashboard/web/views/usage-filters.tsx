/** Filters and order of the usage log. */
import { useQuery } from '@tanstack/react-query';
import { api } from '../parts/api.ts';
import { Field } from '../parts/fields.tsx';
import { KeyPicker } from '../parts/key-picker.tsx';
import { OwnerPicker } from '../parts/owner-picker.tsx';
import { useMay } from '../parts/may.ts';
import { changeQuery } from '../parts/router.ts';
import { localTime } from '../parts/text.ts';
import { TextFilter } from '../parts/typed.tsx';

const hour = 3_600_000;
/** Spans of time up to now, in milliseconds. */
export const ranges: Readonly<Record<string, { readonly title: string; readonly length: number }>> = {
  '1h': { title: 'Last hour', length: hour },
  '24h': { title: 'Last 24 hours', length: 24 * hour },
  '7d': { title: 'Last 7 days', length: 168 * hour },
  '30d': { title: 'Last 30 days', length: 720 * hour },
};
const formats = ['chat-completions', 'messages', 'generate-content', 'responses', 'text-completions'].map(
  (name) => [name, name] as const,
);
const outcomes = [
  ['ok', 'Succeeded'],
  ['failed', 'Failed'],
  ['refused', 'Refused by the gateway'],
] as const;
const statusClasses = [2, 3, 4, 5].map((digit) => [String(digit), `${digit}00–${digit}99`] as const);
const orders = [
  ['duration', 'Longest first'],
  ['cost', 'Most expensive first'],
] as const;

const numbers = [
  ['minSeconds', 'Min duration, s'],
  ['maxSeconds', 'Max duration, s'],
  ['minDollars', 'Min cost, $'],
  ['maxDollars', 'Max cost, $'],
] as const;
const owners = [
  ['organisation', 'Organisation', ['organisation']],
  ['team', 'Team', ['team']],
  ['member', 'Member', ['member', 'service-account']],
] as const;
const rarer = [
  'format',
  'status',
  'tag',
  'endUser',
  ...owners.map(([name]) => name),
  ...numbers.map(([name]) => name),
];

/** Returns a time of the address as a field takes it: links have the zone with it, fields have none. */
function fieldTime(text: string): string {
  if (!text.endsWith('Z')) return text;
  const at = Date.parse(text);
  return Number.isNaN(at) ? '' : localTime(at);
}

/** Filters and order of the usage log. Their values are in the address. */
export function UsageFilters({
  query,
  keyName,
  narrowed,
}: {
  readonly query: URLSearchParams;
  /** Name of the key in the filter, from its calls: a key that was deleted cannot be asked for. */
  readonly keyName: string | undefined;
  readonly narrowed: boolean;
}) {
  const channels = useQuery({
    queryKey: ['channels'],
    queryFn: api.channels,
    enabled: useMay('listChannels'),
  });
  const models = useQuery({ queryKey: ['models'], queryFn: api.models, enabled: useMay('listModels') });
  const value = (name: string): string => query.get(name) ?? '';
  return (
    <div className="filters" role="search" aria-label="Filter">
      <TimeFilter value={value} />
      <KeyPicker
        label="API key"
        placeholder="All"
        value={value('keyId')}
        name={keyName}
        onChange={(id) => changeQuery({ keyId: id }, 'replace')}
      />
      <TextFilter
        label="Model"
        name="modelPart"
        placeholder="Any part of it"
        value={value('modelPart') || value('model')}
        replaces="model"
        options={models.data?.models.map(({ id }) => id) ?? []}
      />
      {channels.data === undefined ? (
        <TextFilter label="Channel" name="channel" value={value('channel')} />
      ) : (
        <Choice
          label="Channel"
          name="channel"
          value={value('channel')}
          options={channels.data.channels.map(({ id }) => [id, id])}
        />
      )}
      <Choice label="Outcome" name="outcome" value={value('outcome')} options={outcomes} />
      <Choice label="Status class" name="statusClass" value={value('statusClass')} options={statusClasses} />
      <Choice label="Order" name="sort" value={value('sort')} all="Newest first" options={orders} />
      <MoreFilters value={value} />
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

/** Value of a filter by its name in the address; empty for none. */
type Values = (name: string) => string;

/** A filter of known values. One that the address names besides is offered too. */
function Choice({
  label,
  name,
  value,
  all = 'All',
  options,
}: {
  readonly label: string;
  readonly name: string;
  readonly value: string;
  readonly all?: string;
  readonly options: readonly (readonly [string, string])[];
}) {
  return (
    <Field label={label}>
      {(props) => (
        <select
          {...props}
          value={value}
          onChange={({ target }) => changeQuery({ [name]: target.value }, 'replace')}
        >
          <option value="">{all}</option>
          {value !== '' && !options.some(([option]) => option === value) && (
            <option value={value}>{value}</option>
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
}

/** A span of time up to now, or from one time to another. */
function TimeFilter({ value }: { readonly value: Values }) {
  const range = value('range') || (value('from') || value('to') ? 'custom' : '');
  return (
    <>
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
            {(props) => (
              <input
                {...props}
                type="datetime-local"
                value={fieldTime(value(name))}
                onChange={({ target }) => changeQuery({ [name]: target.value }, 'replace')}
              />
            )}
          </Field>
        ))}
    </>
  );
}

/** Filters that are folded away until one of them is used. */
function MoreFilters({ value }: { readonly value: Values }) {
  return (
    <details open={rarer.some((name) => value(name) !== '')}>
      <summary>More filters</summary>
      <div className="filters">
        <Choice label="Format" name="format" value={value('format')} options={formats} />
        <TextFilter label="Status" name="status" value={value('status')} numeric="whole" />
        {owners.map(([name, label, kinds]) => (
          <OwnerPicker
            key={name}
            label={label}
            kinds={kinds}
            placeholder="All"
            value={value(name)}
            onChange={(id) => changeQuery({ [name]: id }, 'replace')}
          />
        ))}
        <TextFilter label="Tag" name="tag" value={value('tag')} />
        <TextFilter label="End user" name="endUser" value={value('endUser')} />
        {numbers.map(([name, label]) => (
          <TextFilter
            key={name}
            label={label}
            name={name}
            value={value(name)}
            numeric="decimal"
            placeholder="Any"
          />
        ))}
      </div>
    </details>
  );
}
