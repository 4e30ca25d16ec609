/** A conflicting change of an entry during an edit. */
import type { ConfigEntryView } from '../../../admin/schemas/index.ts';
import { configApi, type ConfigName } from '../parts/config-api.ts';
import { ago } from '../parts/text.ts';
import { Differences } from '../parts/value-lines.tsx';

/** The current entry, and the actor who changed it. */
interface Conflict {
  readonly now: ConfigEntryView;
  readonly actor: string;
}

/** Reads the entry and its last change. */
export async function findConflict(named: ConfigName): Promise<Conflict> {
  const [now, { records }] = await Promise.all([configApi.find(named), configApi.history(undefined)]);
  const id = `${named.kind}:${named.name}`;
  const last = records.find(({ changes }) => changes.some((change) => change.id === id));
  return { now, actor: last?.actor ?? 'Somebody else' };
}

/** Says what the other has changed, and asks whose values stay. */
export function ConfigConflict({
  base,
  conflict: { now, actor },
  onTake,
  onKeep,
}: {
  readonly base: ConfigEntryView;
  readonly conflict: Conflict;
  readonly onTake: (now: ConfigEntryView) => void;
  readonly onKeep: (now: ConfigEntryView) => void;
}) {
  return (
    <div className="notice warn conflict" role="alert">
      <p>
        <strong>{actor}</strong> has changed this {ago(now.updatedAt)}, while you edited it:
      </p>
      <Differences before={base.value} after={now.value} />
      {base.state !== now.state && (
        <p className="small">
          It is <strong>{now.state}</strong> now.
        </p>
      )}
      <div className="row">
        <button type="button" className="button small" onClick={() => onTake(now)}>
          Discard mine
        </button>
        <button type="button" className="button small" onClick={() => onKeep(now)}>
          Save mine over it
        </button>
      </div>
    </div>
  );
}
