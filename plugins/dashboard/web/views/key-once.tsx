/** Shows a new secret of a key once, with warnings. */
import type { KeyWithValue } from '../../../admin/schemas/index.ts';
import { ShownOnce } from '../parts/shown-once.tsx';

/** Shows a secret, this once. It closes by its button alone. */
export function OnceOnly({ made, onClose }: { readonly made: KeyWithValue; readonly onClose: () => void }) {
  const { key, value, warnings } = made;
  return (
    <ShownOnce
      title="Copy your API key now"
      intro={
        <>
          This is the key <strong>{key.name}</strong>. It is shown only this once: the gateway keeps nothing
          from which it could be shown again.
        </>
      }
      value={value}
      onClose={onClose}
    >
      <Warnings warnings={warnings} />
      <p className="muted small">
        It works at once, in every format. Keep it on servers; a key that got out is rotated or deleted here.
      </p>
    </ShownOnce>
  );
}

/** Warnings about what is allowed but looks like a mistake. */
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
