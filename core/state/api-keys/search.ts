/** Searches API keys by text, owner and scope, with the indexes of each kind of database. */
import type { Database } from '../database/index.ts';
import type { Query } from '../database/long-reads.ts';
import type { Row } from '../database/sql.ts';
import { scopeCondition, type KeyScope } from './key-scope.ts';

/** Result of a search: places and hashes of keys, newest first. */
export interface Found {
  readonly rows: readonly Row[];
  /** Place of the oldest key that was searched; absent when none are left. */
  readonly unread?: string;
}

/** Finds the newest keys before a place that match a text. */
export type Search = (text: string, before: string, limit: number) => Promise<Found>;

/** Minimum number of characters for which an index can be used. */
const shortest = 3;

/** Number of newest keys that are scanned first: a frequent text is found among them. */
const near = 2_000;

/** Maximum number of keys that are sorted. A text that more keys have is found sooner by a scan from the newest. */
const mostSorted = 20_000;

/** Maximum number of keys that one search for a short text, which has no index, scans: some tens of milliseconds. The next page continues. */
export const mostLookedAt = 25_000;

/** Returns the search of a kind of database. `window`: number of keys that one search for a short text scans. */
export function searching(kind: Database['kind'], query: Query, window = mostLookedAt): Search {
  const short = kind === 'sqlite' ? shortInSqlite : shortInPostgres;
  const long = kind === 'sqlite' ? inSqlite(query) : inPostgres(query);
  return async (text, before, limit) => {
    if ([...text].length >= shortest) return { rows: await long(text, before, limit) };
    const [end] = await query(
      'SELECT CAST(place AS TEXT) AS place FROM api_keys WHERE place < CAST(? AS BIGINT) ORDER BY api_keys.place DESC LIMIT 1 OFFSET ?',
      [before, window - 1],
    );
    const since = String(end?.['place'] ?? '0');
    const rows = await short(query, text, since, before, limit);
    return end === undefined || rows.length >= limit ? { rows } : { rows, unread: since };
  };
}

/** Finds keys in a range of places that match a text. */
type ShortSearch = (
  query: Query,
  text: string,
  since: string,
  before: string,
  limit: number,
) => Promise<readonly Row[]>;

const selectsInSqlite =
  '(instr(lower(name), lower(?)) OR instr(lower(note), lower(?)) OR instr(lower(id), lower(?)) OR instr(lower(prefix), lower(?)) = 1)';

const shortInSqlite: ShortSearch = (query, text, since, before, limit) =>
  query(
    `SELECT CAST(place AS TEXT) AS place, hash FROM api_keys
     WHERE place >= CAST(? AS BIGINT) AND place < CAST(? AS BIGINT)
       AND ${selectsInSqlite}
     ORDER BY api_keys.place DESC LIMIT ?`,
    [since, before, text, text, text, text, limit],
  );

const shortInPostgres: ShortSearch = (query, text, since, before, limit) =>
  query(
    `SELECT place::text AS place, hash FROM api_keys WHERE place >= ?::bigint AND place < ?::bigint AND ${matches}
     ORDER BY api_keys.place DESC LIMIT ?`,
    [since, before, text, text, limit],
  );

/** A search by an index. */
type LongSearch = (text: string, before: string, limit: number) => Promise<readonly Row[]>;

function inSqlite(query: Query): LongSearch {
  return (text, before, limit) => {
    const phrase = `"${text.replaceAll('"', '""')}"`;
    return query(
      `SELECT CAST(k.place AS TEXT) AS place, k.hash FROM api_keys_text t JOIN api_keys k ON k.place = t.rowid
       WHERE api_keys_text MATCH ? AND t.rowid < CAST(? AS BIGINT) ORDER BY t.rowid DESC LIMIT ?`,
      [`{name note id} : ${phrase} OR prefix : ^ ${phrase}`, before, limit],
    );
  };
}

/** SQL condition. `words` ends with the prefix of the key, on a line of its own. */
const matches = `(strpos(left(words, length(words) - length(prefix)), api_key_lower(?)) > 0 OR starts_with(lower(prefix), api_key_lower(?)))`;

/** PostgreSQL's index returns keys in no order. So a frequent text is found by a scan in order, a rare one by the index. */
function inPostgres(query: Query): LongSearch {
  return async (text, before, limit) => {
    const newest = await query(
      `SELECT place::text AS place, hash FROM
         (SELECT * FROM api_keys WHERE place < ?::bigint ORDER BY place DESC LIMIT ${near}) AS near
       WHERE ${matches} ORDER BY near.place DESC LIMIT ?`,
      [before, text, text, limit],
    );
    if (newest.length >= limit) return newest;
    const found = await query(
      `WITH found AS MATERIALIZED (
         SELECT place, hash FROM api_keys
         WHERE api_key_grams(words) @> api_key_grams(api_key_lower(?)) AND place < ?::bigint AND ${matches} LIMIT ${mostSorted + 1}
       )
       SELECT place::text AS place, hash, (SELECT COUNT(*) FROM found) AS count FROM found ORDER BY found.place DESC LIMIT ?`,
      [text, before, text, text, limit],
    );
    if (Number(found[0]?.['count'] ?? 0) <= mostSorted) return found;
    return query(
      `SELECT place::text AS place, hash FROM api_keys WHERE place < ?::bigint AND ${matches} ORDER BY api_keys.place DESC LIMIT ?`,
      [before, text, text, limit],
    );
  };
}

/** Finds the newest keys of an owner before a place, all of them or those that match a text. */
export type OwnedBy = (owner: string, text: string, before: string, limit: number) => Promise<readonly Row[]>;

/** Returns the search among the keys of one owner. It reads all of the owner's keys, by an index. */
export function ownedBy(kind: Database['kind'], query: Query): OwnedBy {
  const selects = kind === 'sqlite' ? selectsInSqlite : matches;
  const texts = kind === 'sqlite' ? 4 : 2;
  return (owner, text, before, limit) =>
    query(
      `SELECT CAST(k.place AS TEXT) AS place, k.hash FROM api_keys_owners o JOIN api_keys k ON k.hash = o.hash
       WHERE o.owner = ? AND k.place < CAST(? AS BIGINT)${text === '' ? '' : ` AND ${selects}`} ORDER BY k.place DESC LIMIT ?`,
      [owner, before, ...Array.from({ length: text === '' ? 0 : texts }, () => text), limit],
    );
}

/** Returns the search among the keys of a scope: those that match a text, which may be empty. */
export function searchingInScope(kind: Database['kind'], query: Query) {
  return (
    scope: KeyScope & { readonly owner: string | undefined },
    text: string,
    before: string,
    limit: number,
  ): Promise<readonly Row[]> => {
    const { owner } = scope;
    const { sql, values } = scopeCondition(kind, scope);
    const isSqlite = kind === 'sqlite';
    const has = isSqlite
      ? '(instr(lower(name), lower(?)) OR instr(lower(note), lower(?)) OR instr(lower(id), lower(?)) OR instr(lower(prefix), lower(?)) = 1)'
      : matches;
    const texts = text === '' ? [] : Array.from({ length: isSqlite ? 4 : 2 }, () => text);
    return query(
      `SELECT CAST(k.place AS TEXT) AS place, k.hash AS hash FROM api_keys k
       JOIN keyv e ON e.namespace = 'api-keys' AND e.key = k.hash
       WHERE k.place < CAST(? AS BIGINT) AND ${sql} ${text === '' ? '' : `AND ${has}`}
       ${owner === undefined ? '' : 'AND k.hash IN (SELECT o.hash FROM api_keys_owners o WHERE o.owner = ?)'}
       ORDER BY k.place DESC LIMIT ?`,
      [before, ...values, ...texts, ...(owner === undefined ? [] : [owner]), limit],
    );
  };
}
