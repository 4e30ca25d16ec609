/** Frame around values that belong together in a form, and buttons that add and remove one. */
import type { ReactNode } from 'react';
import { Icon } from './icons.tsx';

/** A group of values with its name. */
export function Box({
  label,
  hint,
  problem,
  children,
}: {
  readonly label: string;
  readonly hint: string | undefined;
  readonly problem: string | undefined;
  readonly children: ReactNode;
}) {
  return (
    <fieldset className="part">
      <legend>{label}</legend>
      {hint !== undefined && <p className="hint">{hint}</p>}
      {problem !== undefined && <p className="problem">{problem}</p>}
      {children}
    </fieldset>
  );
}

/** Removes a value. */
export function RemoveButton({ what, onRemove }: { readonly what: string; readonly onRemove: () => void }) {
  return (
    <button type="button" className="button small plain" aria-label={`Remove ${what}`} onClick={onRemove}>
      <Icon name="close" />
    </button>
  );
}

/** Adds a value. */
export function AddButton({ label, onAdd }: { readonly label: string; readonly onAdd: () => void }) {
  return (
    <div>
      <button type="button" className="button small" aria-label={`Add to ${label}`} onClick={onAdd}>
        <Icon name="plus" />
        Add
      </button>
    </div>
  );
}
