import { useInfiniteQuery } from '@tanstack/react-query';
import type { AuditEntry } from '../../../admin/schemas/index.ts';
import { api } from '../parts/api.ts';
import { Badge } from '../parts/badges.tsx';
import { DataTable, type Column } from '../parts/data-table.tsx';
import { differencesOf } from '../parts/differences.ts';
import { Await, Empty, More } from '../parts/states.tsx';
import { count, exactly, when } from '../parts/text.ts';

const actions: Readonly<Record<AuditEntry['action'], string>> = {
  login: 'Logged in',
  logout: 'Logged out',
  'key-create': 'Key created',
  'key-update': 'Key changed',
  'key-rotate': 'Key rotated',
  'key-old-secret-end': 'Old secret of key ended',
  'token-create': 'API token created',
  'token-revoke': 'API token revoked',
  'key-enable': 'Key enabled',
  'key-disable': 'Key disabled',
  'key-delete': 'Key deleted',
  'sign-in': 'Signed in',
  'user-create': 'User created',
  'user-update': 'User changed',
  'user-delete': 'User deleted',
  'user-invite': 'User invited',
  'user-accept': 'Invitation accepted',
  'user-reset-second-factor': 'Second factor reset',
  'password-change': 'Password changed',
  'second-factor-add': 'Second factor added',
  'second-factor-remove': 'Second factor removed',
  'session-end': 'Session ended',
  'owner-create': 'Owner created',
  'owner-update': 'Owner changed',
  'owner-delete': 'Owner deleted',
  'channel-test': 'Channel tested',
  'channel-enable': 'Channel enabled',
  'channel-disable': 'Channel disabled',
  'channel-reset': 'Channel health reset',
  'config-create': 'Configuration entry created',
  'config-update': 'Configuration entry changed',
  'config-enable': 'Configuration entry enabled',
  'config-disable': 'Configuration entry disabled',
  'config-delete': 'Configuration entry deleted',
  'config-order': 'Channels reordered',
  'config-test': 'Configuration tested',
  'config-undo': 'Configuration change undone',
  'usage-export': 'Usage exported',
  reload: 'Reloaded',
  'plugin-route': 'Changed through a plugin',
  'alerts.acknowledge': 'Alert acknowledged',
  'alerts.mute': 'Alerts muted',
  'alerts.test': 'Destination of alerts tested',
};

/** Labels of the kinds of actors. None for the admin password, whose name is enough. */
const actorKinds: ReadonlyMap<string | undefined, string> = new Map([
  ['user', 'user'],
  ['token', 'admin token'],
  ['command-line', 'command line'],
]);

const columns: readonly Column<AuditEntry>[] = [
  {
    id: 'at',
    title: 'Time',
    show: ({ at }) => (
      <span className="nowrap" title={exactly(at)}>
        {when(at)}
      </span>
    ),
  },
  {
    id: 'action',
    title: 'What',
    show: ({ action }) => (
      <Badge kind={action.endsWith('-delete') ? 'bad' : action.startsWith('log') ? '' : 'accent'}>
        {actions[action] ?? action}
      </Badge>
    ),
  },
  {
    id: 'target',
    title: 'Which',
    show: ({ target, before, after }) => {
      const name = after?.['name'] ?? before?.['name'];
      return (
        <>
          {typeof name === 'string' && name !== target && <span className="truncate">{name}</span>}
          <span className={typeof name === 'string' ? 'sub mono' : 'mono'}>{target ?? '–'}</span>
        </>
      );
    },
  },
  {
    id: 'who',
    title: 'Who',
    show: ({ actor, ip, session }) => (
      <>
        <span className="truncate" title={actor?.name}>
          {actor?.name ?? '–'}
        </span>
        <span className="sub" title={session === undefined ? undefined : `Session ${session}`}>
          {[actor?.kind === 'password' ? '' : actorKinds.get(actor?.kind), ip].filter(Boolean).join(', ')}
        </span>
      </>
    ),
  },
  { id: 'change', title: 'Change', show: (entry) => <Change entry={entry} /> },
];

/** Fields that differ, with what they were and are. */
function Change({ entry: { before, after } }: { readonly entry: AuditEntry }) {
  const changes = differencesOf(before, after);
  if (changes.length === 0) return <span className="muted">–</span>;
  const lines = changes.map(({ name, was, is }) => (
    <span key={name} className="line small">
      <span className="muted">{name}:</span> {was !== undefined && <del>{was}</del>}
      {was !== undefined && is !== undefined && ' → '}
      {is !== undefined && <ins>{is}</ins>}
    </span>
  ));
  if (changes.length < 4) return lines;
  return (
    <details>
      <summary className="small">{count(changes.length)} fields</summary>
      {lines}
    </details>
  );
}

/** Changes with their actors and times, newest first. */
export function Audit() {
  const audit = useInfiniteQuery({
    queryKey: ['audit'],
    queryFn: ({ pageParam }) => api.audit(pageParam),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next,
    refetchOnMount: 'always',
  });
  return (
    <>
      <header>
        <h1>Audit log</h1>
        <p>Every change made here or through the admin API.</p>
      </header>
      <div className="card">
        <Await query={audit} what="the audit log">
          {({ pages }) => {
            const entries = pages.flatMap((page) => page.entries);
            return entries.length === 0 ? (
              <Empty title="Nothing was changed yet" />
            ) : (
              <>
                <DataTable
                  label="Changes"
                  stacked
                  columns={columns}
                  rows={entries}
                  rowId={({ id }) => id}
                  sortable={false}
                />
                <More query={audit} count={entries.length} one="entry" many="entries" />
              </>
            );
          }}
        </Await>
      </div>
    </>
  );
}
