/** Runs long SELECT statements on either kind of database without blocking calls: in a thread, on a replica, or with a timeout of its own. */
import { readAlways, readerSignal } from '../waiting-reader.ts';
import type { Database } from './index.ts';
import type { PostgresSession } from './postgres.ts';
import type { Row } from './sql-values.ts';

/** Runs a SELECT; `?` is a placeholder. Rejects when the database fails. */
export type Query = (sql: string, values: readonly (string | number)[]) => Promise<readonly Row[]>;

/** Timeout of such a statement in milliseconds: less than the server's own timeout of statements. */
const readPatience = 8_000;

/** Returns the function for reads from the primary. */
export function longReads(database: Database): Query {
  return database.kind === 'postgres' ? numbered(database.query) : database.read;
}

/** As {@link longReads}, for views of operators: from a read replica where there is one, which may lag behind. */
export function operatorReads(database: Database): Query {
  return database.kind === 'postgres' ? numbered(database.read) : database.read;
}

/** As {@link operatorReads}, for statements that add up very many rows. */
export function largeReads(database: Database): Query {
  return database.kind === 'postgres' ? numbered(database.read, true) : database.read;
}

function numbered(query: PostgresSession['query'], isLarge = false): Query {
  return (sql, values) => {
    let position = 0;
    return query(
      sql.replaceAll('?', () => `$${(position += 1)}`),
      values,
      { patience: readPatience, isLarge, signal: readerSignal() },
    );
  };
}

/** Returns a function that runs a query once for all callers that request it while it runs. */
export function shareEqualQueries(query: Query): Query {
  const running = new Map<string, ReturnType<Query>>();
  return (sql, values) => {
    const name = JSON.stringify([sql, values]);
    const known = running.get(name);
    if (known !== undefined) return known;
    const result = readAlways(() => query(sql, values)).finally(() => running.delete(name));
    running.set(name, result);
    return result;
  };
}
