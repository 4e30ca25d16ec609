import { useQueryClient } from '@tanstack/react-query';
import type { ChangedKey, KeyView, KeyWithValue, NewKey } from '../../../admin/schemas/index.ts';
import { api } from '../parts/api.ts';
import { useEdit } from '../parts/edit.ts';
import { TextField } from '../parts/fields.tsx';
import { FormDialog, useForm } from '../parts/form.tsx';
import { changesOf, draftOf, readDraft } from '../parts/key-draft.ts';
import { LimitFields } from '../parts/limit-fields.tsx';
import { OwnerPicker } from '../parts/owner-picker.tsx';
import { showToast } from '../parts/toasts.tsx';

/** Properties of the form of a key. */
interface KeyFormProps {
  readonly apiKey: KeyView | undefined;
  /** Owners of a new key. */
  readonly owner?: { readonly team?: string; readonly member?: string };
  readonly onClose: () => void;
  readonly onMade: (made: KeyWithValue) => void;
}

function useKeyForm(
  apiKey: KeyView | undefined,
  owner: NonNullable<KeyFormProps['owner']>,
  onClose: () => void,
  onMade: (made: KeyWithValue) => void,
) {
  const queries = useQueryClient();
  const edit = useEdit(apiKey, () => api.key(apiKey?.id ?? ''));
  return useForm({
    initial: () => ({ ...draftOf(apiKey), ...(apiKey === undefined && owner) }),
    read: readDraft,
    save(key: NewKey): Promise<KeyWithValue | ChangedKey> {
      if (apiKey === undefined) return api.createKey(key);
      const changes = changesOf(apiKey, key);
      return edit(changes, (version) => api.updateKey(apiKey.id, changes, version));
    },
    onSaved(answer) {
      void queries.invalidateQueries({ queryKey: ['keys'] });
      onClose();
      if ('value' in answer) onMade(answer);
      else showToast([`${answer.key.name} is saved.`, ...answer.warnings].join(' '));
    },
    withoutProblem: () => ['callTags'],
  });
}

/** The form of a new key, or of one to change. */
export function KeyForm({ apiKey, owner = {}, onClose, onMade }: KeyFormProps) {
  const form = useKeyForm(apiKey, owner, onClose, onMade);
  const { draft, problems, set } = form;
  return (
    <FormDialog
      title={apiKey === undefined ? 'Add API key' : `Edit ${apiKey.name}`}
      action={apiKey === undefined ? 'Create key' : 'Save'}
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
        <OwnerPicker
          label="Team"
          kinds={['team']}
          problem={problems.team}
          value={draft.team}
          onChange={(team) => set({ team })}
        />
        <OwnerPicker
          label="Member or service account"
          kinds={['member', 'service-account']}
          problem={problems.member}
          value={draft.member}
          onChange={(member) => set({ member })}
        />
      </div>
      <LimitFields
        draft={draft}
        problems={problems}
        onChange={set}
        beside={
          <TextField
            label="Expires"
            hint="Empty: never."
            type="datetime-local"
            problem={problems.expiresAt}
            value={draft.expiresAt}
            onChange={(expiresAt) => set({ expiresAt })}
          />
        }
      />
      <TextField
        label="Tags"
        hint="Words by which usage is summed up, separated by commas. A tag may have spaces."
        problem={problems.tags}
        value={draft.tags}
        onChange={(tags) => set({ tags })}
      />
      <label className="check">
        <input
          type="checkbox"
          checked={draft.callTags}
          onChange={({ target }) => set({ callTags: target.checked })}
        />
        <span>
          Calls may bring further tags in <code>x-sluice-tags</code>
        </span>
      </label>
      <TextField
        label="Note"
        hint="For you: what the key is for."
        problem={problems.note}
        value={draft.note}
        onChange={(note) => set({ note })}
      />
    </FormDialog>
  );
}
