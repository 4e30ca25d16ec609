import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { KeyView, KeyWithValue } from '../../../admin/schemas/index.ts';
import { api } from '../parts/api.ts';
import { BudgetBar, KeyState, limitsOf, Tags } from '../parts/badges.tsx';
import { Confirm, Dialog } from '../parts/dialog.tsx';
import { addressOf } from '../parts/router.ts';
import { ago, exactly } from '../parts/text.ts';
import { say } from '../parts/toasts.tsx';

/** A key, and everything that can be done with it. */
export function KeyDetail({
  apiKey,
  onClose,
  onEdit,
  onMade,
}: {
  readonly apiKey: KeyView;
  readonly onClose: () => void;
  readonly onEdit: () => void;
  readonly onMade: (made: KeyWithValue) => void;
}) {
  const queries = useQueryClient();
  const { id, name, enabled } = apiKey;
  const [asking, setAsking] = useState<'rotate' | 'delete'>();
  const fresh = (): Promise<void> => queries.invalidateQueries({ queryKey: ['keys'] });
  const change = useMutation({
    mutationFn: (on: boolean) => api.switchKey(id, on),
    onSuccess: (_changed, on) =>
      say(on ? `${name} is enabled.` : `${name} is disabled. Its calls are refused from now on.`),
    onSettled: fresh,
  });
  const rotate = useMutation({
    mutationFn: () => api.rotateKey(id),
    onSuccess: onMade,
    onSettled: () => {
      setAsking(undefined);
      return fresh();
    },
  });
  const remove = useMutation({
    mutationFn: () => api.deleteKey(id),
    onSuccess: () => {
      say(`${name} is deleted.`);
      onClose();
    },
    onSettled: () => {
      setAsking(undefined);
      return fresh();
    },
  });
  const busy = change.isPending || rotate.isPending || remove.isPending;
  return (
    <>
      <Dialog
        title={name}
        kind="sheet"
        onClose={onClose}
        bottom={
          <>
            <button
              type="button"
              className="button danger"
              disabled={busy}
              onClick={() => setAsking('delete')}
            >
              Delete
            </button>
            <button type="button" className="button" disabled={busy} onClick={() => setAsking('rotate')}>
              Rotate
            </button>
            <button type="button" className="button" disabled={busy} onClick={() => change.mutate(!enabled)}>
              {enabled ? 'Disable' : 'Enable'}
            </button>
            <button type="button" className="button primary" disabled={busy} onClick={onEdit}>
              Edit
            </button>
          </>
        }
      >
        <Facts apiKey={apiKey} />
        <p>
          <a href={addressOf('usage', { keyId: id })}>See the calls with this key</a>
        </p>
      </Dialog>
      {asking === 'delete' && (
        <Confirm
          title={`Delete ${name}?`}
          action="Delete"
          busy={busy}
          onYes={() => remove.mutate()}
          onNo={() => setAsking(undefined)}
        >
          <p>
            Calls with this key are refused within a second, on every gateway. Its records in the usage log
            stay.
          </p>
        </Confirm>
      )}
      {asking === 'rotate' && (
        <Confirm
          title={`Give ${name} a new secret?`}
          action="Rotate"
          busy={busy}
          onYes={() => rotate.mutate()}
          onNo={() => setAsking(undefined)}
        >
          <p>
            The present secret stops working within a second. Limits, budgets and what was spent stay as they
            are. The new secret is shown once.
          </p>
        </Confirm>
      )}
    </>
  );
}

function Facts({ apiKey }: { readonly apiKey: KeyView }) {
  const { id, note, prefix, suffix, state, models, budgets, addresses, expiresAt, createdAt, lastUsedAt } =
    apiKey;
  const limits = limitsOf(apiKey);
  return (
    <dl className="facts">
      <dt>State</dt>
      <dd>
        <KeyState state={state} />
      </dd>
      <dt>Secret</dt>
      <dd className="mono">
        {prefix}…{suffix}
      </dd>
      <dt>Id</dt>
      <dd className="mono">{id}</dd>
      {note !== undefined && (
        <>
          <dt>Note</dt>
          <dd>{note}</dd>
        </>
      )}
      <dt>Models</dt>
      <dd>{models === undefined ? 'all' : <Tags values={models} most={200} />}</dd>
      <dt>Budgets</dt>
      <dd className="stack">
        {budgets.length === 0
          ? 'none'
          : budgets.map((budget) => <BudgetBar key={budget.unit + budget.period} budget={budget} />)}
      </dd>
      <dt>Limits</dt>
      <dd>{limits.length === 0 ? 'none' : limits.join(', ')}</dd>
      <dt>Addresses</dt>
      <dd>{addresses === undefined ? 'all' : <Tags values={addresses} most={500} />}</dd>
      <dt>Expires</dt>
      <dd>{expiresAt === undefined ? 'never' : exactly(expiresAt)}</dd>
      <dt>Created</dt>
      <dd>{exactly(createdAt)}</dd>
      <dt>Last used</dt>
      <dd title={lastUsedAt === undefined ? undefined : exactly(lastUsedAt)}>{ago(lastUsedAt)}</dd>
    </dl>
  );
}
