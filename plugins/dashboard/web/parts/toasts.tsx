/** Short messages that disappear by themselves. */
import { useSyncExternalStore } from 'react';

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly kind: 'plain' | 'bad';
}

let toasts: readonly Toast[] = [];
let last = 0;
const watchers = new Set<() => void>();

function change(next: readonly Toast[]): void {
  toasts = next;
  for (const watcher of watchers) watcher();
}

/** Tells the operator something that passes by itself. */
export function showToast(text: string, kind: Toast['kind'] = 'plain'): void {
  const id = (last += 1);
  change([...toasts.slice(-3), { id, text, kind }]);
  setTimeout(() => change(toasts.filter((toast) => toast.id !== id)), kind === 'bad' ? 9_000 : 4_000);
}

const watch = (watcher: () => void): (() => void) => {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
};

/** Shows the messages of {@link showToast}, also to screen readers. */
export function Toasts() {
  const shown = useSyncExternalStore(watch, () => toasts);
  return (
    <div className="toasts" role="status" aria-live="polite">
      {shown.map(({ id, text, kind }) => (
        <div key={id} className={`toast ${kind}`}>
          {text}
        </div>
      ))}
    </div>
  );
}
