import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { KeysChange, KeysChanged } from '../../../admin/schemas/index.ts';
import { api } from '../parts/api.ts';
import { Confirm } from '../parts/dialog.tsx';
import { OwnerPicker } from '../parts/owner-picker.tsx';
import { count } from '../parts/text.ts';
import { showToast } from '../parts/toasts.tsx';

type Action = KeysChange['action'];

/** Number of keys in one request. The server takes at most 100. */
const batchSize = 100;

const texts: Readonly<
  Record<
    Action,
    { readonly action: string; readonly title: string; readonly done: string; readonly text: string }
  >
> = {
  enable: {
    action: 'Enable',
    title: 'Enable',
    done: 'enabled',
    text: 'Calls with these keys are accepted again.',
  },
  disable: {
    action: 'Disable',
    title: 'Disable',
    done: 'disabled',
    text: 'Calls with these keys are refused within a second, until they are enabled again.',
  },
  delete: {
    action: 'Delete',
    title: 'Delete',
    done: 'deleted',
    text: 'Calls with these keys are refused within a second. Their records in the usage log stay.',
  },
  move: {
    action: 'Move',
    title: 'Move to a team',
    done: 'moved',
    text: 'The limits of the new team hold for these keys. Without a team, those of their members hold alone.',
  },
};
const actions = ['enable', 'disable', 'move', 'delete'] as const;

/** Changes keys in batches. `team` is where keys move; empty for none. */
async function changeKeys(ids: readonly string[], action: Action, team: string): Promise<KeysChanged> {
  const changed: string[] = [];
  const failures: KeysChanged['failed'] = [];
  for (let start = 0; start < ids.length; start += batchSize) {
    const some = ids.slice(start, start + batchSize);
    // oxlint-disable-next-line no-await-in-loop -- one batch at a time, to leave the gateway room for calls
    const result = await api.changeKeys({
      action,
      ids: some,
      ...(action === 'move' && { team: team === '' ? null : team }),
    });
    changed.push(...result.changed);
    failures.push(...result.failed);
  }
  return { changed, failed: failures };
}

/** Actions on the selected keys. `onDone` is called with the keys that could not be changed. */
export function BulkActions({
  ids,
  onDone,
}: {
  readonly ids: readonly string[];
  readonly onDone: (left: readonly string[]) => void;
}) {
  const queries = useQueryClient();
  const [asking, setAsking] = useState<Action>();
  const [team, setTeam] = useState('');
  const [failed, setFailed] = useState<KeysChanged['failed']>([]);
  const change = useMutation({
    mutationFn: (action: Action) => changeKeys(ids, action, team),
    onSuccess(result, action) {
      showToast(`${keysText(result.changed.length)} ${texts[action].done}.`);
      setFailed(result.failed);
      onDone(result.failed.map(({ id }) => id));
    },
    onSettled() {
      setAsking(undefined);
      return queries.invalidateQueries({ queryKey: ['keys'] });
    },
  });
  return (
    <div className="bulk" role="group" aria-label="Selected keys">
      <span>{keysText(ids.length)} selected</span>
      {actions.map((action) => (
        <button
          key={action}
          type="button"
          className={`button small ${action === 'delete' ? 'danger' : ''}`}
          onClick={() => setAsking(action)}
        >
          {texts[action].title}
        </button>
      ))}
      <button type="button" className="button small plain" onClick={() => onDone([])}>
        Clear selection
      </button>
      {failed.length > 0 && (
        <div className="notice bad" role="alert">
          <ul>
            {failed.map(({ id, message }) => (
              <li key={id}>
                <code>{id}</code>: {message}
              </li>
            ))}
          </ul>
        </div>
      )}
      {asking !== undefined && (
        <Confirm
          title={`${texts[asking].action} ${keysText(ids.length)}?`}
          action={change.isPending ? 'Working…' : texts[asking].action}
          busy={change.isPending}
          onYes={() => change.mutate(asking)}
          onNo={() => setAsking(undefined)}
        >
          <p>{texts[asking].text}</p>
          {asking === 'move' && (
            <OwnerPicker label="Team" kinds={['team']} value={team} onChange={(id) => setTeam(id)} />
          )}
        </Confirm>
      )}
    </div>
  );
}

const keysText = (number: number): string => `${count(number)} ${number === 1 ? 'key' : 'keys'}`;
