/** Reads the pagination parameters of list requests, and writes pages of objects, in the form of each API. */
import { wrongType, wrongValue, type JsonObject, type JsonValue, type Call } from 'sluice';
import type { ObjectStore, ProviderObject } from './core-types.ts';
import { isId, kindOf, type Collection } from './collections.ts';
import { ownerOf } from './owner.ts';

/** Number of rows that are read at a time where they are filtered. */
const batch = 200;

/** Objects of a page, and the body of the response. */
export interface Page {
  readonly objects: readonly ProviderObject[];
  /** Returns the body with the descriptions of these objects, of which some may be deleted meanwhile. */
  body(seen: readonly JsonObject[]): JsonObject;
}

/** Reads a page of the caller's objects. Throws 400 for invalid query parameters. */
export async function pageOf(call: Call, collection: Collection, store: ObjectStore): Promise<Page> {
  const { query } = call.wire;
  const longest = collection.longestPage;
  const list = lister(call, collection, store, longest);
  switch (collection.format) {
    case 'chat-completions': {
      const order = query.get('order') ?? 'desc';
      if (order !== 'asc' && order !== 'desc') throw wrongValue('order', 'asc or desc');
      const purpose = query.get('purpose') ?? undefined;
      const found = await list({
        order,
        size: 'limit',
        usual: longest,
        after: 'after',
        before: 'before',
        purpose,
      });
      return { ...found, body: (data) => listed(data, found.hasMore) };
    }
    case 'messages': {
      // `page` is how the current SDK goes on, `after_id` and `before_id` are how others do.
      const after = query.has('page') ? 'page' : 'after_id';
      const found = await list({ order: 'desc', size: 'limit', usual: 20, after, before: 'before_id' });
      return {
        ...found,
        body(data) {
          const { object: _, ...page } = listed(data, found.hasMore);
          return { ...page, next_page: found.hasMore ? (found.objects.at(-1)?.id ?? null) : null };
        },
      };
    }
    case 'generate-content': {
      const found = await list({ order: 'desc', size: 'pageSize', usual: 50, after: 'pageToken' });
      const last = found.objects.at(-1)?.id;
      return {
        ...found,
        body: (data) => ({
          ...(data.length === 0 ? {} : { [collection.listed]: data as readonly JsonValue[] as JsonValue[] }),
          ...(found.hasMore && last !== undefined ? { nextPageToken: last } : {}),
        }),
      };
    }
  }
}

function listed(data: readonly JsonObject[], hasMore: boolean): JsonObject {
  return {
    object: 'list',
    data: [...data],
    first_id: data[0]?.['id'] ?? null,
    last_id: data.at(-1)?.['id'] ?? null,
    has_more: hasMore,
  };
}

interface Wanted {
  readonly order: 'asc' | 'desc';
  /** Names of the query parameters, and the number of objects (`usual`) where the query has none. */
  readonly size: string;
  readonly usual: number;
  readonly after: string;
  readonly before?: string;
  readonly purpose?: string | undefined;
}

interface Listed {
  readonly objects: readonly ProviderObject[];
  readonly hasMore: boolean;
}

function lister(call: Call, collection: Collection, store: ObjectStore, longest: number) {
  const { query } = call.wire;
  const idOf = (name: string | undefined): string | undefined => {
    const id = name === undefined ? '' : (query.get(name) ?? '');
    if (id !== '' && !isId(id)) throw invalidCursor(name ?? '', collection);
    return id === '' ? undefined : id;
  };
  return async ({ order, size, usual, purpose, ...names }: Wanted): Promise<Listed> => {
    const limit = sizeIn(query, size, Math.min(usual, longest), longest);
    const before = idOf(names.before);
    let after = before === undefined ? idOf(names.after) : undefined;
    const found: ProviderObject[] = [];
    for (;;) {
      const wanted = purpose === undefined ? limit - found.length : batch;
      // oxlint-disable-next-line no-await-in-loop -- each page follows the one before
      const page = await store.list(ownerOf(call), kindOf(collection), {
        order,
        limit: wanted,
        ...(after === undefined ? {} : { after }),
        ...(before === undefined ? {} : { before }),
      });
      if (page === undefined)
        throw invalidCursor((before === undefined ? names.after : names.before) ?? '', collection);
      const fitting = page.objects.filter(({ seen }) => purpose === undefined || seen['purpose'] === purpose);
      const isCut = fitting.length > limit - found.length;
      for (const one of fitting.slice(0, limit - found.length)) found.push(one);
      if (!page.hasMore || found.length === limit || before !== undefined)
        return { objects: found, hasMore: page.hasMore || isCut };
      after = page.objects.at(-1)?.id;
    }
  };
}

function invalidCursor(name: string, { noun }: Collection): ReturnType<typeof wrongValue> {
  return wrongValue(name, `the id of a ${noun} in this list`);
}

function sizeIn(query: URLSearchParams, name: string, usual: number, most: number): number {
  const text = query.get(name);
  if (text === null || text === '') return usual;
  if (!/^\d{1,6}$/.test(text)) throw wrongType(name, 'an integer');
  const size = Number(text);
  if (size < 1) throw wrongValue(name, 'at least 1');
  return Math.min(size, most);
}
