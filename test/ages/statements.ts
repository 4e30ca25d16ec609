/** Statements of the tool, and what they have in common in both databases. */
import { DatabaseSync } from 'node:sqlite';
import { Client } from 'pg';

/** How much a database holds, and over how long a time. */
export interface Age {
  readonly calls: number;
  readonly keys: number;
  readonly days: number;
  /** Members, each of which has some of the keys, and belongs to one of the teams. 0: keys belong to nobody. */
  readonly members: number;
  readonly teams: number;
  /** There are sums of all calls, and records of the last of them alone. */
  readonly isSummed: boolean;
}

/** Runs statements, each of them by itself. */
export interface Statements {
  run(sql: string): Promise<readonly Readonly<Record<string, unknown>>[]>;
  close(): Promise<void>;
}

/** Opens a connection of the tool's own to a database that a URL names. */
export async function openStatements(url: string): Promise<Statements> {
  if (url.startsWith('sqlite:')) {
    const connection = new DatabaseSync(url.slice('sqlite:'.length), { timeout: 60_000 });
    connection.exec('PRAGMA synchronous = OFF; PRAGMA cache_size = -200000');
    return {
      run: async (sql) => connection.prepare(sql).all(),
      close: async () => connection.close(),
    };
  }
  const client = new Client({ connectionString: url });
  client.on('error', () => {});
  await client.connect();
  return {
    run: async (sql) => (await client.query(sql)).rows as Record<string, unknown>[],
    close: () => client.end(),
  };
}

/** SQL for rows with the numbers of a range, as `n`. */
export function series(isSqlite: boolean, from: number, to: number): string {
  return isSqlite
    ? `(WITH RECURSIVE numbers(n) AS (SELECT ${from} UNION ALL SELECT n + 1 FROM numbers WHERE n < ${to}) SELECT n FROM numbers)`
    : `(SELECT n::bigint FROM generate_series(${from}, ${to}) AS given (n))`;
}

/** SQL for a number with zeros before it. */
export function padded(isSqlite: boolean, number: string, length: number): string {
  return isSqlite ? `printf('%0${length}d', ${number})` : `lpad((${number})::text, ${length}, '0')`;
}
