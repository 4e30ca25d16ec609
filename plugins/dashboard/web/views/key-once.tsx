import type { KeyWithValue } from '../../../admin/schemas/index.ts';
import { Copy } from '../parts/copy.tsx';
import { Dialog } from '../parts/dialog.tsx';

/** Shows a secret, this once. It closes by its button alone. */
export function OnceOnly({ made, onClose }: { readonly made: KeyWithValue; readonly onClose: () => void }) {
  const { key, value, warnings } = made;
  return (
    <Dialog
      title="Copy your API key now"
      firm
      onClose={onClose}
      bottom={
        <button type="button" className="button primary" onClick={onClose}>
          I have copied it
        </button>
      }
    >
      <p>
        This is the key <strong>{key.name}</strong>. It is shown only this once: the gateway keeps nothing
        from which it could be shown again.
      </p>
      <div className="secret">
        <code data-secret>{value}</code>
        <Copy text={value} />
      </div>
      <Warnings warnings={warnings} />
      <p className="muted small">
        It works at once, in every format. Keep it on servers; a key that got out is rotated or deleted here.
      </p>
    </Dialog>
  );
}

/** What is allowed but looks like a mistake. */
export function Warnings({ warnings }: { readonly warnings: readonly string[] }) {
  if (warnings.length === 0) return null;
  return (
    <div className="notice warn" role="status">
      <ul>
        {warnings.map((warning) => (
          <li key={warning}>{warning}</li>
        ))}
      </ul>
    </div>
  );
}
