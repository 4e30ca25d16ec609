/** Reads the `cache-control` header of a request (RFC 9111). */
import type { Call } from 'sluice';

/** Directives of a client's `cache-control`: see RFC 9111, section 5.2.1. */
export interface Directives {
  /** The response must not come from the cache, but may be stored. */
  readonly noCache: boolean;
  /** The response must neither come from the cache nor be stored. */
  readonly noStore: boolean;
  /** Maximum age in seconds of a stored response. */
  readonly maxAge: number | undefined;
  readonly onlyIfCached: boolean;
}

const usual: Directives = { noCache: false, noStore: false, maxAge: undefined, onlyIfCached: false };

/** Maximum number of characters of the header that are read. */
const longest = 500;

/** Reads the `cache-control` header of a request. Unknown directives are ignored, as is a `max-age` that is no number. */
export function directivesOf({ wire: { headers } }: Call): Directives {
  const header = headers['cache-control'];
  if (header === undefined) return usual;
  const words = header
    .slice(0, longest)
    .toLowerCase()
    .split(',')
    .map((word) => word.trim());
  const age = words.find((word) => word.startsWith('max-age='))?.slice('max-age='.length);
  const digits = age?.replaceAll('"', '') ?? '';
  return {
    noCache: words.includes('no-cache'),
    noStore: words.includes('no-store'),
    maxAge: /^\d{1,10}$/.test(digits) ? Number(digits) : undefined,
    onlyIfCached: words.includes('only-if-cached'),
  };
}
