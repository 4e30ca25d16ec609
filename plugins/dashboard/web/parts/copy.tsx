import { useState } from 'react';
import { Icon } from './icons.tsx';

/** Copies a text and shows a message. If the clipboard is not allowed (plain HTTP on a foreign host), the message has instructions. */
export function Copy({ text, label = 'Copy' }: { readonly text: string; readonly label?: string }) {
  const [state, setState] = useState<'idle' | 'done' | 'refused'>('idle');
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      setState('done');
    } catch {
      setState('refused');
    }
    setTimeout(() => setState('idle'), 4_000);
  };
  return (
    <button type="button" className="button small" onClick={() => void copy()}>
      <Icon name="copy" />
      <span aria-live="polite">
        {state === 'done' ? 'Copied' : state === 'refused' ? 'Select it and press Ctrl-C' : label}
      </span>
    </button>
  );
}
