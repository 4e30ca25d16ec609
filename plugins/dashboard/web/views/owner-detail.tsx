import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { OwnerView } from '../../../admin/schemas/index.ts';
import { api } from '../parts/api.ts';
import { BudgetBars, EndUserBudget, limitsOf, ModelTags, OwnerState, Tags } from '../parts/badges.tsx';
import { DetailSheet } from '../parts/detail-sheet.tsx';
import { hasPricing } from '../parts/owner-draft.ts';
import { kindNames } from '../parts/owner-names.ts';
import { pricingLines } from '../parts/price-words.ts';
import { addressOf } from '../parts/router.ts';
import { exactly } from '../parts/text.ts';
import { showToast } from '../parts/toasts.tsx';
import { OwnerKeys } from './owner-keys.tsx';

/** An owner with its limits and keys, and the actions on it. */
export function OwnerDetail({
  owner,
  onClose,
  onEdit,
}: {
  readonly owner: OwnerView;
  readonly onClose: () => void;
  readonly onEdit: () => void;
}) {
  const queries = useQueryClient();
  const { id, name, enabled } = owner;
  const [asking, setAsking] = useState<string>();
  const settled = (): Promise<void> => {
    setAsking(undefined);
    return queries.invalidateQueries({ queryKey: ['owners'] });
  };
  const change = useMutation({
    mutationFn: (on: boolean) => api.switchOwner(id, on),
    onSuccess: (_changed, on) =>
      showToast(on ? `${name} is enabled.` : `${name} is disabled. Calls with its keys are refused.`),
    onSettled: settled,
  });
  const remove = useMutation({
    mutationFn: () => api.deleteOwner(id),
    onSuccess: () => {
      showToast(`${name} is deleted.`);
      onClose();
    },
    onSettled: settled,
  });
  const busy = change.isPending || remove.isPending;
  return (
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
              Its API keys stop working within a second, until each is moved to another owner. Its records in
              the usage log stay.
            </p>
          ),
        },
        enabled
          ? {
              name: 'Disable',
              run: () => change.mutate(false),
              ask: <p>Calls with its API keys are refused within a second, until it is enabled again.</p>,
            }
          : { name: 'Enable', run: () => change.mutate(true) },
        { name: 'Edit', kind: 'primary', run: onEdit },
      ]}
    >
      <Facts owner={owner} />
      {owner.kind === 'organisation' ? (
        <p>
          <a href={addressOf('owners', { organisation: id })}>Show its teams, members and service accounts</a>
        </p>
      ) : (
        <OwnerKeys owner={owner} />
      )}
    </DetailSheet>
  );
}

function Facts({ owner }: { readonly owner: OwnerView }) {
  const { id, kind, note, enabled, models, budgets, endUserBudget, addresses, organisation, createdAt } =
    owner;
  const limits = limitsOf(owner);
  const parent = useQuery({
    queryKey: ['owners', 'one', organisation],
    queryFn: () => api.owner(organisation ?? ''),
    enabled: organisation !== undefined,
    retry: false,
  });
  return (
    <dl className="facts">
      <dt>Kind</dt>
      <dd>{kindNames[kind].one}</dd>
      <dt>State</dt>
      <dd>
        <OwnerState enabled={enabled} />
      </dd>
      <dt>Id</dt>
      <dd className="mono">{id}</dd>
      {organisation !== undefined && (
        <>
          <dt>Organisation</dt>
          <dd>
            <a href={addressOf('owners', { owner: organisation })}>{parent.data?.name ?? organisation}</a>
          </dd>
        </>
      )}
      {note !== undefined && (
        <>
          <dt>Note</dt>
          <dd>{note}</dd>
        </>
      )}
      <dt>Models</dt>
      <dd>
        <ModelTags models={models} most={200} />
      </dd>
      <dt>Budgets</dt>
      <dd className="stack">
        <BudgetBars budgets={budgets} />
      </dd>
      <dt>Each end user</dt>
      <dd>
        <EndUserBudget budget={endUserBudget} />
      </dd>
      {hasPricing(kind) && (
        <>
          <dt>Price rule</dt>
          <dd>
            <PriceRule owner={owner} />
          </dd>
        </>
      )}
      <dt>Limits</dt>
      <dd>{limits.length === 0 ? 'none' : limits.join(', ')}</dd>
      <dt>Addresses</dt>
      <dd>{addresses === undefined ? 'all' : <Tags values={addresses} most={500} />}</dd>
      <dt>Created</dt>
      <dd>{exactly(createdAt)}</dd>
    </dl>
  );
}

/** Shows what budgets are charged, in a line for each model. */
function PriceRule({ owner: { kind, organisation, pricing } }: { readonly owner: OwnerView }) {
  if (pricing === undefined)
    return kind === 'team' && organisation !== undefined ? 'that of its organisation' : 'none: the cost';
  return pricingLines(pricing).map(([about, text]) => (
    <span key={about} className="line">
      <span className="tag">{about}</span> {text}
    </span>
  ));
}
