import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import type { KeyView, UsageRecordView } from '../../../admin/schemas/index.ts';
import { api, queryOf, type UsageWish } from '../parts/api.ts';
import { Formats, Status } from '../parts/badges.tsx';
import { DataTable, type Column } from '../parts/data-table.tsx';
import { Icon } from '../parts/icons.tsx';
import { changeQuery, usePlace } from '../parts/router.ts';
import { Await, Empty } from '../parts/states.tsx';
import { count, duration, money, when } from '../parts/text.ts';
import { CallDetail } from './call-detail.tsx';
import { ranges, UsageFilters } from './usage-filters.tsx';

const narrowing = ['keyId', 'model', 'channel', 'format', 'operation', 'outcome', 'status'] as const;
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
  const keys = useQuery({ queryKey: ['keys', 'all'], queryFn: api.allKeys });
  const columns = useMemo(() => columnsFor(keys.data ?? []), [keys.data]);
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
        <UsageFilters query={query} keys={keys.data ?? []} narrowed={narrowed} />
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
        <CallDetail id={call} keys={keys.data ?? []} onClose={() => changeQuery({ call: undefined })} />
      )}
    </>
  );
}
