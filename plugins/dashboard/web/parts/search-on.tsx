/** Goes on with a list whose pages may end before they are full. */
import type { InfiniteData, UseInfiniteQueryResult } from '@tanstack/react-query';
import { useEffect, useState } from 'react';

/** Maximum number of pages that are fetched in sequence without a click. */
const mostSearches = 5;

/**
 * Goes on where a page ended before it was full, because the gateway reads a bounded number of records for each: a few times by itself, and then
 * on a click. `isShort`: the last page is such a page.
 */
export function useSearch(
  { data, hasNextPage, isFetching, isError, isPlaceholderData, fetchNextPage }: Search,
  limit: number,
  filter: unknown,
): { readonly isShort: boolean; readonly isSearching: boolean; readonly goOn: () => void } {
  const pages = data?.pages.length ?? 0;
  const [allowed, setAllowed] = useState({ filter, pages: mostSearches });
  const isShort = hasNextPage && (data?.pages.at(-1)?.records.length ?? 0) < limit;
  const isAllowed = pages < (allowed.filter === filter ? allowed.pages : mostSearches);
  const goesOn = isShort && isAllowed && !isError && !isPlaceholderData;
  useEffect(() => {
    if (goesOn && !isFetching) void fetchNextPage();
  }, [goesOn, isFetching, fetchNextPage]);
  return {
    isShort,
    isSearching: goesOn || isFetching,
    goOn: () => setAllowed({ filter, pages: pages + mostSearches }),
  };
}

/** Members of a page query that a search needs. */
type Search = Pick<
  UseInfiniteQueryResult<InfiniteData<{ readonly records: readonly unknown[] }>>,
  'data' | 'hasNextPage' | 'isFetching' | 'isError' | 'isPlaceholderData' | 'fetchNextPage'
>;

/** The button that goes on with a search, and how far it has come. */
export function GoOn({
  search,
  notes,
}: {
  readonly search: ReturnType<typeof useSearch>;
  readonly notes: string;
}) {
  return (
    <>
      {search.isShort && (
        <button type="button" className="button small" disabled={search.isSearching} onClick={search.goOn}>
          {search.isSearching ? 'Searching…' : 'Search older calls'}
        </button>
      )}
      {notes !== '' && <span>{notes}</span>}
    </>
  );
}
