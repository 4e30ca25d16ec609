/** Rows about which a provider is asked, by one gateway at a time. */
import { row, rows, sqlOf, type Row, type Sql, type SqlValue, type Work } from '../state/database/sql.ts';
import type { Database } from '../state/database/index.ts';

/** Right to ask a provider about a row. */
export interface Lease {
  /** Name of the holder, which nobody else has. */
  readonly name: string;
  /** Time until the lease expires. */
  readonly milliseconds: number;
}

/** Table of leased rows. Besides the named columns it has `created`, `ask_at`, `lease` and `lease_until`. */
export interface LeasedTable {
  readonly name: string;
  /** Columns that name a row. The last one is `id`. */
  readonly key: readonly string[];
  /** Columns that are read. */
  readonly columns: string;
  /** Condition for a row about which its provider is still to be asked. */
  readonly open: string;
}

/** Which rows a page has. `after` and `before` are ids that the page follows, or stands in front of. */
export interface PageQuery {
  readonly order: 'asc' | 'desc';
  readonly limit: number;
  readonly after?: string | undefined;
  readonly before?: string | undefined;
  /** Number of rows that are left out first. Default: 0. */
  readonly skip?: number | undefined;
}

/** A page of rows, by the time at which they were made. */
export interface Page<Item> {
  readonly items: readonly Item[];
  readonly hasMore: boolean;
}

/** Reads, leases and removes rows of one table. Rows that `read` finds damaged are left out. */
export class LeasedRows<Item> {
  readonly sql: Sql;
  readonly #table: LeasedTable;
  readonly #isKey: string;
  readonly #read: (found: Row) => Item | undefined;

  constructor(database: Database, table: LeasedTable, read: (found: Row) => Item | undefined) {
    this.sql = sqlOf(database);
    this.#table = table;
    this.#isKey = equal(table.key);
    this.#read = read;
  }

  find(...key: readonly string[]): Promise<Item | undefined> {
    const { name, columns } = this.#table;
    return this.#one(() => row(`SELECT ${columns} FROM ${name} WHERE ${this.#isKey}`, ...key));
  }

  /** Returns a page of an owner's rows. Undefined when `after` or `before` names none of these. */
  async page(
    owner: Readonly<Record<string, string>>,
    { order, limit, after, before, skip = 0 }: PageQuery,
    filters: Readonly<Record<string, string>> = {},
  ): Promise<Page<Item> | undefined> {
    const { name, columns } = this.#table;
    // Rows in front of another one are read backwards from it.
    const isBackwards = before !== undefined;
    const [sign, direction] = (order === 'asc') === isBackwards ? ['<', 'DESC'] : ['>', 'ASC'];
    const edge = before ?? after;
    const wanted = { ...owner, ...filters };
    const conditions = [
      equal(Object.keys(wanted)),
      ...(edge === undefined ? [] : [`(created, id) ${sign} (?, ?)`]),
    ];
    const found = await this.sql.run(function* () {
      const created =
        edge === undefined
          ? undefined
          : yield* row(
              `SELECT created FROM ${name} WHERE ${equal([...Object.keys(owner), 'id'])}`,
              ...Object.values(owner),
              edge,
            );
      if (edge !== undefined && created === undefined) return undefined;
      return yield* rows(
        `SELECT ${columns} FROM ${name} WHERE ${conditions.join(' AND ')} ORDER BY created ${direction}, id ${direction} LIMIT ? OFFSET ?`,
        ...Object.values(wanted),
        ...(edge === undefined ? [] : [Number(created?.['created']), edge]),
        limit + 1,
        skip,
      );
    });
    if (found === undefined) return undefined;
    const items = this.#all(found.slice(0, limit));
    return { items: isBackwards ? items.toReversed() : items, hasMore: found.length > limit };
  }

  /** Leases rows that are due and that nobody else has leased; the longest due come first. */
  async claim({ name: holder, milliseconds }: Lease, limit: number): Promise<readonly Item[]> {
    const { name, key, columns, open } = this.#table;
    const { sql } = this;
    const now = Date.now();
    const due = `${open} AND ask_at <= ? AND lease_until <= ?`;
    const found = await sql.run(function* () {
      // Most times there is nothing: a look needs no lock.
      const first = yield* row(`SELECT 1 AS due FROM ${name} WHERE ${due} LIMIT 1`, now, now);
      if (first === undefined) return [];
      return yield* rows(
        `UPDATE ${name} SET lease = ?, lease_until = ? WHERE (${key.join(', ')}) IN
          (SELECT ${key.join(', ')} FROM ${name} WHERE ${due} ORDER BY ask_at LIMIT ?${sql.forUpdateOfFree}) RETURNING ${columns}`,
        holder,
        now + milliseconds,
        now,
        now,
        limit,
      );
    });
    return this.#all(found);
  }

  /** Leases one row, due or not. Undefined when its provider is not to be asked, or somebody else has leased it. */
  claimOne({ name: holder, milliseconds }: Lease, ...key: readonly string[]): Promise<Item | undefined> {
    const { name, columns, open } = this.#table;
    const now = Date.now();
    return this.#one(() =>
      row(
        `UPDATE ${name} SET lease = ?, lease_until = ? WHERE ${this.#isKey} AND ${open} AND lease_until <= ? RETURNING ${columns}`,
        holder,
        now + milliseconds,
        ...key,
        now,
      ),
    );
  }

  /**
   * Writes values of a row whose provider was still to be asked, and ends its lease. Returns false when the provider is no longer to be asked,
   * or when the lease is not the holder's. Without a holder any lease ends.
   */
  *release(
    key: readonly string[],
    values: Readonly<Record<string, SqlValue>>,
    holder?: string,
  ): Work<boolean> {
    const { name, open } = this.#table;
    const changes = Object.keys(values).map((column) => `${column} = ?`);
    const isHeld = holder === undefined ? '' : ' AND lease = ?';
    const done = yield* row(
      `UPDATE ${name} SET ${changes.join(', ')}, lease_until = 0 WHERE ${this.#isKey} AND ${open}${isHeld} RETURNING id`,
      ...Object.values(values),
      ...key,
      ...(holder === undefined ? [] : [holder]),
    );
    return done !== undefined;
  }

  /** Returns false when there was no such row. */
  async remove(...key: readonly string[]): Promise<boolean> {
    const { name } = this.#table;
    const gone = await this.sql.run(() =>
      row(`DELETE FROM ${name} WHERE ${this.#isKey} RETURNING id`, ...key),
    );
    return gone !== undefined;
  }

  #all(found: readonly Row[]): readonly Item[] {
    return found.flatMap((one) => this.#read(one) ?? []);
  }

  async #one(work: () => Work<Row | undefined>): Promise<Item | undefined> {
    const found = await this.sql.run(work);
    return found === undefined ? undefined : this.#read(found);
  }
}

function equal(names: readonly string[]): string {
  return names.map((name) => `${name} = ?`).join(' AND ');
}
