/** Lists of resources: filter, order, page, and the attributes that are wanted (RFC 7644, section 3.4.2). */
import type { JsonObject, JsonValue } from 'sluice';
import { withoutUrn } from './attributes.ts';
import { ScimError } from './errors.ts';
import { attributePath, elementsAt, matches, parseFilter, type Filter } from './filter.ts';

/** Resources of a page: usually, and at most. */
const page = { usual: 100, most: 200 };

/** A question for a list. */
export interface ListQuery {
  readonly filter: Filter | undefined;
  readonly startIndex: number;
  readonly count: number;
  readonly sortBy: string | undefined;
  readonly isDescending: boolean;
  /** True when the filter or the order may look at `meta`. */
  readonly usesMeta: boolean;
}

/** Things that a list shows as resources. */
export interface Listed<One> {
  readonly all: readonly One[];
  readonly resource: (one: One) => JsonObject;
  /** Same as `resource`, without `meta`, because its version requires a hash. */
  readonly fields: (one: One) => JsonObject;
}

/** The attributes that a request wants. Paths are in lower case. */
export interface Wanted {
  readonly attributes: ReadonlySet<string> | undefined;
  readonly excluded: ReadonlySet<string>;
}

/** Reads the parameters of a list from a query. */
export function listQuery(query: URLSearchParams): ListQuery {
  const filter = query.get('filter');
  const sortBy = query.get('sortBy');
  return {
    filter: filter === null || filter.trim() === '' ? undefined : parseFilter(filter),
    startIndex: Math.max(1, wholeNumber(query, 'startIndex') ?? 1),
    count: Math.min(page.most, Math.max(0, wholeNumber(query, 'count') ?? page.usual)),
    sortBy: sortBy === null ? undefined : attributePath(sortBy, 'invalidPath'),
    isDescending: query.get('sortOrder')?.toLowerCase() === 'descending',
    usesMeta: /meta/i.test(`${filter} ${sortBy}`),
  };
}

/** Reads which attributes a query wants. */
export function wantedIn(query: URLSearchParams): Wanted {
  const attributes = namesIn(query, 'attributes');
  return { attributes, excluded: namesIn(query, 'excludedAttributes') ?? new Set() };
}

/** Returns true unless nobody wants to see this attribute. */
export function isWanted({ attributes, excluded }: Wanted, name: string): boolean {
  if (excluded.has(name)) return false;
  return (
    attributes === undefined || [...attributes].some((one) => one === name || one.startsWith(`${name}.`))
  );
}

/** Returns the response to a question about these things. Without a filter and an order only those of the page are made into resources. */
export function listResponse<One>(listed: Listed<One>, query: ListQuery, wanted: Wanted): JsonObject {
  const { startIndex, count } = query;
  const fitting = fittingOf(listed, query);
  const shown = fitting
    .slice(startIndex - 1, startIndex - 1 + count)
    .map((one) => reduced(listed.resource(one), wanted));
  return {
    schemas: ['urn:ietf:params:scim:api:messages:2.0:ListResponse'],
    totalResults: fitting.length,
    startIndex,
    itemsPerPage: shown.length,
    Resources: shown,
  };
}

/** Returns the things that match the filter, in the requested order. */
function fittingOf<One>(
  { all, fields, resource }: Listed<One>,
  { filter, sortBy, isDescending, usesMeta }: ListQuery,
): readonly One[] {
  if (filter === undefined && sortBy === undefined) return all;
  const entries = all
    .map((one) => ({ one, compared: usesMeta ? resource(one) : fields(one) }))
    .filter(({ compared }) => filter === undefined || matches(filter, compared));
  return (sortBy === undefined ? entries : inOrder(entries, sortBy, isDescending)).map(({ one }) => one);
}

/** Returns the resource with the attributes that are wanted; schemas and id are always there. */
export function reduced(resource: JsonObject, { attributes, excluded }: Wanted): JsonObject {
  if (attributes === undefined && excluded.size === 0) return resource;
  const kept: Record<string, JsonValue> = {};
  for (const [name, value] of Object.entries(resource)) {
    if (value === undefined) continue;
    const lower = name.toLowerCase();
    const isAlways = lower === 'schemas' || lower === 'id';
    if (isAlways || isWanted({ attributes, excluded }, lower))
      kept[name] = isAlways ? value : reducedValue(value, lower, { attributes, excluded });
  }
  return kept;
}

/** Removes the parts of a complex value that were not requested. */
function reducedValue(value: JsonValue, name: string, wanted: Wanted): JsonValue {
  if (Array.isArray(value))
    return (value as readonly JsonValue[]).map((one) => reducedValue(one, name, wanted));
  if (typeof value !== 'object' || value === null) return value;
  const { attributes, excluded } = wanted;
  const isWhole = attributes === undefined || attributes.has(name);
  return Object.fromEntries(
    Object.entries(value).filter(([part]) => {
      const path = `${name}.${part.toLowerCase()}`;
      return !excluded.has(path) && (isWhole || attributes.has(path));
    }),
  );
}

function inOrder<Entry extends { readonly compared: JsonObject }>(
  entries: readonly Entry[],
  path: string,
  isDescending: boolean,
): Entry[] {
  const sign = isDescending ? -1 : 1;
  const keyed = entries.map((entry) => ({ entry, key: sortKey(entry.compared, path) }));
  // Resources without the attribute come last in both orders.
  keyed.sort((a, b) =>
    a.key === b.key ? 0 : a.key === undefined ? 1 : b.key === undefined ? -1 : a.key < b.key ? -sign : sign,
  );
  return keyed.map(({ entry }) => entry);
}

function sortKey(resource: JsonObject, path: string): string | undefined {
  const [first] = elementsAt(resource, path);
  const value = typeof first === 'object' && first !== null ? (first as JsonObject)['value'] : first;
  return value === undefined ? undefined : String(value).toLowerCase();
}

function namesIn(query: URLSearchParams, name: string): ReadonlySet<string> | undefined {
  const text = query.get(name);
  if (text === null || text.trim() === '') return undefined;
  return new Set(
    text
      .split(',')
      .slice(0, 100)
      .map((one) => pathOf(one.trim())),
  );
}

function pathOf(text: string): string {
  return (withoutUrn(text) ?? text).toLowerCase();
}

function wholeNumber(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null || text === '') return undefined;
  if (!/^-?\d{1,9}$/.test(text)) throw new ScimError(400, `${name} must be a whole number.`, 'invalidValue');
  return Number(text);
}
