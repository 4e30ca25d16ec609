/** Light and dark theme: the choice, which the browser keeps, and colours for canvases. */
import { useSyncExternalStore } from 'react';

/** `system` follows the operating system. */
export type Theme = 'system' | 'light' | 'dark';

const storageKey = 'sluice-theme';
const themes: readonly Theme[] = ['system', 'light', 'dark'];
const watchers = new Set<() => void>();

function stored(): Theme {
  const found = localStorage.getItem(storageKey);
  return themes.find((theme) => theme === found) ?? 'system';
}

function apply(theme: Theme): void {
  if (theme === 'system') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = theme;
  for (const watcher of watchers) watcher();
}

/** Puts on what was chosen last, and follows the system from then on. */
export function startTheme(): void {
  apply(stored());
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => apply(stored()));
}

/** Goes from system to light to dark and back. */
export function nextTheme(): void {
  const next = themes[(themes.indexOf(stored()) + 1) % themes.length] ?? 'system';
  localStorage.setItem(storageKey, next);
  apply(next);
}

const watch = (watcher: () => void): (() => void) => {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
};

/** Theme that is chosen now. */
export function useTheme(): Theme {
  return useSyncExternalStore(watch, stored);
}

/** True while the page is dark, chosen or by the system: for what is drawn, not styled. */
export function useIsDark(): boolean {
  return useSyncExternalStore(watch, () => {
    const theme = stored();
    return theme === 'system' ? matchMedia('(prefers-color-scheme: dark)').matches : theme === 'dark';
  });
}

/** A colour of the style sheet (`--accent`) as a canvas understands it. */
export function colour(name: string): string {
  const probe = document.createElement('span');
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}
