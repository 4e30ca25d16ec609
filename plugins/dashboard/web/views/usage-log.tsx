import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useEffect, useMemo, useState } from 'react';
import type { KeyView, UsageRecordView } from '../../../admin/schemas/index.ts';
import { api, queryOf, type UsageWish } from '../parts/api.ts';
import { Formats, Status } from '../parts/badges.tsx';
import { DataTable, type Column } from '../parts/data-table.tsx';
import { Field } from '../parts/fields.tsx';
import { Icon } from '../parts/icons.tsx';
import { changeQuery, usePlace } from '../parts/router.ts';
import { Await, Empty } from '../parts/states.tsx';
import { count, duration, money, when } from '../parts/text.ts';
import { CallDetail } from './call-detail.tsx';

const hour = 3_600_000;
const ranges: Readonly<Record<string, { readonly title: string; readonly length: number }>> = {
  '1h': { title: 'Last hour', length: hour },
  '24h': { title: 'Last 24 hours', length: 24 * hour },
  '7d': { title: 'Last 7 days', length: 168 * hour },
  '30d': { title: 'Last 30 days', length: 720 * hour },
};
const narrowing = ['keyId', 'model', 'channel', 'format', 'operation', 'outcome', 'status'] as const;
const formats = ['chat-completions', 'messages', 'generate-content', 'responses', 'text-completions'];

/** The filter that the address holds. `now` moves only when somebody asks again, so that pages fit together. */
function wishOf(query: URLSearchParams, now: number): UsageWish {
  const entries = narrowing.map((name) => [name, query.get(name) ?? undefined] as const);
  const range = ranges[query.get('range') ?? ''];
  const time = (name: string): string | undefined => {
    const value = Date.parse(query.get(name) ?? '');
    return Number.isNaN(value) ? undefined : String(value);
  };
  return {
    ...Object.fromEntries(entries),
    since: range === undefined ? time('from') : String(now - range.length),
    ...(range === undefined && { until: time('to') }),
  };
}

const columnsFor = (keys: readonly KeyView[]): readonly Column<UsageRecordView>[] => {
  const names = new Map(keys.map(({ id, name }) => [id, name]));
  return [
    { id: 'status', title: 'Status', show: ({ status, code }) => <Status status={status} code={code} /> },
    { id: 'at', title: 'Time', show: ({ at }) => <span className="nowrap">{when(at)}</span> },
    {
      id: 'key',
      title: 'API key',
      show: ({ keyId }) => (
        <span className="truncate" title={keyId}>
          {keyId === undefined ? '–' : (names.get(keyId) ?? keyId)}
        </span>
      ),
    },
    {
      id: 'model',
      title: 'Model',
      show: ({ model, operation, code }) => (
        <>
          <span className="truncate" title={model}>
            {model || '–'}
          </span>
          {code !== undefined ? (
            <span className="sub bad-text">{code}</span>
          ) : (
            operation !== 'chat' && <span className="sub">{operation}</span>
          )}
        </>
      ),
    },
    {
      id: 'channel',
      title: 'Channel',
      show: ({ channel }) => <span className="nowrap">{channel ?? '–'}</span>,
    },
    {
      id: 'format',
      title: 'Format',
      show: (call) => <Formats call={call} />,
    },
    {
      id: 'tokens',
      title: 'Tokens',
      kind: 'number',
      show: ({ input, output, estimated }) => (
        <span className="nowrap" title={estimated === true ? 'Counted by the gateway itself' : undefined}>
          {estimated === true && '≈ '}
          {count(input)} → {count(output)}
        </span>
      ),
    },
    { id: 'cost', title: 'Cost', kind: 'number', show: ({ microDollars }) => money(microDollars) },
    {
      id: 'ms',
      title: 'Duration',
      kind: 'number',
      show: ({ ms, firstMs }) => (
        <>
          <span className="nowrap">{duration(ms)}</span>
          {firstMs !== undefined && <span className="sub nowrap">first {duration(firstMs)}</span>}
        </>
      ),
    },
  ];
};

/** Every call, newest first, narrowed by what the address says. */
export function UsageLog() {
  const { query } = usePlace();
  const [now, setNow] = useState(() => Date.now());
  const wish = useMemo(() => wishOf(query, now), [query, now]);
  const call = query.get('call');
  const usage = useInfiniteQuery({
    queryKey: ['usage', wish],
    queryFn: ({ pageParam }) => api.usage(wish, pageParam),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next,
    placeholderData: keepPreviousData,
  });
  const keys = useQuery({ queryKey: ['keys'], queryFn: api.keys });
  const columns = useMemo(() => columnsFor(keys.data?.keys ?? []), [keys.data]);
  const narrowed = [...query.keys()].some((name) => name !== 'call');
  return (
    <>
      <header>
        <h1>Usage log</h1>
        <div className="actions">
          <button
            type="button"
            className="button"
            disabled={usage.isFetching}
            onClick={() => {
              if (ranges[query.get('range') ?? ''] === undefined) void usage.refetch();
              else setNow(Date.now());
            }}
          >
            Refresh
          </button>
          <a className="button" href={`/api/admin/usage.csv${queryOf(wish)}`} download>
            <Icon name="download" />
            CSV
          </a>
        </div>
      </header>
      <div className="card">
        <Filters query={query} keys={keys.data?.keys ?? []} narrowed={narrowed} />
        <Await query={usage} what="the usage log">
          {({ pages }) => {
            const records = pages.flatMap((page) => page.records);
            return records.length === 0 ? (
              <Empty title={narrowed ? 'No call fits this filter' : 'No calls yet'}>
                {narrowed ? (
                  <a href="#/usage">Take the filter away</a>
                ) : (
                  <p>Every call is recorded here with its tokens, cost and timings.</p>
                )}
              </Empty>
            ) : (
              <>
                <DataTable
                  label="Calls"
                  columns={columns}
                  rows={records}
                  rowId={({ id }) => id}
                  sortable={false}
                  onOpen={({ id }) => changeQuery({ call: id })}
                />
                <div className="table-foot">
                  {count(records.length)} {records.length === 1 ? 'call' : 'calls'}
                  {usage.hasNextPage && (
                    <button
                      type="button"
                      className="button small"
                      disabled={usage.isFetchingNextPage}
                      onClick={() => void usage.fetchNextPage()}
                    >
                      {usage.isFetchingNextPage ? 'Loading…' : 'Show more'}
                    </button>
                  )}
                </div>
              </>
            );
          }}
        </Await>
      </div>
      {call !== null && (
        <CallDetail id={call} keys={keys.data?.keys ?? []} onClose={() => changeQuery({ call: undefined })} />
      )}
    </>
  );
}

function Filters({
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
