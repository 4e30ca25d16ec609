/** A user, and what an administrator does with it. */
import { useMutation, useQueries } from '@tanstack/react-query';
import { useState } from 'react';
import type { UserView } from '../../../admin/schemas/index.ts';
import { api } from '../parts/api.ts';
import { DetailSheet } from '../parts/detail-sheet.tsx';
import { roleOf } from '../parts/roles.ts';
import { addressOf } from '../parts/router.ts';
import { ago, exactly } from '../parts/text.ts';
import { showToast } from '../parts/toasts.tsx';

/** Shows a user, with a link to the keys of its member, and changes it. */
export function UserDetail({
  user,
  onClose,
  onEdit,
  onInvite,
  onChanged,
}: {
  readonly user: UserView;
  readonly onClose: () => void;
  readonly onEdit: () => void;
  readonly onInvite: () => void;
  readonly onChanged: () => void;
}) {
  const { id, email, enabled, hasPassword, hasSecondFactor } = user;
  const [asking, setAsking] = useState<string>();
  const settled = (): void => {
    setAsking(undefined);
    onChanged();
  };
  const turn = useMutation({
    mutationFn: (on: boolean) => api.switchUser(id, on),
    onSuccess: (_changed, on) => showToast(`${email} is ${on ? 'enabled' : 'disabled'}.`),
    onSettled: settled,
  });
  const remove = useMutation({
    mutationFn: () => api.deleteUser(id),
    onSuccess: () => {
      showToast(`${email} is deleted.`);
      onClose();
    },
    onSettled: settled,
  });
  const reset = useMutation({
    mutationFn: () => api.resetSecondFactor(id),
    onSuccess: () => showToast(`The second factor of ${email} is removed.`),
    onSettled: settled,
  });
  const busy = turn.isPending || remove.isPending || reset.isPending;
  const ask = <p>The user is logged out, and calls with its API keys are refused.</p>;
  return (
    <DetailSheet
      title={email}
      busy={busy}
      asking={asking}
      onAsk={setAsking}
      onClose={onClose}
      actions={[
        { name: 'Delete', kind: 'danger', run: () => remove.mutate(), ask },
        enabled
          ? { name: 'Disable', run: () => turn.mutate(false), ask }
          : { name: 'Enable', run: () => turn.mutate(true) },
        { name: 'Edit', kind: 'primary', run: onEdit },
      ]}
    >
      <UserFacts user={user} />
      <div className="row">
        <button type="button" className="button small" disabled={busy} onClick={onInvite}>
          {hasPassword ? 'Let the user set another password' : 'Invite again'}
        </button>
        {hasSecondFactor && (
          <button type="button" className="button small" disabled={busy} onClick={() => reset.mutate()}>
            Remove the second factor
          </button>
        )}
      </div>
    </DetailSheet>
  );
}

/** Shows what is known of a user. `own`: to the user itself. */
export function UserFacts({ user, own = false }: { readonly user: UserView; readonly own?: boolean }) {
  const { name, organisation, teams, member, createdAt, lastSignInAt, identities } = user;
  const ids = [...(organisation === undefined ? [] : [organisation]), ...teams.map(({ team }) => team)];
  const owners = useQueries({
    queries: ids.map((id) => ({
      queryKey: ['owners', 'one', id],
      queryFn: () => api.owner(id),
      retry: false,
    })),
  });
  const nameOf = (id: string): string => owners[ids.indexOf(id)]?.data?.name ?? id;
  return (
    <dl className="facts">
      {!own && (
        <>
          <dt>Name</dt>
          <dd>{name}</dd>
        </>
      )}
      <dt>Role</dt>
      <dd>{roleOf(user)}</dd>
      <dt>Organisation</dt>
      <dd>{organisation === undefined ? 'not restricted to one' : nameOf(organisation)}</dd>
      <dt>Teams</dt>
      <dd>
        {teams.length === 0
          ? 'none'
          : teams.map(({ team, lead }) => `${nameOf(team)}${lead ? ' (lead)' : ''}`).join(', ')}
      </dd>
      <dt>API keys and limits</dt>
      <dd>
        <a href={addressOf('owners', { owner: member })}>{own ? 'Show' : 'Open the member'}</a>
      </dd>
      <dt>Sign-in providers</dt>
      <dd>{identities.length === 0 ? 'none' : identities.map(({ issuer }) => issuer).join(', ')}</dd>
      <dt>Created</dt>
      <dd>{exactly(createdAt)}</dd>
      <dt>Last sign-in</dt>
      <dd>{ago(lastSignInAt)}</dd>
    </dl>
  );
}
