/** Shows lists and data that load, fail, are empty or have further pages. */
import type { ReactNode } from 'react';
import { Icon } from './icons.tsx';
import { count as counted } from './text.ts';

/** While data is on its way for the first time. */
export function Loading({ what }: { readonly what: string }) {
  return (
    <div className="state" role="status">
      <span className="spinner" />
      <span className="visually-hidden">Loading {what}</span>
    </div>
  );
}

/** Stands in the place of an empty list, with what to do about it. */
export function Empty({ title, children }: { readonly title: string; readonly children?: ReactNode }) {
  return (
    <div className="state">
      <Icon name="empty" />
      <strong>{title}</strong>
      {children}
    </div>
  );
}

/** Stands in the place of data that could not be loaded. */
export function Failed({ error, again }: { readonly error: Error; readonly again?: () => void }) {
  return (
    <div className="state" role="alert">
      <Icon name="warning" />
      <strong>Request failed</strong>
      <p>{error.message}</p>
      {again !== undefined && (
        <button type="button" className="button small" onClick={again}>
          Try again
        </button>
      )}
    </div>
  );
}

interface Asked<T> {
  readonly data: T | undefined;
  readonly error: Error | null;
  readonly refetch: () => unknown;
}

/** Shows loaded data, otherwise the loading or error state. After a failed reload, older data stays on the page with a message. */
export function Await<T>({
  query,
  what,
  children,
}: {
  readonly query: Asked<T>;
  readonly what: string;
  readonly children: (data: T) => ReactNode;
}) {
  const { data, error, refetch } = query;
  if (data === undefined) {
    return error === null ? <Loading what={what} /> : <Failed error={error} again={() => void refetch()} />;
  }
  return (
    <>
      {error !== null && (
        <p className="notice warn" role="alert">
          This is no longer fresh: {error.message}
        </p>
      )}
      {children(data)}
    </>
  );
}

interface Paged {
  readonly hasNextPage: boolean;
  readonly isFetchingNextPage: boolean;
  readonly fetchNextPage: () => unknown;
}

/** Button for the next page of a list; nothing after the last. */
export function MoreButton({
  query: { hasNextPage, isFetchingNextPage, fetchNextPage },
  label = 'Show more',
}: {
  readonly query: Paged;
  readonly label?: string;
}) {
  if (!hasNextPage) return null;
  return (
    <button
      type="button"
      className="button small"
      disabled={isFetchingNextPage}
      onClick={() => void fetchNextPage()}
    >
      {isFetchingNextPage ? 'Loading…' : label}
    </button>
  );
}

/** Foot of a list whose pages come from the server: how many are shown, and a button for more. */
export function More({
  query,
  count,
  one,
  many,
  children,
}: {
  readonly query: Paged;
  readonly count: number;
  readonly one: string;
  readonly many: string;
  readonly children?: ReactNode;
}) {
  if (count === 0) return null;
  return (
    <div className="table-foot">
      {counted(count)} {count === 1 ? one : many}
      <MoreButton query={query} />
      {children}
    </div>
  );
}
