/** Reads API keys from the database for administration: pages, searches, ids, names and counts. */
import type { ApiKey } from '../../sdk/api-key.ts';
import type { Database } from '../database/index.ts';
import { operatorReads, type Query } from '../database/long-reads.ts';
import { rows, sqlOf, type Row } from '../database/sql.ts';
import type { Filling } from './filling.ts';
import type { KeyPage } from './index.ts';
import { scopeCondition, type KeyScope } from './key-scope.ts';
import { unescaped } from './stored-names.ts';
import { ownedBy, searching, searchingInScope, type Found, type OwnedBy, type Search } from './search.ts';

/** Maximum number of keys or names in one query. */
const batchSize = 500;

/** Maximum time for which {@link KeyDirectory.names} waits until older keys are in the table, in milliseconds. */
const namesPatienceMs = 1_000;

/** Maximum number of keys with one name that an error lists. */
export const mostMeant = 20;

/** Decodes a stored entry; undefined for an invalid one. */
type Decode = (row: string, text: string) => Promise<ApiKey | undefined>;

/**
 * SQL for keys with their entries in one statement, because a key that is rotated between two statements would appear to be deleted.
 */
const withEntries = `SELECT e.key, e.value FROM api_keys k JOIN keyv e ON e.namespace = 'api-keys' AND e.key = k.hash`;

/** Greater than every place. */
const end = '9223372036854775807';

/** All keys in the database. Each query uses an index; no key is kept in memory. */
export class KeyDirectory {
  readonly #filling: Filling;
  readonly #decode: Decode;
  readonly #kind: Database['kind'];
  readonly #search: Search;
  readonly #ownedBy: OwnedBy;
  readonly #searchInScope: ReturnType<typeof searchingInScope>;
  /** For short reads by an index. */
  readonly #query: Query;

  constructor(database: Database, filling: Filling, decode: Decode, window?: number) {
    this.#filling = filling;
    this.#decode = decode;
    this.#kind = database.kind;
    this.#searchInScope = searchingInScope(database.kind, operatorReads(database));
    this.#search = searching(database.kind, operatorReads(database), window);
    this.#ownedBy = ownedBy(database.kind, operatorReads(database));
    this.#query = (sql, values) => sqlOf(database).run(() => rows(sql, ...values));
  }

  /** Returns a page, newest first: see `ApiKeys.page`. */
  async page(
    limit: number,
    after?: string,
    search?: string,
    owner?: string,
    scope?: KeyScope,
  ): Promise<KeyPage> {
    await this.#filling.done();
    const before = after === undefined ? end : parseCursor(after);
    const text = search?.replaceAll('\0', '\uFFFD') ?? '';
    const { rows: places, unread }: Found =
      scope !== undefined
        ? { rows: await this.#searchInScope({ ...scope, owner }, text, before, limit + 1) }
        : owner !== undefined
          ? { rows: await this.#ownedBy(owner, text, before, limit + 1) }
          : text === ''
            ? {
                rows: await this.#query(
                  `SELECT CAST(place AS TEXT) AS place, hash FROM api_keys WHERE place < CAST(? AS BIGINT) ORDER BY api_keys.place DESC LIMIT ?`,
                  [before, limit + 1],
                ),
              }
            : await this.#search(text, before, limit + 1);
    const keys = await this.#keysOf(places.slice(0, limit));
    const last = places[limit - 1];
    const next = places.length > limit ? last?.['place'] : unread;
    return next === undefined ? { keys } : { keys, next: BigInt(String(next)).toString(36) };
  }

  /** True when there is no entry of a key. */
  async isEmpty(): Promise<boolean> {
    return (await this.#query("SELECT 1 FROM keyv WHERE namespace = 'api-keys' LIMIT 1", [])).length === 0;
  }

  /** Counts the keys of a scope. */
  async count(scope: KeyScope): Promise<number> {
    const { sql, values } = scopeCondition(this.#kind, scope);
    const [found] = await this.#query(
      `SELECT COUNT(*) AS count FROM keyv e WHERE e.namespace = 'api-keys' AND ${sql}`,
      values,
    );
    return Number(found?.['count'] ?? 0);
  }

  /** Returns the key with this id. */
  async byId(id: string): Promise<ApiKey | undefined> {
    await this.#filling.done();
    const found = await this.#query(`${withEntries} WHERE k.id = ? LIMIT 1`, [id]);
    return (await this.#decoded(found))[0];
  }

  /** Returns the keys with these ids, in any order. Keys that are gone are left out. */
  async byIds(ids: readonly string[]): Promise<ApiKey[]> {
    await this.#filling.done();
    const keys: ApiKey[] = [];
    for (let start = 0; start < ids.length; start += batchSize) {
      const some = ids.slice(start, start + batchSize);
      // oxlint-disable-next-line no-await-in-loop -- one query at a time, however many ids there are
      const found = await this.#among(`${withEntries} WHERE k.id`, some);
      // oxlint-disable-next-line no-await-in-loop
      for (const key of await this.#decoded(found)) keys.push(key);
    }
    return keys;
  }

  /** Returns the names of keys by their ids, without keys that are not in the table yet, because a view without some names is better than none. */
  async names(ids: readonly string[]): Promise<Map<string, string>> {
    await this.#filling.done(namesPatienceMs).catch(() => {});
    const names = new Map<string, string>();
    for (let start = 0; start < ids.length; start += batchSize) {
      const some = ids.slice(start, start + batchSize);
      // oxlint-disable-next-line no-await-in-loop -- one query at a time, however many ids there are
      const found = await this.#among('SELECT id, name FROM api_keys WHERE id', some);
      for (const { id, name } of found) names.set(String(id), unescaped(String(name)));
    }
    return names;
  }

  /** Returns keys with this name or these first characters, oldest first: at most one more than errors list. */
  async meant(which: string): Promise<ApiKey[]> {
    await this.#filling.done();
    const [prefix = '', suffix, ...rest] = which.replace('...', '…').split('…');
    const found = await this.#query(
      `${withEntries}
       WHERE k.name = ? ${rest.length > 0 ? '' : suffix === undefined ? 'OR k.prefix = ?' : 'OR (k.prefix = ? AND k.suffix = ?)'}
       ORDER BY k.place LIMIT ?`,
      [
        escaped(which),
        ...(rest.length > 0 ? [] : [prefix, ...(suffix === undefined ? [] : [suffix])]),
        mostMeant + 1,
      ],
    );
    return this.#decoded(found);
  }

  /** Runs a query for these values. Pads their number to a power of two, because each statement is cached. */
  #among(select: string, some: readonly string[]): Promise<readonly Row[]> {
    const length = 2 ** Math.ceil(Math.log2(some.length));
    const values = Array.from({ length }, (_, index) => some[index] ?? some[0] ?? '');
    return this.#query(`${select} IN (${values.map(() => '?').join()})`, values);
  }

  /** Returns the keys of these rows, in their order. Invalid ones are left out. */
  async #keysOf(found: readonly Row[]): Promise<ApiKey[]> {
    const hashes = found.map(({ hash }) => String(hash));
    if (hashes.length === 0) return [];
    const entries = await this.#among(
      "SELECT key, value FROM keyv WHERE namespace = 'api-keys' AND key",
      hashes,
    );
    const byHash = new Map(entries.map((entry) => [String(entry['key']), entry] as const));
    return this.#decoded(hashes.map((hash) => byHash.get(hash)).filter((entry) => entry !== undefined));
  }

  /** Returns the keys of entries, in their order. Invalid ones are left out. */
  async #decoded(entries: readonly Row[]): Promise<ApiKey[]> {
    const keys = await Promise.all(entries.map(({ key, value }) => this.#decode(String(key), String(value))));
    return keys.filter((key) => key !== undefined);
  }
}

/** Returns the position in a cursor. Returns 0, which is before all keys, for an invalid cursor. */
function parseCursor(after: string): string {
  if (!/^[0-9a-z]{1,12}$/.test(after)) return '0';
  const position = [...after].reduce((sum, digit) => sum * 36n + BigInt(Number.parseInt(digit, 36)), 0n);
  return String(position);
}

/** Escapes a text as entries do: a leading colon is doubled. */
function escaped(text: string): string {
  return text.startsWith(':') ? `:${text}` : text;
}
