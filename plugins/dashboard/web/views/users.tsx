/** People who may sign in: invited, changed, switched off and deleted. */
import { keepPreviousData, useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import type { UserView } from '../../../admin/schemas/index.ts';
import { api } from '../parts/api.ts';
import { Badge } from '../parts/badges.tsx';
import { DataTable, type Column } from '../parts/data-table.tsx';
import { Icon } from '../parts/icons.tsx';
import { roleOf } from '../parts/roles.ts';
import { Await, Empty, More } from '../parts/states.tsx';
import { ago, exactly } from '../parts/text.ts';
import { showToast } from '../parts/toasts.tsx';
import { SearchBox } from '../parts/typed.tsx';
import { changeQuery, useRoute } from '../parts/router.ts';
import { UserDetail } from './user-detail.tsx';
import { UserForm } from './user-form.tsx';
import { InvitationOnce } from './user-invitation.tsx';

const columns: readonly Column<UserView>[] = [
  {
    id: 'name',
    title: 'User',
    sortBy: ({ email }) => email,
    show: ({ name, email }) => (
      <>
        <strong className="truncate far" title={email}>
          {email}
        </strong>
        {name !== email && <span className="sub truncate far">{name}</span>}
      </>
    ),
  },
  { id: 'role', title: 'Role', sortBy: roleOf, show: roleOf },
  {
    id: 'state',
    title: 'State',
    sortBy: ({ enabled }) => (enabled ? 0 : 1),
    show: ({ enabled, hasPassword, identities }) =>
      !enabled ? (
        <Badge>disabled</Badge>
      ) : hasPassword || identities.length > 0 ? (
        <Badge kind="good">enabled</Badge>
      ) : (
        <Badge kind="warn">invited</Badge>
      ),
  },
  {
    id: 'factor',
    wide: true,
    title: 'Second factor',
    show: ({ hasSecondFactor }) => (hasSecondFactor ? 'yes' : 'no'),
  },
  {
    id: 'seen',
    wide: true,
    title: 'Last sign-in',
    sortBy: ({ lastSignInAt }) => lastSignInAt ?? 0,
    show: ({ lastSignInAt }) => (
      <span className="nowrap" title={lastSignInAt === undefined ? undefined : exactly(lastSignInAt)}>
        {ago(lastSignInAt)}
      </span>
    ),
  },
];

/** Pages of the users that fit. */
function useUsers(search: string) {
  return useInfiniteQuery({
    queryKey: ['users', search],
    queryFn: ({ pageParam }) => api.users({ search, after: pageParam }),
    placeholderData: keepPreviousData,
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next,
    refetchInterval: ({ state }) => (state.data?.pages.length === 1 ? 10_000 : false),
  });
}

/** Users of the dashboard and the admin API. */
export function Users() {
  const queries = useQueryClient();
  const { query } = useRoute();
  const search = query.get('search')?.trim() ?? '';
  const users = useUsers(search);
  const rows = users.data?.pages.flatMap((page) => page.users) ?? [];
  const [form, setForm] = useState<'create' | UserView>();
  const [opened, setOpened] = useState<string>();
  const [invitation, setInvitation] = useState<string>();
  const refresh = (): void => void queries.invalidateQueries({ queryKey: ['users'] });
  const invite = useMutation({
    mutationFn: (user: UserView) => api.inviteUser(user.id),
    onSuccess: ({ token }) => setInvitation(token),
    onSettled: refresh,
  });
  const open = rows.find(({ id }) => id === opened);
  const add = (
    <button type="button" className="button primary" onClick={() => setForm('create')}>
      <Icon name="plus" />
      Invite user
    </button>
  );
  return (
    <>
      <header>
        <h1>Users</h1>
        <div className="actions">
          <SearchBox
            label="Find a user"
            hint="Email, name or id"
            value={search}
            onChange={(text) => changeQuery({ search: text }, 'replace')}
          />
          {add}
        </div>
      </header>
      <UserTable users={users} rows={rows} search={search} add={add} onOpen={setOpened} />
      {open !== undefined && (
        <UserDetail
          user={open}
          onClose={() => setOpened(undefined)}
          onEdit={() => setForm(open)}
          onInvite={() => invite.mutate(open)}
          onChanged={refresh}
        />
      )}
      {form !== undefined && (
        <UserForm
          user={form === 'create' ? undefined : form}
          onClose={() => setForm(undefined)}
          onSaved={(user, token) => {
            setForm(undefined);
            setInvitation(token);
            if (token === undefined) showToast(`${user.email} is saved.`);
            refresh();
          }}
        />
      )}
      {invitation !== undefined && (
        <InvitationOnce token={invitation} onClose={() => setInvitation(undefined)} />
      )}
    </>
  );
}

function UserTable({
  users,
  rows,
  search,
  add,
  onOpen,
}: {
  readonly users: ReturnType<typeof useUsers>;
  readonly rows: readonly UserView[];
  readonly search: string;
  readonly add: ReactNode;
  readonly onOpen: (id: string) => void;
}) {
  return (
    <div className="card">
      <Await query={users} what="the users">
        {() =>
          rows.length === 0 ? (
            <Empty title={search === '' ? 'No users yet' : 'No user fits'}>{add}</Empty>
          ) : (
            <DataTable
              label="Users"
              columns={columns}
              rows={rows}
              rowId={({ id }) => id}
              sortable={!users.hasNextPage}
              onEnd={() => void (users.hasNextPage && users.fetchNextPage())}
              onOpen={({ id }) => onOpen(id)}
            />
          )
        }
      </Await>
      <More query={users} count={rows.length} one="user" many="users" />
    </div>
  );
}
