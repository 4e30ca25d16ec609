import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { KeyView, KeyWithValue } from '../../../admin/schemas/index.ts';
import { api } from '../parts/api.ts';
import { BudgetBar, KeyState, limitsOf, Tags } from '../parts/badges.tsx';
import { DataTable, type Column } from '../parts/data-table.tsx';
import { Icon } from '../parts/icons.tsx';
import { changeQuery, usePlace } from '../parts/router.ts';
import { SearchBox } from '../parts/typed.tsx';
import { Await, Empty } from '../parts/states.tsx';
import { ago, count, exactly } from '../parts/text.ts';
import { KeyDetail } from './key-detail.tsx';
import { KeyForm } from './key-form.tsx';
import { OnceOnly } from './key-once.tsx';

const none = <span className="muted">–</span>;

const columns: readonly Column<KeyView>[] = [
  {
    id: 'name',
    title: 'Name',
    sortBy: ({ name }) => name.toLowerCase(),
    show: ({ name, prefix, suffix }) => (
      <>
        <strong className="truncate" title={name}>
          {name}
        </strong>
        <span className="sub mono">
          {prefix}…{suffix}
        </span>
      </>
    ),
  },
  {
    id: 'state',
    title: 'State',
    sortBy: ({ state }) => state,
    show: ({ state }) => <KeyState state={state} />,
  },
  {
    id: 'models',
    wide: true,
    title: 'Models',
    show: ({ models }) =>
      models === undefined ? <span className="muted">all</span> : <Tags values={models} most={3} />,
  },
  {
    id: 'budgets',
    wide: true,
    title: 'Budgets',
    sortBy: ({ budgets }) =>
      Math.max(-1, ...budgets.map(({ spent, amount }) => (amount === 0 ? 1 : spent / amount))),
    show: ({ budgets }) =>
      budgets.length === 0
        ? none
        : budgets.map((budget) => <BudgetBar key={budget.unit + budget.period} budget={budget} />),
  },
  {
    id: 'rates',
    wide: true,
    title: 'Limits',
    show: (key) => {
      const limits = limitsOf(key);
      return limits.length === 0
        ? none
        : limits.map((text) => (
            <span key={text} className="small nowrap" style={{ display: 'block' }}>
              {text}
            </span>
          ));
    },
  },
  {
    id: 'used',
    title: 'Last used',
    sortBy: ({ lastUsedAt }) => lastUsedAt ?? 0,
    show: ({ lastUsedAt }) => (
      <span className="nowrap" title={lastUsedAt === undefined ? undefined : exactly(lastUsedAt)}>
        {ago(lastUsedAt)}
      </span>
    ),
  },
  {
    id: 'created',
    wide: true,
    title: 'Created',
    sortBy: ({ createdAt }) => createdAt,
    show: ({ createdAt }) => (
      <span className="nowrap" title={exactly(createdAt)}>
        {ago(createdAt)}
      </span>
    ),
  },
];

/** Returns the text to search for. Of a whole secret only the first characters leave the page: no more of it is stored. */
const searchOf = (text: string): string =>
  /^sk-\w{5}/.test(text.trim()) ? text.trim().slice(0, 7) : text.trim();

/** All API keys: made, changed, and taken away. */
export function Keys() {
  const { query } = usePlace();
  const search = searchOf(query.get('search') ?? '');
  const keys = useInfiniteQuery({
    queryKey: ['keys', 'pages', search],
    queryFn: ({ pageParam }) => api.keys(search, pageParam),
    placeholderData: keepPreviousData,
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next,
    refetchInterval: 10_000,
  });
  const wanted = query.get('key');
  const listed = keys.data?.pages.flatMap((page) => page.keys).find(({ id }) => id === wanted);
  // An address may name one that is on none of the pages here.
  const named = useQuery({
    queryKey: ['keys', 'one', wanted],
    queryFn: () => api.key(wanted ?? ''),
    enabled: wanted !== null && keys.data !== undefined && listed === undefined,
    retry: false,
  });
  const [dialog, setDialog] = useState<'create' | { readonly edit: KeyView }>();
  const [made, setMade] = useState<KeyWithValue>();
  const open = listed ?? (wanted === null ? undefined : named.data);
  const create = (
    <button type="button" className="button primary" onClick={() => setDialog('create')}>
      <Icon name="plus" />
      Add API key
    </button>
  );
  return (
    <>
      <header>
        <h1>API keys</h1>
        <div className="actions">
          <SearchBox
            label="Find an API key"
            hint="Name, note, id or prefix"
            value={query.get('search') ?? ''}
            onChange={(text) => changeQuery({ search: searchOf(text) }, 'replace')}
          />
          {create}
        </div>
      </header>
      <div className="card">
        <Await query={keys} what="the API keys">
          {({ pages }) => {
            const all = pages.flatMap((page) => page.keys);
            return all.length === 0 && keys.hasNextPage ? (
              <Empty title="None of the newest keys has this in its name, note or id">
                <p>Type three characters to search all keys at once.</p>
                <button
                  type="button"
                  className="button"
                  disabled={keys.isFetchingNextPage}
                  onClick={() => void keys.fetchNextPage()}
                >
                  {keys.isFetchingNextPage ? 'Searching…' : 'Search older keys'}
                </button>
              </Empty>
            ) : all.length === 0 && search !== '' ? (
              <Empty title="No API key has this in its name, note or id">
                <a href="#/keys">Show all API keys</a>
              </Empty>
            ) : all.length === 0 ? (
              <Empty title="No API keys yet">
                <p>Callers need a key. One key is good for every format.</p>
                {create}
              </Empty>
            ) : (
              <>
                <DataTable
                  label="API keys"
                  columns={columns}
                  rows={all}
                  rowId={({ id }) => id}
                  sortable={!keys.hasNextPage}
                  onOpen={({ id }) => changeQuery({ key: id })}
                />
                {keys.hasNextPage && (
                  <div className="table-foot">
                    {count(all.length)} keys
                    <button
                      type="button"
                      className="button small"
                      disabled={keys.isFetchingNextPage}
                      onClick={() => void keys.fetchNextPage()}
                    >
                      {keys.isFetchingNextPage ? 'Loading…' : 'Show more'}
                    </button>
                  </div>
                )}
              </>
            );
          }}
        </Await>
      </div>
      {open !== undefined && (
        <KeyDetail
          apiKey={open}
          onClose={() => changeQuery({ key: undefined })}
          onEdit={() => setDialog({ edit: open })}
          onMade={setMade}
        />
      )}
      {dialog !== undefined && (
        <KeyForm
          apiKey={dialog === 'create' ? undefined : dialog.edit}
          onClose={() => setDialog(undefined)}
          onMade={setMade}
        />
      )}
      {made !== undefined && <OnceOnly made={made} onClose={() => setMade(undefined)} />}
    </>
  );
}
