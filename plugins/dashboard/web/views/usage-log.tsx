import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import type { UsageRecordView } from '../../../admin/schemas/index.ts';
import { api, queryOf, type UsageQuery } from '../parts/api.ts';
import { Breakable, Formats, Status } from '../parts/badges.tsx';
import { DataTable, type Column } from '../parts/data-table.tsx';
import { Icon } from '../parts/icons.tsx';
import { changeQuery, useRoute } from '../parts/router.ts';
import { GoOn, useSearch } from '../parts/search-on.tsx';
import { Await, Empty, More } from '../parts/states.tsx';
import { count, duration, exactly, money, when } from '../parts/text.ts';
import { SearchBox } from '../parts/typed.tsx';
import { CallDetail } from './call-detail.tsx';
import { ranges, UsageFilters } from './usage-filters.tsx';

const narrowing = [
  'keyId',
  'organisation',
  'team',
  'member',
  'tag',
  'endUser',
  'model',
  'modelPart',
  'channel',
  'format',
  'operation',
  'outcome',
  'status',
  'statusClass',
  'id',
] as const;
/** Records in a page by time, and in one by duration or cost, which costs the gateway more. */
const pageSize = '100';
const sortedPageSize = '500';
/** Filters by a number: their name in the address and in the API, and how many of the API's units are one of the page's. */
const numbers = [
  ['minSeconds', 'minMs', 1_000],
  ['maxSeconds', 'maxMs', 1_000],
  ['minDollars', 'minMicroDollars', 1_000_000],
  ['maxDollars', 'maxMicroDollars', 1_000_000],
] as const;

/** Returns the filter in the address. `now` changes only on a refresh, so that pages fit together. */
function usageQueryOf(query: URLSearchParams, now: number): UsageQuery {
  const entries = narrowing.map((name) => [name, query.get(name) ?? undefined] as const);
  const range = ranges[query.get('range') ?? ''];
  const time = (name: string): string | undefined => {
    const value = Date.parse(query.get(name) ?? '');
    return Number.isNaN(value) ? undefined : String(value);
  };
  const amount = (name: string, unit: number): string | undefined => {
    const value = Number.parseFloat(query.get(name) ?? '') * unit;
    return value >= 0 ? String(Math.min(Math.round(value), Number.MAX_SAFE_INTEGER)) : undefined;
  };
  return {
    ...Object.fromEntries(entries),
    ...Object.fromEntries(numbers.map(([name, member, unit]) => [member, amount(name, unit)])),
    since: range === undefined ? time('from') : String(now - range.length),
    ...(range === undefined && { until: time('to') }),
  };
}

const columns: readonly Column<UsageRecordView>[] = [
  { id: 'status', title: 'Status', show: ({ status, code }) => <Status status={status} code={code} /> },
  { id: 'at', title: 'Time', order: 'time', show: ({ at }) => <span className="time">{when(at)}</span> },
  {
    id: 'key',
    title: 'API key',
    wide: true,
    show: ({ keyId, keyName }) => (
      <span className="truncate" title={keyId}>
        {keyName ?? keyId ?? '–'}
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
          <span className="sub bad-text">
            <Breakable text={code} />
          </span>
        ) : (
          operation !== 'chat' && <span className="sub">{operation}</span>
        )}
      </>
    ),
  },
  {
    id: 'channel',
    title: 'Channel',
    wide: true,
    show: ({ channel }) => (
      <span className="truncate" title={channel}>
        {channel ?? '–'}
      </span>
    ),
  },
  {
    id: 'format',
    title: 'Format',
    wide: true,
    show: (call) => <Formats call={call} />,
  },
  {
    id: 'tokens',
    title: 'Tokens',
    wide: true,
    kind: 'number',
    show: ({ input, output, estimated }) => (
      <span className="nowrap" title={estimated === true ? 'Counted by the gateway itself' : undefined}>
        {estimated === true && '≈ '}
        {count(input)} → {count(output)}
      </span>
    ),
  },
  {
    id: 'cost',
    title: 'Cost',
    kind: 'number',
    order: 'cost',
    show: ({ microDollars }) => money(microDollars),
  },
  {
    id: 'ms',
    title: 'Duration',
    kind: 'number',
    order: 'duration',
    show: ({ ms, firstMs }) => (
      <>
        <span className="nowrap">{duration(ms)}</span>
        {firstMs !== undefined && <span className="sub nowrap wide">first {duration(firstMs)}</span>}
      </>
    ),
  },
];

/** Returns the server's order that the address names; `time` is newest first. */
const orderOf = (query: URLSearchParams): string => {
  const sort = query.get('sort') ?? '';
  return sort === 'duration' || sort === 'cost' ? sort : 'time';
};

/** Pages of the calls that fit. */
function useUsage(filter: ReturnType<typeof usageQueryOf>, sort: string, limit: string) {
  return useInfiniteQuery({
    queryKey: ['usage', filter, sort],
    queryFn: ({ pageParam }) => api.usage({ ...filter, sort, limit }, pageParam),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next,
    placeholderData: keepPreviousData,
  });
}

/** All calls, in the order and with the filters in the address. */
export function UsageLog() {
  const { query } = useRoute();
  const [now, setNow] = useState(() => Date.now());
  const filter = useMemo(() => usageQueryOf(query, now), [query, now]);
  const call = query.get('call');
  const sort = orderOf(query);
  const limit = sort === 'time' ? pageSize : sortedPageSize;
  const usage = useUsage(filter, sort, limit);
  const search = useSearch(usage, Number(limit), filter);
  const inFilter = usage.data?.pages
    .flatMap((page) => page.records)
    .find(({ keyId }) => keyId === query.get('keyId'));
  const narrowed = [...query.keys()].some((name) => name !== 'call');
  return (
    <>
      <header>
        <h1>Usage log</h1>
        <div className="actions">
          <SearchBox
            label="Request id"
            hint="Request id: req_…"
            value={query.get('id') ?? ''}
            onChange={(id) => changeQuery({ id }, 'replace')}
          />
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
          <a className="button" href={`/api/admin/usage.csv${queryOf(filter)}`} download>
            <Icon name="download" />
            CSV
          </a>
        </div>
      </header>
      <div className="card">
        <UsageFilters query={query} keyName={inFilter?.keyName} narrowed={narrowed} />
        <Await query={usage} what="the usage log">
          {({ pages }) => (
            <Calls pages={pages} usage={usage} search={search} sort={sort} narrowed={narrowed} />
          )}
        </Await>
      </div>
      {call !== null && <CallDetail id={call} onClose={() => changeQuery({ call: undefined })} />}
    </>
  );
}

/** The calls found, or the reason for an empty list. */
function Calls({
  pages,
  usage,
  search,
  sort,
  narrowed,
}: {
  readonly pages: NonNullable<ReturnType<typeof useUsage>['data']>['pages'];
  readonly usage: ReturnType<typeof useUsage>;
  readonly search: ReturnType<typeof useSearch>;
  readonly sort: string;
  readonly narrowed: boolean;
}) {
  const records = pages.flatMap((page) => page.records);
  const { searchedSince, comparedSince } = pages.at(-1) ?? {};
  const notes = [
    searchedSince !== undefined && `Searched back to ${exactly(searchedSince)}.`,
    comparedSince !== undefined &&
      `Calls before ${exactly(comparedSince)} were not compared: choose an earlier time.`,
  ].filter((note) => note !== false);
  return records.length === 0 && (usage.hasNextPage || notes.length > 0) ? (
    <Empty title="No recent call fits this filter">
      <GoOn search={search} notes={notes.join(' ')} />
    </Empty>
  ) : records.length === 0 ? (
    <Empty title={narrowed ? 'No call fits this filter' : 'No calls yet'}>
      {narrowed ? (
        <a href="#/usage">Clear filter</a>
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
        onEnd={() =>
          void (usage.hasNextPage && !search.isShort && !usage.isFetching && usage.fetchNextPage())
        }
        order={{
          current: sort,
          choose: (next) => changeQuery({ sort: next === 'time' ? undefined : next }, 'replace'),
        }}
        onOpen={({ id }) => changeQuery({ call: id })}
      />
      <More
        query={{
          hasNextPage: usage.hasNextPage && !search.isShort,
          isFetchingNextPage: usage.isFetchingNextPage,
          fetchNextPage: usage.fetchNextPage,
        }}
        count={records.length}
        one="call"
        many="calls"
      >
        <GoOn search={search} notes={notes.join(' ')} />
      </More>
    </>
  );
}
