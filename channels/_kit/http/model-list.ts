/** Reads the paginated list of models of a provider, with prices where it states them. */
import {
  isObject,
  parseObject,
  type HttpClient,
  type JsonObject,
  type JsonValue,
  type PricedModel,
} from 'sluice';

/** Limits for one list: more than any provider has. */
const mostPages = 20;
const mostNames = 10_000;

/** Maximum number of prices of one entry: more than any model has hosts. */
const mostVariants = 100;

/** Members of a page that hold the cursor of the next one, and the query parameters that take it. */
const nextPages: readonly (readonly [
  cursorOf: (page: JsonObject) => JsonValue | undefined,
  parameter: string,
])[] = [
  [({ has_more: more, last_id: last }) => (more === true ? last : undefined), 'after_id'],
  [({ nextPageToken }) => nextPageToken, 'pageToken'],
  [({ next_page_token: next }) => next, 'page_token'],
];

/** Reads what the models of an entry cost: most entries are one model of that name. */
export type ListedPrices = (entry: JsonObject, name: string) => readonly PricedModel[];

/**
 * Asks a provider for its models, page by page: `data` or `models`, lists of objects with an `id` or a `name`. Rejects when it answers
 * anything else.
 */
export async function readModelList(
  http: HttpClient,
  address: string,
  headers: Readonly<Record<string, string>>,
  pricesIn?: ListedPrices,
): Promise<readonly (string | PricedModel)[]> {
  const url = new URL(address);
  const names: (string | PricedModel)[] = [];
  for (let page = 0; page < mostPages; page += 1) {
    const body = pageOf((await http.read({ url: url.href, headers })).toString());
    const entries = body?.['data'] ?? body?.['models'];
    if (body === undefined || !Array.isArray(entries))
      throw new Error('The response is not a list of models.');
    for (const entry of entries) {
      const name = isObject(entry) ? (entry['id'] ?? entry['name']) : undefined;
      if (typeof name !== 'string') continue;
      const plain = name.replace(/^models\//, '');
      names.push(plain);
      if (pricesIn === undefined || !isObject(entry)) continue;
      for (const priced of pricesIn(entry, plain).slice(0, mostVariants)) names.push(priced);
    }
    const [next] = nextPages.flatMap(([cursorOf, parameter]) => {
      const where = cursorOf(body);
      return typeof where === 'string' && where !== '' ? [[parameter, where] as const] : [];
    });
    if (next === undefined || entries.length === 0 || names.length > mostNames) break;
    url.searchParams.set(...next);
  }
  return names;
}

/** Parses a page. Some providers send the list without an object around it. */
function pageOf(text: string): JsonObject | undefined {
  return text.trimStart().startsWith('[') ? parseObject(`{"data":${text}}`) : parseObject(text);
}
