/** View and query of the page, which are kept in the part of its address behind `#`. */
import { useMemo, useSyncExternalStore } from 'react';

/** View that the page shows: `#/usage?model=x` is the view `usage` with a query. */
export interface Route {
  readonly view: string;
  readonly query: URLSearchParams;
}

const watch = (watcher: () => void): (() => void) => {
  addEventListener('hashchange', watcher);
  return () => removeEventListener('hashchange', watcher);
};

/** Returns the view and query of the address, and updates when the address changes. */
export function useRoute(): Route {
  const hash = useSyncExternalStore(watch, () => location.hash);
  return useMemo(() => {
    const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?', 2);
    return { view: path, query: new URLSearchParams(query) };
  }, [hash]);
}

/** An address within the page; members that are undefined or empty are left out. */
export function addressOf(view: string, query: Readonly<Record<string, string | undefined>> = {}): string {
  const filled = Object.entries(query).filter((entry): entry is [string, string] => Boolean(entry[1]));
  const text = new URLSearchParams(filled).toString();
  return `#/${view}${text === '' ? '' : `?${text}`}`;
}

/** Changes members of the query where the page is. `replace` leaves no step for the back button. */
export function changeQuery(
  changes: Readonly<Record<string, string | undefined>>,
  how: 'push' | 'replace' = 'push',
): void {
  const [path = '', text = ''] = location.hash.replace(/^#\/?/, '').split('?', 2);
  const address = addressOf(path, { ...Object.fromEntries(new URLSearchParams(text)), ...changes });
  if (how === 'push') location.hash = address;
  else location.replace(address);
}
