/** Reads lists of MCP servers, which come in pages. */
import type { RequestOptions } from '@modelcontextprotocol/client';
import { GatewayError } from 'sluice';

/** Maximum number of pages of one list. */
const maxPages = 64;

/** Page of a list. */
export interface Page<T> {
  readonly entries: readonly T[];
  readonly nextCursor?: string | undefined;
}

/** Parameters of the request for a page: none for the first one. */
export interface PageCursor {
  readonly params?: { readonly cursor: string };
}

/** Limits of one list. */
export interface PageLimits {
  /** Name of the server, for errors. */
  readonly name: string;
  readonly maxEntries: number;
  /** Maximum number of bytes of all entries as JSON. */
  readonly maxBytes: number;
}

/** Reads all pages within the time of `options`. Throws when there are more entries, pages or bytes than allowed. */
export async function readPages<T>(
  read: (cursor: PageCursor, options: RequestOptions) => Promise<Page<T>>,
  { timeout = 60_000, ...options }: RequestOptions,
  { name, maxEntries, maxBytes }: PageLimits,
): Promise<readonly T[]> {
  const deadline = performance.now() + timeout;
  const all: T[] = [];
  let bytes = 0;
  let cursor: PageCursor = {};
  for (let page = 0; page < maxPages; page += 1) {
    const left = Math.max(1, Math.ceil(deadline - performance.now()));
    // oxlint-disable-next-line no-await-in-loop -- each page names the next one
    const { entries, nextCursor } = await read(cursor, { ...options, timeout: left, maxTotalTimeout: left });
    for (const entry of entries) all.push(entry);
    bytes += Buffer.byteLength(JSON.stringify(entries));
    if (all.length > maxEntries || bytes > maxBytes) break;
    if (nextCursor === undefined) return all;
    cursor = { params: { cursor: nextCursor } };
  }
  throw new GatewayError('upstream_error', `The MCP server "${name}" returns too many list entries.`, {
    origin: 'upstream',
  });
}
