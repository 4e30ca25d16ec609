import { useQueryClient } from '@tanstack/react-query';
import type { NewOwner, OwnerView } from '../../../admin/schemas/index.ts';
import { api } from '../parts/api.ts';
import { useEdit } from '../parts/edit.ts';
import { Field, TextField } from '../parts/fields.tsx';
import { FormDialog, useForm } from '../parts/form.tsx';
import { LimitFields } from '../parts/limit-fields.tsx';
import { changesOfOwner, draftOfOwner, hasPricing, readOwner } from '../parts/owner-draft.ts';
import { kindNames, ownerKinds } from '../parts/owner-names.ts';
import { OwnerPicker } from '../parts/owner-picker.tsx';
import { PriceFields } from '../parts/price-fields.tsx';
import { changeQuery } from '../parts/router.ts';
import { showToast } from '../parts/toasts.tsx';

/** Properties of the form of an owner. */
interface OwnerFormProps {
  readonly owner: OwnerView | undefined;
  /** Kind and organisation of a new owner, until others are chosen. */
  readonly kind: OwnerView['kind'];
  readonly organisation: string;
  readonly onClose: () => void;
}

function useOwnerForm(
  owner: OwnerView | undefined,
  kind: OwnerView['kind'],
  organisation: string,
  onClose: () => void,
) {
  const queries = useQueryClient();
  const edit = useEdit(owner, () => api.owner(owner?.id ?? ''));
  return useForm({
    initial: () => ({ ...draftOfOwner(owner, kind), ...(owner === undefined && { organisation }) }),
    read: readOwner,
    save(read: NewOwner) {
      if (owner === undefined) return api.createOwner(read);
      const changes = changesOfOwner(owner, read);
      return edit(changes, (version) => api.updateOwner(owner.id, changes, version));
    },
    onSaved(saved) {
      void queries.invalidateQueries({ queryKey: ['owners'] });
      onClose();
      showToast(`${saved.name} is saved.`);
      if (owner === undefined) changeQuery({ owner: saved.id });
    },
    withoutProblem: (typed) => [
      ...(owner === undefined ? [] : (['kind'] as const)),
      ...(typed.kind === 'organisation' ? (['organisation'] as const) : []),
      ...(hasPricing(typed.kind) ? [] : (['pricing'] as const)),
    ],
  });
}

/** The form of a new owner, or of one to change. */
export function OwnerForm({ owner, kind, organisation, onClose }: OwnerFormProps) {
  const form = useOwnerForm(owner, kind, organisation, onClose);
  const { draft, problems, set } = form;
  return (
    <FormDialog
      title={owner === undefined ? 'Add an organisation, team or member' : `Edit ${owner.name}`}
      action={owner === undefined ? 'Create' : 'Save'}
      form={form}
      onClose={onClose}
    >
      <TextField
        label="Name"
        problem={problems.name}
        autoFocus
        value={draft.name}
        onChange={(name) => set({ name })}
      />
      <div className="grid halves">
        {owner === undefined && (
          <Field label="Kind" problem={problems.kind}>
            {(props) => (
              <select
                {...props}
                value={draft.kind}
                onChange={({ target }) => set({ kind: target.value as OwnerView['kind'] })}
              >
                {ownerKinds.map((one) => (
                  <option key={one} value={one}>
                    {kindNames[one].one}
                  </option>
                ))}
              </select>
            )}
          </Field>
        )}
        {draft.kind !== 'organisation' && (
          <OwnerPicker
            label="Organisation"
            kinds={['organisation']}
            problem={problems.organisation}
            value={draft.organisation}
            onChange={(id) => set({ organisation: id })}
          />
        )}
      </div>
      <p className="muted small">These limits hold for all API keys of this owner together.</p>
      <LimitFields draft={draft} problems={problems} onChange={set} />
      {hasPricing(draft.kind) && (
        <PriceFields
          rule={draft.pricing}
          isOfTeam={draft.kind === 'team'}
          problems={problems}
          onChange={(pricing) => set({ pricing })}
        />
      )}
      <TextField label="Note" problem={problems.note} value={draft.note} onChange={(note) => set({ note })} />
    </FormDialog>
  );
}
