/** Reads from a PostgreSQL read replica, and skips it for a while after a failure so that the primary serves the reads. */
import { PostgresError } from './postgres-error.ts';
import { openPostgresServer, type PoolState } from './postgres-server.ts';
import type { PostgresRow, PostgresSession } from './postgres-session.ts';

/** Time for which a failed replica is not used, in milliseconds. */
const rest = 10_000;

/** SQLSTATE of a statement that exceeded its timeout, as it would on the primary too. */
const tooSlow = '57014';

/** A read replica of the database. */
export interface Replica {
  /** Returns the rows; undefined when the replica fails or has failed a moment ago, so that the primary must serve the read. */
  read(
    sql: string,
    values: Parameters<PostgresSession['query']>[1],
    options: Parameters<PostgresSession['query']>[2],
  ): Promise<readonly PostgresRow[] | undefined>;
  readonly connections: PoolState;
  /** Connects. Rejects with an Error for the operator. */
  check(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Opens a replica; the first read connects. Creates no tables, because the replica follows the primary. Calls `report` when the replica begins
 * to fail, and not again before it has answered.
 */
export function openReplica(
  url: string,
  poolSize: number | undefined,
  report: (error: Error) => void,
): Replica {
  const server = openPostgresServer(url, poolSize);
  let isFailing = false;
  let failedAt = Number.NEGATIVE_INFINITY;
  return {
    async read(sql, values, options) {
      if (performance.now() - failedAt < rest) return undefined;
      try {
        const rows = await server.query(sql, values, options);
        isFailing = false;
        return rows;
      } catch (error) {
        if (error instanceof PostgresError && error.code === tooSlow) throw error;
        failedAt = performance.now();
        if (!isFailing && server.isOpen) report(replicaError(error, 'The primary serves its reads.'));
        isFailing = true;
        return undefined;
      }
    },
    get connections() {
      return server.connections;
    },
    async check() {
      await server.query('SELECT 1').catch((error: unknown) => {
        throw replicaError(error, 'Correct "database.replica", or remove it.');
      });
    },
    close: () => server.close(),
  };
}

function replicaError(error: unknown, effect: string): Error {
  const reason = error instanceof Error ? error.message : String(error);
  return new Error(`The read replica cannot be used. ${reason} ${effect}`, { cause: error });
}
