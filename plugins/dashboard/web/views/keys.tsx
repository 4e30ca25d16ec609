import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useEffect, useState, type ReactElement } from 'react';
import type { KeyView, KeyWithValue } from '../../../admin/schemas/index.ts';
import { api } from '../parts/api.ts';
import { BudgetBars, KeyOwners, KeyState, LimitLines, ModelTags, Tags } from '../parts/badges.tsx';
import { DataTable, type Column, type Selection } from '../parts/data-table.tsx';
import { Icon } from '../parts/icons.tsx';
import { Segments } from '../parts/fields.tsx';
import { OwnerPicker } from '../parts/owner-picker.tsx';
import { changeQuery, useRoute } from '../parts/router.ts';
import { SearchBox } from '../parts/typed.tsx';
import { Await, Empty, More, MoreButton } from '../parts/states.tsx';
import { ago, brief, exactly, money } from '../parts/text.ts';
import { BulkActions } from './key-bulk.tsx';
import { KeyDetail } from './key-detail.tsx';
import { KeyForm } from './key-form.tsx';
import { OnceOnly } from './key-once.tsx';

const orders = [
  ['created', 'Newest'],
  ['spend', 'Highest spend'],
] as const;

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
    id: 'owner',
    title: 'Owner',
    wide: true,
    sortBy: ({ teamName, memberName }) => (teamName ?? memberName)?.toLowerCase(),
    show: (key) => <KeyOwners apiKey={key} />,
  },
  {
    id: 'tags',
    wide: true,
    title: 'Tags',
    show: ({ tags = [] }) =>
      tags.length === 0 ? <span className="muted">–</span> : <Tags values={tags} most={2} />,
  },
  { id: 'models', wide: true, title: 'Models', show: ({ models }) => <ModelTags models={models} /> },
  {
    id: 'budgets',
    wide: true,
    title: 'Budgets',
    sortBy: ({ budgets }) =>
      Math.max(-1, ...budgets.map(({ spent, amount }) => (amount === 0 ? 1 : spent / amount))),
    show: ({ budgets }) => <BudgetBars budgets={budgets} />,
  },
  {
    id: 'spent',
    title: 'Spent, 30 days',
    kind: 'number',
    sortBy: ({ spent }) => spent?.microDollars,
    show: ({ spent }) =>
      spent === undefined ? null : (
        <>
          <span className="nowrap">{money(spent.microDollars)}</span>
          <span className="sub nowrap">
            {brief(spent.calls)} {spent.calls === 1 ? 'call' : 'calls'}
          </span>
        </>
      ),
  },
  { id: 'rates', wide: 'extra', title: 'Limits', show: (key) => <LimitLines limits={key} /> },
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
    wide: 'extra',
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

type Sort = (typeof orders)[number][0];

/** Pages of the keys that fit. */
function useKeys(search: string, owner: string, sort: Sort) {
  return useInfiniteQuery({
    queryKey: ['keys', 'pages', search, owner, sort],
    queryFn: ({ pageParam }) =>
      api.keys(
        { search, owner, ...(sort === 'spend' ? { sort, limit: 200 } : { spend: 'true' }) },
        pageParam,
      ),
    placeholderData: keepPreviousData,
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next,
    // On demand alone once there are several pages, which would all be read again, and by spend, which sums 30 days of all keys.
    refetchInterval: ({ state }) => (sort === 'created' && state.data?.pages.length === 1 ? 10_000 : false),
  });
}

/** All API keys: made, changed, and taken away. */
export function Keys() {
  const { query } = useRoute();
  const search = searchOf(query.get('search') ?? '');
  const owner = query.get('owner') ?? '';
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const sort = query.get('sort') === 'spend' && search === '' ? 'spend' : 'created';
  // Only visible keys can be selected: a new filter clears the selection.
  useEffect(() => setSelected(new Set()), [search, owner, sort]);
  const keys = useKeys(search, owner, sort);
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
      <Header search={query.get('search') ?? ''} create={create} />
      <div className="row top">
        <KeyFilters owner={owner} sort={sort} />
        {selected.size > 0 && (
          <BulkActions ids={[...selected]} onDone={(left) => setSelected(new Set(left))} />
        )}
      </div>
      <div className="card">
        <Await query={keys} what="the API keys">
          {({ pages }) => {
            const all = pages.flatMap((page) => page.keys);
            return all.length === 0 ? (
              <NoKeys
                search={search}
                owner={owner}
                sort={sort}
                more={keys.hasNextPage && <MoreButton query={keys} label="Search older keys" />}
                create={create}
              />
            ) : (
              <KeyTable
                keys={keys}
                rows={all}
                sort={sort}
                selection={{ ids: selected, change: setSelected }}
              />
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

function Header({ search, create }: { readonly search: string; readonly create: ReactElement }) {
  return (
    <header>
      <h1>API keys</h1>
      <div className="actions">
        <SearchBox
          label="Find an API key"
          hint="Name, note, id or prefix"
          value={search}
          onChange={(text) => changeQuery({ search: searchOf(text), sort: undefined }, 'replace')}
        />
        {create}
      </div>
    </header>
  );
}

function KeyFilters({ owner, sort }: { readonly owner: string; readonly sort: Sort }) {
  return (
    <>
      <div className="owner-filter">
        <OwnerPicker
          label="Owner"
          kinds={['team', 'member', 'service-account']}
          placeholder="All"
          value={owner}
          onChange={(id) => changeQuery({ owner: id }, 'replace')}
        />
      </div>
      <div className="field">
        <span className="label">Order</span>
        <Segments
          label="Order"
          options={orders}
          value={sort}
          onChange={(next) =>
            changeQuery(next === 'spend' ? { sort: next, search: undefined } : { sort: undefined }, 'replace')
          }
        />
      </div>
    </>
  );
}

function KeyTable({
  keys,
  rows,
  sort,
  selection,
}: {
  readonly keys: ReturnType<typeof useKeys>;
  readonly rows: readonly KeyView[];
  readonly sort: Sort;
  readonly selection: Selection;
}) {
  return (
    <>
      <DataTable
        label="API keys"
        columns={columns}
        rows={rows}
        rowId={({ id }) => id}
        rowName={({ name }) => name}
        selection={selection}
        sortable={!keys.hasNextPage && sort === 'created'}
        onEnd={() => void (keys.hasNextPage && keys.fetchNextPage())}
        onOpen={({ id }) => changeQuery({ key: id })}
      />
      <More query={keys} count={rows.length} one="key" many="keys">
        {sort === 'spend' && ' with the highest cost of the last 30 days, at most 200'}
      </More>
    </>
  );
}

/** Says why no key is listed. */
function NoKeys({
  search,
  owner,
  sort,
  more,
  create,
}: {
  readonly search: string;
  readonly owner: string;
  readonly sort: Sort;
  /** Button for older keys; false if there are none. */
  readonly more: ReactElement | false;
  readonly create: ReactElement;
}) {
  if (more !== false) {
    return (
      <Empty title="None of the newest keys has this in its name, note or id">
        <p>Type three characters to search all keys at once.</p>
        {more}
      </Empty>
    );
  }
  if (sort === 'spend') return <Empty title="No key that is left was used in the last 30 days" />;
  if (search !== '' || owner !== '') {
    return (
      <Empty
        title={search === '' ? 'This owner has no API keys' : 'No API key has this in its name, note or id'}
      >
        <a href="#/keys">Show all API keys</a>
      </Empty>
    );
  }
  return (
    <Empty title="No API keys yet">
      <p>Callers need a key. One key is good for every format.</p>
      {create}
    </Empty>
  );
}
