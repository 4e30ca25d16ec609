/** Reads names of keys and owners from the database, for threads that hold no copies of them. */
import { parseObject } from '../../json/parse.ts';
import type { Query } from '../database/long-reads.ts';

/** Maximum number of names in one query. */
const batchSize = 500;

/** Returns the names of existing and deleted keys by id. */
export async function storedKeyNames(
  query: Query,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const names = await namesIn(query, 'SELECT id, name FROM api_keys WHERE id', ids, unescaped);
  const gone = ids.filter((id) => !names.has(id));
  for (const [id, name] of await namesIn(query, entriesOf('api-keys-deleted'), gone, (text) => {
    const value = valueIn(text);
    return typeof value === 'string' ? unescaped(value) : undefined;
  }))
    names.set(id, name);
  return names;
}

/** Returns the names of existing owners by id. */
export async function storedOwnerNames(
  query: Query,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  return namesIn(query, entriesOf('owners'), ids, (text) => {
    const value = valueIn(text);
    return typeof value === 'object' && value !== null && 'name' in value && typeof value.name === 'string'
      ? unescaped(value.name)
      : undefined;
  });
}

/** Decodes a text of an entry, in which a leading colon is doubled. */
export function unescaped(text: string): string {
  return text.startsWith('::') ? text.slice(1) : text;
}

const entriesOf = (namespace: string): string =>
  `SELECT key AS id, value AS name FROM keyv WHERE namespace = '${namespace}' AND key`;

function valueIn(text: string): unknown {
  return parseObject(text)?.['value'];
}

async function namesIn(
  query: Query,
  select: string,
  ids: readonly string[],
  nameIn: (text: string) => string | undefined,
): Promise<Map<string, string>> {
  const names = new Map<string, string>();
  for (let start = 0; start < ids.length; start += batchSize) {
    const some = ids.slice(start, start + batchSize);
    // Pads to a power of two, because each statement is cached.
    const length = 2 ** Math.ceil(Math.log2(some.length));
    const values = Array.from({ length }, (_, index) => some[index] ?? some[0] ?? '');
    // oxlint-disable-next-line no-await-in-loop -- one query at a time, however many ids there are
    for (const { id, name } of await query(`${select} IN (${values.map(() => '?').join()})`, values)) {
      const found = nameIn(String(name));
      if (found !== undefined) names.set(String(id), found);
    }
  }
  return names;
}
