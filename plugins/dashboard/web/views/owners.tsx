import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import type { OwnerView } from '../../../admin/schemas/index.ts';
import { api } from '../parts/api.ts';
import { BudgetBars, LimitLines, ModelTags, OwnerState } from '../parts/badges.tsx';
import { DataTable, type Column } from '../parts/data-table.tsx';
import { Segments } from '../parts/fields.tsx';
import { Icon } from '../parts/icons.tsx';
import { kindNames, ownerKinds } from '../parts/owner-names.ts';
import { changeQuery, useRoute } from '../parts/router.ts';
import { Await, Empty, More } from '../parts/states.tsx';
import { ago, exactly } from '../parts/text.ts';
import { SearchBox } from '../parts/typed.tsx';
import { OwnerDetail } from './owner-detail.tsx';
import { OwnerForm } from './owner-form.tsx';

const columns: readonly Column<OwnerView>[] = [
  {
    id: 'name',
    title: 'Name',
    sortBy: ({ name }) => name.toLowerCase(),
    show: ({ name, note }) => (
      <>
        <strong className="truncate" title={name}>
          {name}
        </strong>
        {note !== undefined && <span className="sub truncate">{note}</span>}
      </>
    ),
  },
  {
    id: 'kind',
    title: 'Kind',
    sortBy: ({ kind }) => kind,
    show: ({ kind, organisation }) => (
      <>
        <span className="nowrap">{kindNames[kind].one}</span>
        {organisation !== undefined && (
          <span className="sub truncate">
            <OrganisationName id={organisation} />
          </span>
        )}
      </>
    ),
  },
  {
    id: 'state',
    title: 'State',
    sortBy: ({ enabled }) => (enabled ? 0 : 1),
    show: ({ enabled }) => <OwnerState enabled={enabled} />,
  },
  { id: 'models', wide: true, title: 'Models', show: ({ models }) => <ModelTags models={models} /> },
  { id: 'budgets', wide: true, title: 'Budgets', show: ({ budgets }) => <BudgetBars budgets={budgets} /> },
  { id: 'rates', wide: true, title: 'Limits', show: (owner) => <LimitLines limits={owner} /> },
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

/** Name of an organisation. All rows share one list of them; one that is not in it is shown by its id. */
function OrganisationName({ id }: { readonly id: string }) {
  const organisations = useQuery({
    queryKey: ['owners', 'organisations'],
    queryFn: () => api.owners({ kind: 'organisation', limit: 500 }),
    staleTime: 60_000,
  });
  return <>{organisations.data?.owners.find((one) => one.id === id)?.name ?? id}</>;
}

const kinds = [['', 'All'], ...ownerKinds.map((kind) => [kind, kindNames[kind].many] as const)] as const;

type Kind = OwnerView['kind'];

/** Pages of the owners that fit. */
function useOwners(kind: Kind | undefined, organisation: string | undefined, search: string) {
  return useInfiniteQuery({
    queryKey: ['owners', 'pages', kind, organisation, search],
    queryFn: ({ pageParam }) => api.owners({ kind, organisation, search, after: pageParam }),
    placeholderData: keepPreviousData,
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next,
    refetchInterval: ({ state }) => (state.data?.pages.length === 1 ? 10_000 : false),
  });
}

/** Organisations, teams, members and service accounts. */
export function Owners() {
  const { query } = useRoute();
  const kind = ownerKinds.find((one) => one === query.get('kind'));
  const organisation = query.get('organisation') ?? undefined;
  const search = query.get('search')?.trim() ?? '';
  const owners = useOwners(kind, organisation, search);
  const rows = owners.data?.pages.flatMap((page) => page.owners) ?? [];
  const wanted = query.get('owner');
  const listed = rows.find(({ id }) => id === wanted);
  // The address may name an owner that is on none of the pages here.
  const named = useQuery({
    queryKey: ['owners', 'one', wanted],
    queryFn: () => api.owner(wanted ?? ''),
    enabled: wanted !== null && owners.data !== undefined && listed === undefined,
    retry: false,
  });
  const [dialog, setDialog] = useState<'create' | { readonly edit: OwnerView }>();
  const open = listed ?? (wanted === null ? undefined : named.data);
  const narrowed = kind !== undefined || search !== '' || organisation !== undefined;
  const create = (
    <button type="button" className="button primary" onClick={() => setDialog('create')}>
      <Icon name="plus" />
      Add
    </button>
  );
  return (
    <>
      <Header search={search} create={create} />
      <OwnerFilters kind={kind} organisation={organisation} />
      <div className="card">
        <Await query={owners} what="the organisations and teams">
          {() =>
            rows.length === 0 ? (
              <NoOwners narrowed={narrowed} create={create} />
            ) : (
              <>
                <DataTable
                  label="Owners"
                  columns={columns}
                  rows={rows}
                  rowId={({ id }) => id}
                  sortable={!owners.hasNextPage}
                  onEnd={() => void (owners.hasNextPage && owners.fetchNextPage())}
                  onOpen={({ id }) => changeQuery({ owner: id })}
                />
                <More query={owners} count={rows.length} one="entry" many="entries" />
              </>
            )
          }
        </Await>
      </div>
      {open !== undefined && (
        <OwnerDetail
          owner={open}
          onClose={() => changeQuery({ owner: undefined })}
          onEdit={() => setDialog({ edit: open })}
        />
      )}
      {wanted !== null && named.error !== null && listed === undefined && (
        <p className="notice warn" role="alert">
          {named.error.message}
        </p>
      )}
      {dialog !== undefined && (
        <OwnerForm
          owner={dialog === 'create' ? undefined : dialog.edit}
          kind={kind ?? 'team'}
          organisation={organisation ?? ''}
          onClose={() => setDialog(undefined)}
        />
      )}
    </>
  );
}

function Header({ search, create }: { readonly search: string; readonly create: ReactNode }) {
  return (
    <header>
      <h1>Organisations and teams</h1>
      <div className="actions">
        <SearchBox
          label="Find an owner"
          hint="Name, note or id"
          value={search}
          onChange={(text) => changeQuery({ search: text }, 'replace')}
        />
        {create}
      </div>
    </header>
  );
}

function OwnerFilters({
  kind,
  organisation,
}: {
  readonly kind: Kind | undefined;
  readonly organisation: string | undefined;
}) {
  return (
    <div className="row">
      <Segments
        label="Kind"
        options={kinds}
        value={kind ?? ''}
        onChange={(one) => changeQuery({ kind: one }, 'replace')}
      />
      {organisation !== undefined && (
        <button
          type="button"
          className="button small"
          onClick={() => changeQuery({ organisation: undefined }, 'replace')}
        >
          Show all organisations
        </button>
      )}
    </div>
  );
}

function NoOwners({ narrowed, create }: { readonly narrowed: boolean; readonly create: ReactNode }) {
  if (narrowed) {
    return (
      <Empty title="Nothing fits this filter">
        <a href="#/owners">Clear filter</a>
      </Empty>
    );
  }
  return (
    <Empty title="No organisations, teams or members yet">
      <p>API keys can belong to a team or a member. Their limits hold for all of their keys together.</p>
      {create}
    </Empty>
  );
}
