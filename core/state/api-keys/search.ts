import type { Database } from '../database/index.ts';
import type { Ask } from '../database/long-reads.ts';
import type { Row } from '../database/sql.ts';
import { scopeCondition, type KeyScope } from './key-scope.ts';

/** Keys that a search has found: their places and hashes, newest first. */
export interface Found {
  readonly rows: readonly Row[];
  /** The place of the oldest key that was looked at; absent when there was nothing left to look at. */
  readonly unread?: string;
}

/** Finds the newest keys before a place that a text selects. */
export type Search = (text: string, before: string, limit: number) => Promise<Found>;

/** Fewest characters of a text that the indexes know. */
const shortest = 3;

/** Newest keys that are looked at one by one: what most keys have is found among them. */
const near = 2_000;

/** Keys that are put in order. What more keys have than that is found soon by going on from the newest. */
const mostSorted = 20_000;

/** Newest keys that one search for a short text looks at, which no index knows: some tens of milliseconds. The next page goes on. */
export const mostLookedAt = 25_000;

/** Returns the search of a kind of database. `window`: how many keys one search for a short text looks at. */
export function searching(kind: Database['kind'], ask: Ask, window = mostLookedAt): Search {
  const short = kind === 'sqlite' ? shortInSqlite : shortInPostgres;
  const long = kind === 'sqlite' ? inSqlite(ask) : inPostgres(ask);
  return async (text, before, limit) => {
    if ([...text].length >= shortest) return { rows: await long(text, before, limit) };
    const [end] = await ask(
      'SELECT CAST(place AS TEXT) AS place FROM api_keys WHERE place < CAST(? AS BIGINT) ORDER BY api_keys.place DESC LIMIT 1 OFFSET ?',
      [before, window - 1],
    );
    const since = String(end?.['place'] ?? '0');
    const rows = await short(ask, text, since, before, limit);
    return end === undefined || rows.length >= limit ? { rows } : { rows, unread: since };
  };
}

/** Finds what a text selects among the keys of some places. */
type ShortSearch = (
  ask: Ask,
  text: string,
  since: string,
  before: string,
  limit: number,
) => Promise<readonly Row[]>;

const selectsInSqlite =
  '(instr(lower(name), lower(?)) OR instr(lower(note), lower(?)) OR instr(lower(id), lower(?)) OR instr(lower(prefix), lower(?)) = 1)';

const shortInSqlite: ShortSearch = (ask, text, since, before, limit) =>
  ask(
    `SELECT CAST(place AS TEXT) AS place, hash FROM api_keys
     WHERE place >= CAST(? AS BIGINT) AND place < CAST(? AS BIGINT)
       AND ${selectsInSqlite}
     ORDER BY api_keys.place DESC LIMIT ?`,
    [since, before, text, text, text, text, limit],
  );

const shortInPostgres: ShortSearch = (ask, text, since, before, limit) =>
  ask(
    `SELECT place::text AS place, hash FROM api_keys WHERE place >= ?::bigint AND place < ?::bigint AND ${matches}
     ORDER BY api_keys.place DESC LIMIT ?`,
    [since, before, text, text, limit],
  );

/** A search by an index. */
type LongSearch = (text: string, before: string, limit: number) => Promise<readonly Row[]>;

function inSqlite(ask: Ask): LongSearch {
  return (text, before, limit) => {
    const phrase = `"${text.replaceAll('"', '""')}"`;
    return ask(
      `SELECT CAST(k.place AS TEXT) AS place, k.hash FROM api_keys_text t JOIN api_keys k ON k.place = t.rowid
       WHERE api_keys_text MATCH ? AND t.rowid < CAST(? AS BIGINT) ORDER BY t.rowid DESC LIMIT ?`,
      [`{name note id} : ${phrase} OR prefix : ^ ${phrase}`, before, limit],
    );
  };
}

/** The first characters stand last among the words, on a line of their own. */
const matches = `(strpos(left(words, length(words) - length(prefix)), api_key_lower(?)) > 0 OR starts_with(lower(prefix), api_key_lower(?)))`;

/** An index of Postgres does not give what it finds in order. So what is frequent is found by going through all in order, what is rare by the index. */
function inPostgres(ask: Ask): LongSearch {
  return async (text, before, limit) => {
    const newest = await ask(
      `SELECT place::text AS place, hash FROM
         (SELECT * FROM api_keys WHERE place < ?::bigint ORDER BY place DESC LIMIT ${near}) AS near
       WHERE ${matches} ORDER BY near.place DESC LIMIT ?`,
      [before, text, text, limit],
    );
    if (newest.length >= limit) return newest;
    const found = await ask(
      `WITH found AS MATERIALIZED (
         SELECT place, hash FROM api_keys
         WHERE api_key_grams(words) @> api_key_grams(api_key_lower(?)) AND place < ?::bigint AND ${matches} LIMIT ${mostSorted + 1}
       )
       SELECT place::text AS place, hash, (SELECT COUNT(*) FROM found) AS count FROM found ORDER BY found.place DESC LIMIT ?`,
      [text, before, text, text, limit],
    );
    if (Number(found[0]?.['count'] ?? 0) <= mostSorted) return found;
    return ask(
      `SELECT place::text AS place, hash FROM api_keys WHERE place < ?::bigint AND ${matches} ORDER BY api_keys.place DESC LIMIT ?`,
      [before, text, text, limit],
    );
  };
}

/** Finds the newest keys of an owner before a place, all of them or those that a text selects. */
export type OwnedBy = (owner: string, text: string, before: string, limit: number) => Promise<readonly Row[]>;

/** Returns the search among the keys of one owner. It reads all of the owner's keys, by an index. */
export function ownedBy(kind: Database['kind'], ask: Ask): OwnedBy {
  const selects = kind === 'sqlite' ? selectsInSqlite : matches;
  const texts = kind === 'sqlite' ? 4 : 2;
  return (owner, text, before, limit) =>
    ask(
      `SELECT CAST(k.place AS TEXT) AS place, k.hash FROM api_keys_owners o JOIN api_keys k ON k.hash = o.hash
       WHERE o.owner = ? AND k.place < CAST(? AS BIGINT)${text === '' ? '' : ` AND ${selects}`} ORDER BY k.place DESC LIMIT ?`,
      [owner, before, ...Array.from({ length: text === '' ? 0 : texts }, () => text), limit],
    );
}

/** Returns the search among the keys of a scope: those that a text selects, which may be empty. */
export function searchingInScope(kind: Database['kind'], ask: Ask) {
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
    return ask(
      `SELECT CAST(k.place AS TEXT) AS place, k.hash AS hash FROM api_keys k
       JOIN keyv e ON e.namespace = 'api-keys' AND e.key = k.hash
       WHERE k.place < CAST(? AS BIGINT) AND ${sql} ${text === '' ? '' : `AND ${has}`}
       ${owner === undefined ? '' : 'AND k.hash IN (SELECT o.hash FROM api_keys_owners o WHERE o.owner = ?)'}
       ORDER BY k.place DESC LIMIT ?`,
      [before, ...values, ...texts, ...(owner === undefined ? [] : [owner]), limit],
    );
  };
}
