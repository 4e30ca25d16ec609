import type { Database } from '../database/index.ts';
import type { Ask } from '../database/long-reads.ts';
import type { Row } from '../database/sql.ts';

/** Finds the newest keys before a place that a text selects: their places and hashes, newest first. */
export type Search = (text: string, before: string, limit: number) => Promise<readonly Row[]>;

/** Fewest characters of a text that the indexes know. */
const shortest = 3;

/** Newest keys that are looked at one by one: what most keys have is found among them. */
const near = 2_000;

/** Keys that are put in order. What more keys have than that is found soon by going on from the newest. */
const mostSorted = 20_000;

/** Returns the search of a kind of database. */
export function searching(kind: Database['kind'], ask: Ask): Search {
  return kind === 'sqlite' ? inSqlite(ask) : inPostgres(ask);
}

function inSqlite(ask: Ask): Search {
  return (text, before, limit) => {
    if ([...text].length < shortest)
      return ask(
        `SELECT CAST(place AS TEXT) AS place, hash FROM api_keys
         WHERE place < CAST(? AS BIGINT) AND (instr(lower(name), lower(?)) OR instr(lower(note), lower(?)) OR instr(lower(id), lower(?))
           OR instr(lower(prefix), lower(?)) = 1)
         ORDER BY api_keys.place DESC LIMIT ?`,
        [before, text, text, text, text, limit],
      );
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
function inPostgres(ask: Ask): Search {
  return async (text, before, limit) => {
    const newest = await ask(
      `SELECT place::text AS place, hash FROM
         (SELECT * FROM api_keys WHERE place < ?::bigint ORDER BY place DESC LIMIT ${near}) AS near
       WHERE ${matches} ORDER BY near.place DESC LIMIT ?`,
      [before, text, text, limit],
    );
    if (newest.length >= limit) return newest;
    if ([...text].length >= shortest) {
      const found = await ask(
        `WITH found AS MATERIALIZED (
           SELECT place, hash FROM api_keys
           WHERE api_key_grams(words) @> api_key_grams(api_key_lower(?)) AND place < ?::bigint AND ${matches} LIMIT ${mostSorted + 1}
         )
         SELECT place::text AS place, hash, (SELECT COUNT(*) FROM found) AS count FROM found ORDER BY found.place DESC LIMIT ?`,
        [text, before, text, text, limit],
      );
      if (Number(found[0]?.['count'] ?? 0) <= mostSorted) return found;
    }
    return ask(
      `SELECT place::text AS place, hash FROM api_keys WHERE place < ?::bigint AND ${matches} ORDER BY api_keys.place DESC LIMIT ?`,
      [before, text, text, limit],
    );
  };
}
