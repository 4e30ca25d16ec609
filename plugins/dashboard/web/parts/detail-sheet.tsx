/** A sheet about one thing, with the actions on it at the bottom. */
import type { ReactNode } from 'react';
import { Confirm, Dialog } from './dialog.tsx';

/** A button at the bottom of a sheet. */
export interface SheetAction {
  readonly name: string;
  readonly kind?: 'danger' | 'primary';
  readonly run: () => void;
  /** Question before it runs; absent for an action that runs at once. */
  readonly ask?: ReactNode;
}

/** Shows one thing and its actions. `asking` is the name of the action that waits for an answer; its owner ends that when the action is over. */
export function DetailSheet({
  title,
  actions,
  busy,
  asking,
  onAsk,
  onClose,
  children,
}: {
  readonly title: string;
  readonly actions: readonly SheetAction[];
  readonly busy: boolean;
  readonly asking: string | undefined;
  readonly onAsk: (name: string | undefined) => void;
  readonly onClose: () => void;
  readonly children: ReactNode;
}) {
  const asked = actions.find(({ name, ask }) => name === asking && ask !== undefined);
  return (
    <>
      <Dialog
        title={title}
        kind="sheet"
        onClose={onClose}
        bottom={actions.map(({ name, kind, run, ask }, place) => (
          // By its place, so that the button that turns from one name to the other keeps the focus.
          <button
            key={place}
            type="button"
            className={kind === undefined ? 'button' : `button ${kind}`}
            disabled={busy}
            onClick={() => (ask === undefined ? run() : onAsk(name))}
          >
            {name}
          </button>
        ))}
      >
        {children}
      </Dialog>
      {asked !== undefined && (
        <Confirm
          title={`${asked.name} ${title}?`}
          action={asked.name}
          busy={busy}
          onYes={asked.run}
          onNo={() => onAsk(undefined)}
        >
          {asked.ask}
        </Confirm>
      )}
    </>
  );
}
