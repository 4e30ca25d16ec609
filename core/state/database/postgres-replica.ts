import { PostgresError } from './postgres-error.ts';
import { openPostgresServer, type PoolState } from './postgres-server.ts';
import type { PostgresRow, PostgresSession } from './postgres-session.ts';

/** How long a replica that failed is left alone, in milliseconds. */
const rest = 10_000;

/** SQLSTATE of a statement that took too long: it would on the primary, too. */
const tooSlow = '57014';

/** A read replica of the database. */
export interface Replica {
  /** The rows; undefined when the primary has to be asked, because the replica fails or has failed a moment ago. */
  read(
    sql: string,
    values: Parameters<PostgresSession['query']>[1],
    options: Parameters<PostgresSession['query']>[2],
  ): Promise<readonly PostgresRow[] | undefined>;
  readonly connections: PoolState;
  close(): Promise<void>;
}

/** Opens a replica, which is connected to by the first that reads. No tables are made there: it follows the primary. */
export function openReplica(url: string, poolSize: number | undefined): Replica {
  const server = openPostgresServer(url, poolSize);
  let failedAt = Number.NEGATIVE_INFINITY;
  return {
    async read(sql, values, options) {
      if (performance.now() - failedAt < rest) return undefined;
      try {
        return await server.query(sql, values, options);
      } catch (error) {
        if (error instanceof PostgresError && error.code === tooSlow) throw error;
        failedAt = performance.now();
        return undefined;
      }
    },
    get connections() {
      return server.connections;
    },
    close: () => server.close(),
  };
}
