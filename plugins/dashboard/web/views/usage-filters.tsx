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
const formats = ['chat-completions', 'messages', 'generate-content', 'responses', 'text-completions'];

const numbers = [
  ['minSeconds', 'Min duration, s'],
  ['maxSeconds', 'Max duration, s'],
  ['minDollars', 'Min cost, $'],
  ['maxDollars', 'Max cost, $'],
] as const;
/** Filters that are folded away until one of them is used. */
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
            {(props) => (
              <input {...props} type="datetime-local" value={fieldTime(value(name))} onChange={set(name)} />
            )}
          </Field>
        ))}
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
        select(
          'Channel',
          'channel',
          'All',
          channels.data.channels.map(({ id }) => [id, id]),
        )
      )}
      {select('Outcome', 'outcome', 'All', [
        ['ok', 'Succeeded'],
        ['failed', 'Failed'],
        ['refused', 'Refused by the gateway'],
      ])}
      {select(
        'Status class',
        'statusClass',
        'All',
        [2, 3, 4, 5].map((digit) => [String(digit), `${digit}00–${digit}99`]),
      )}
      {select('Order', 'sort', 'Newest first', [
        ['duration', 'Longest first'],
        ['cost', 'Most expensive first'],
      ])}
      <details open={rarer.some((name) => value(name) !== '')}>
        <summary>More filters</summary>
        <div className="filters">
          {select(
            'Format',
            'format',
            'All',
            formats.map((name) => [name, name]),
          )}
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
