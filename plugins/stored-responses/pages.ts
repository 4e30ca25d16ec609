/** Pages of lists of items. */
import { wrongType, wrongValue, type JsonObject } from 'sluice';
import type { ItemPage, ItemQuery } from './core-types.ts';

const LIMIT = { usual: 20, most: 100 };

/** Returns which items a query requests. Throws 400 on nonsense. */
export function readPageQuery(query: URLSearchParams): ItemQuery {
  const order = query.get('order') ?? 'desc';
  if (order !== 'asc' && order !== 'desc') throw wrongValue('order', 'asc or desc');
  const after = query.get('after');
  return {
    order,
    limit: readLimit(query.get('limit')),
    ...(after === null || after === '' ? {} : { after }),
  };
}

function readLimit(text: string | null): number {
  if (text === null) return LIMIT.usual;
  if (!/^[+-]?\d+$/.test(text)) throw wrongType('limit', 'an integer');
  const limit = Number(text);
  if (limit < 1 || limit > LIMIT.most) throw wrongValue('limit', `between 1 and ${LIMIT.most}`);
  return limit;
}

/** Returns a page of items that are all in memory, oldest first. Undefined when `after` names none of them. */
export function pageOf(
  items: readonly JsonObject[],
  { order, limit, after }: ItemQuery,
): ItemPage | undefined {
  const ordered = order === 'asc' ? items : items.toReversed();
  const start = after === undefined ? 0 : ordered.findIndex((item) => item['id'] === after) + 1;
  if (after !== undefined && start === 0) return undefined;
  return { items: ordered.slice(start, start + limit), hasMore: ordered.length > start + limit };
}

/** Encodes a page. Throws 400 when the item in `after` does not exist. */
export function pageBody(page: ItemPage | undefined): JsonObject {
  if (page === undefined) throw wrongValue('after', 'the id of an item in this list');
  return listBody(page.items, page.hasMore);
}

/** Items as a list goes over the wire. */
export function listBody(items: readonly JsonObject[], hasMore: boolean): JsonObject {
  return {
    object: 'list',
    data: items,
    first_id: items[0]?.['id'] ?? null,
    last_id: items.at(-1)?.['id'] ?? null,
    has_more: hasMore,
  };
}
