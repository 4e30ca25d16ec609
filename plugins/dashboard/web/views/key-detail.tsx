import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { KeyView, KeyWithValue } from '../../../admin/schemas/index.ts';
import { api } from '../parts/api.ts';
import { BudgetBars, EndUserBudget, KeyOwners, KeyState, limitsOf, Tags } from '../parts/badges.tsx';
import { DetailSheet } from '../parts/detail-sheet.tsx';
import { Confirm } from '../parts/dialog.tsx';
import { Field } from '../parts/fields.tsx';
import { addressOf } from '../parts/router.ts';
import { ago, exactly } from '../parts/text.ts';
import { showToast } from '../parts/toasts.tsx';

/** Properties of the sheet of a key. */
interface KeyDetailProps {
  readonly apiKey: KeyView;
  readonly onClose: () => void;
  readonly onEdit: () => void;
  readonly onMade: (made: KeyWithValue) => void;
}

/** A key, and everything that can be done with it. */
export function KeyDetail({ apiKey, onClose, onEdit, onMade }: KeyDetailProps) {
  const queries = useQueryClient();
  const { id, name, enabled } = apiKey;
  const [asking, setAsking] = useState<string>();
  const fresh = (): Promise<void> => queries.invalidateQueries({ queryKey: ['keys'] });
  const change = useMutation({
    mutationFn: (on: boolean) => api.switchKey(id, on),
    onSuccess: (_changed, on) =>
      showToast(on ? `${name} is enabled.` : `${name} is disabled. Its calls are refused from now on.`),
    onSettled: fresh,
  });
  const rotate = useMutation({
    mutationFn: (graceSeconds: number) => api.rotateKey(id, graceSeconds),
    onSuccess: onMade,
    onSettled: () => {
      setAsking(undefined);
      return fresh();
    },
  });
  const remove = useMutation({
    mutationFn: () => api.deleteKey(id),
    onSuccess: () => {
      showToast(`${name} is deleted.`);
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
      <DetailSheet
        title={name}
        busy={busy}
        asking={asking}
        onAsk={setAsking}
        onClose={onClose}
        actions={[
          {
            name: 'Delete',
            kind: 'danger',
            run: () => remove.mutate(),
            ask: (
              <p>
                Calls with this key are refused within a second, on every gateway. Its records in the usage
                log stay.
              </p>
            ),
          },
          { name: 'Rotate', run: () => setAsking('Rotate') },
          { name: enabled ? 'Disable' : 'Enable', run: () => change.mutate(!enabled) },
          { name: 'Edit', kind: 'primary', run: onEdit },
        ]}
      >
        <OldSecret apiKey={apiKey} />
        <Facts apiKey={apiKey} />
        <p>
          <a href={addressOf('usage', { keyId: id })}>See the calls with this key</a>
        </p>
      </DetailSheet>
      {asking === 'Rotate' && (
        <Rotate
          name={name}
          busy={busy}
          onYes={(graceSeconds) => rotate.mutate(graceSeconds)}
          onNo={() => setAsking(undefined)}
        />
      )}
    </>
  );
}

/** Periods for which the old secret of a rotated key may go on working, in seconds. */
const gracePeriods = [
  [0, 'It stops working within a second'],
  [3_600, 'It works for another hour'],
  [86_400, 'It works for another day'],
  [604_800, 'It works for another 7 days'],
  [2_592_000, 'It works for another 30 days'],
] as const;

/** Asks how long the old secret shall work beside the new one. */
function Rotate({
  name,
  busy,
  onYes,
  onNo,
}: {
  readonly name: string;
  readonly busy: boolean;
  readonly onYes: (graceSeconds: number) => void;
  readonly onNo: () => void;
}) {
  const [grace, setGrace] = useState(0);
  return (
    <Confirm
      title={`Give ${name} a new secret?`}
      action="Rotate"
      busy={busy}
      onYes={() => onYes(grace)}
      onNo={onNo}
    >
      <p>Limits, budgets and what was spent stay as they are. The new secret is shown once.</p>
      <Field label="The present secret">
        {(props) => (
          <select {...props} value={grace} onChange={({ target }) => setGrace(Number(target.value))}>
            {gracePeriods.map(([seconds, text]) => (
              <option key={seconds} value={seconds}>
                {text}
              </option>
            ))}
          </select>
        )}
      </Field>
    </Confirm>
  );
}

/** The secret from before a rotation, while it works. */
function OldSecret({ apiKey: { id, oldSecret } }: { readonly apiKey: KeyView }) {
  const queries = useQueryClient();
  const end = useMutation({
    mutationFn: () => api.endOldSecret(id),
    onSuccess: () => showToast('The old secret does not work any more.'),
    onSettled: () => queries.invalidateQueries({ queryKey: ['keys'] }),
  });
  if (oldSecret === undefined) return null;
  const { prefix, suffix, until, lastUsedAt } = oldSecret;
  return (
    <div className="notice warn row">
      <span>
        The old secret{' '}
        <code>
          {prefix}…{suffix}
        </code>{' '}
        works until {exactly(until)}. Last used since the rotation: {ago(lastUsedAt)}.
      </span>
      <button type="button" className="button small" disabled={end.isPending} onClick={() => end.mutate()}>
        End it now
      </button>
    </div>
  );
}

function Facts({ apiKey }: { readonly apiKey: KeyView }) {
  const {
    id,
    note,
    tags,
    callTags,
    prefix,
    suffix,
    state,
    models,
    budgets,
    endUserBudget,
    addresses,
    expiresAt,
    createdAt,
    lastUsedAt,
  } = apiKey;
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
      <dt>Owner</dt>
      <dd>
        <KeyOwners apiKey={apiKey} />
      </dd>
      <dt>Tags</dt>
      <dd>
        {tags === undefined ? 'none' : <Tags values={tags} most={50} />}
        {callTags === true && <span className="sub-block muted small">Calls may bring further ones.</span>}
      </dd>
      <dt>Models</dt>
      <dd>{models === undefined ? 'all' : <Tags values={models} most={200} />}</dd>
      <dt>Budgets</dt>
      <dd className="stack">
        <BudgetBars budgets={budgets} />
      </dd>
      <dt>Each end user</dt>
      <dd>
        <EndUserBudget budget={endUserBudget} />
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
