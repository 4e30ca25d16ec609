/** Reads lists of the admin API, page by page. */
import { z } from 'zod';
import type { JsonObject } from '../../model/json.ts';
import type { AdminRequester } from '../remote.ts';
import { CommandFailure } from './failure.ts';
import type { Operation } from './operations.ts';

/** Default number of items of a list, and the maximum with `--all`. */
export const listLimits = { usual: 100, most: 100_000 } as const;

/** Maximum page size of most lists. */
const largestPage = 500;

/** Query of a list. */
export interface ListOptions {
  readonly operation: Operation;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  /** Member of the response that contains the list. */
  readonly member: string;
  readonly keeps: ((item: JsonObject) => boolean) | undefined;
  /** Maximum number of items; undefined for all. */
  readonly limit: number | undefined;
}

/** Items of a list. */
export interface ListedItems {
  readonly items: readonly JsonObject[];
  readonly hasMore: boolean;
  /** True when the list has pages. */
  readonly isPaged: boolean;
}

/** Reads the pages of a list until it has enough items. Rejects when `--all` exceeds the maximum. */
export async function readList(request: AdminRequester, options: ListOptions): Promise<ListedItems> {
  const { operation, member, keeps = () => true, limit } = options;
  const cursor = operation.fields.find(({ name }) => name === 'after' || name === 'before')?.name;
  const maximum = operation.fields.find(({ name }) => name === 'limit')?.schema['maximum'];
  const page = Math.min(typeof maximum === 'number' ? maximum : largestPage, largestPage);
  const most = limit ?? listLimits.most;
  const items: JsonObject[] = [];
  let next: string | undefined;
  let hasRest = false;
  do {
    const size = cursor === undefined ? most : Math.min(page, Math.max(1, most - items.length));
    const query = new URLSearchParams({
      ...options.query,
      ...(maximum !== undefined && { limit: String(Math.min(size, Number(maximum))) }),
      ...(cursor !== undefined && next !== undefined && { [cursor]: next }),
    });
    const answer = z
      .record(z.string(), z.json())
      // oxlint-disable-next-line no-await-in-loop -- each page begins where the one before ended
      .parse(await request(operation.method, `${options.path}?${query}`));
    const found = z.array(z.record(z.string(), z.json())).parse(answer[member] ?? []) as JsonObject[];
    for (const item of found) if (keeps(item)) items.push(item);
    const after = answer['next'];
    hasRest = answer['rest'] !== undefined;
    const isCursor = cursor !== undefined && (typeof after === 'string' || typeof after === 'number');
    next = isCursor ? String(after) : undefined;
  } while (next !== undefined && items.length < most);
  if (limit === undefined && next !== undefined)
    throw new CommandFailure(
      `The list has more than ${listLimits.most} items. Narrow it with other options, or set --limit.`,
    );
  return {
    items: items.slice(0, most),
    hasMore: next !== undefined || hasRest || items.length > most,
    isPaged: cursor !== undefined,
  };
}
