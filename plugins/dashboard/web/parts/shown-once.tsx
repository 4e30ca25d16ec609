/** A secret that cannot be shown again. */
import type { ReactNode } from 'react';
import { Copy } from './copy.tsx';
import { Dialog } from './dialog.tsx';

/** Shows a secret, this once. It closes by its button alone. */
export function ShownOnce({
  title,
  intro,
  value,
  onClose,
  children,
}: {
  readonly title: string;
  readonly intro: ReactNode;
  readonly value: string;
  readonly onClose: () => void;
  readonly children?: ReactNode;
}) {
  return (
    <Dialog
      title={title}
      firm
      onClose={onClose}
      bottom={
        <button type="button" className="button primary" onClick={onClose}>
          I have copied it
        </button>
      }
    >
      <p>{intro}</p>
      <div className="secret">
        <code data-secret>{value}</code>
        <Copy text={value} />
      </div>
      {children}
    </Dialog>
  );
}
