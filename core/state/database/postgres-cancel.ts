/** Asks a PostgreSQL server to cancel statements whose answers nobody waits for. */
import type { Client, Pool, PoolClient } from 'pg';
import { watched } from './postgres-watch.ts';

/** Compares the port too: behind an address of several servers, a process of another server may have the same number. */
const cancelStatement = `SELECT pg_cancel_backend(pid) FROM pg_stat_activity
  WHERE (pid, client_port) IN (SELECT * FROM UNNEST($1::int[], $2::int[])) AND usename = current_user`;

/** Process of the server for a connection, and the port of this process: -1 for a local socket, as the server has it. */
interface Target {
  readonly pid: number;
  readonly port: number;
}

/**
 * Cancels statements over a connection of its own, because each connection of the pool may be running one of them. Statements that are cancelled
 * at the same time share it, and it is closed afterwards.
 */
export class Canceller {
  readonly #url: string;
  readonly #patience: number;
  #targets: Target[] = [];
  #running: Promise<void> | undefined;

  /** `url`: without its password. `patience`: time for an answer of the server, in milliseconds. */
  constructor(url: string, patience: number) {
    this.#url = url;
    this.#patience = patience;
  }

  /** Has the statement of a connection cancelled. Resolves when the server was asked, or cannot be: the statement runs to its end then. */
  cancel(pool: Pool, client: PoolClient): Promise<void> {
    this.#targets.push(targetOf(client));
    this.#running ??= this.#run(pool)
      .catch(() => {})
      .finally(() => {
        this.#running = undefined;
        // A target that was left would be cancelled later, when its connection has another statement.
        this.#targets = [];
      });
    return this.#running;
  }

  async #run(pool: Pool): Promise<void> {
    // The driver is not loaded where the database is a file.
    const { Client: PoolsClient } = pool as Pool & { readonly Client: typeof Client };
    const client = new PoolsClient(pool.options);
    // A lost connection also rejects the statement on it.
    client.on('error', () => {});
    try {
      await client.connect();
      while (this.#targets.length > 0) {
        const targets = this.#targets.splice(0);
        const [pids, ports] = [targets.map(({ pid }) => pid), targets.map(({ port }) => port)];
        // oxlint-disable-next-line no-await-in-loop -- for those that came meanwhile
        await watched(client, this.#url, this.#patience, () => client.query(cancelStatement, [pids, ports]));
      }
    } finally {
      // Not waited for, because a server that hangs closes no connection.
      client.end().catch(() => {});
    }
  }
}

function targetOf(client: PoolClient): Target {
  const { processID, connection } = client as PoolClient & {
    readonly processID: number | null;
    readonly connection: { readonly stream: { readonly localPort?: number } };
  };
  return { pid: processID ?? 0, port: connection.stream.localPort ?? -1 };
}
