/** Modal dialogs, also for confirmation. */
import { useLayoutEffect, useRef, type ReactNode } from 'react';
import { Icon } from './icons.tsx';

/**
 * A modal dialog: the browser keeps the focus inside, gives it back afterwards, and closes on Escape. It is open while it is rendered.
 * `firm` ones close by their buttons alone, so that what is shown once is not lost to a slip.
 */
export function Dialog({
  title,
  onClose,
  children,
  bottom,
  kind = '',
  firm = false,
}: {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ReactNode;
  readonly bottom?: ReactNode;
  readonly kind?: '' | 'narrow' | 'sheet';
  readonly firm?: boolean;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  // Closed before it leaves the page: only then does the browser give the focus back.
  useLayoutEffect(() => {
    const element = dialog.current;
    element?.showModal();
    return () => element?.close();
  }, []);
  return (
    <dialog
      ref={dialog}
      className={kind}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault();
        if (!firm) onClose();
      }}
      onMouseDown={(event) => {
        if (event.target === dialog.current && !firm) onClose();
      }}
    >
      <div className="inside">
        <div className="top">
          <h2>{title}</h2>
          {!firm && (
            <button type="button" className="button small plain close" aria-label="Close" onClick={onClose}>
              <Icon name="close" />
            </button>
          )}
        </div>
        <div className="middle">{children}</div>
        {bottom !== undefined && <div className="bottom">{bottom}</div>}
      </div>
    </dialog>
  );
}

/** Asks before something that cannot be undone. */
export function Confirm({
  title,
  action,
  busy,
  onYes,
  onNo,
  children,
}: {
  readonly title: string;
  readonly action: string;
  readonly busy: boolean;
  readonly onYes: () => void;
  readonly onNo: () => void;
  readonly children: ReactNode;
}) {
  return (
    <Dialog
      title={title}
      onClose={onNo}
      kind="narrow"
      bottom={
        <>
          <button type="button" className="button" onClick={onNo}>
            Cancel
          </button>
          <button type="button" className="button primary danger" disabled={busy} onClick={onYes}>
            {action}
          </button>
        </>
      }
    >
      {children}
    </Dialog>
  );
}
