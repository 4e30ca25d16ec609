/** Determines with the first connection to PostgreSQL if TLS is used and if a transaction pooler such as PgBouncer is in between. */
import type { Pool } from 'pg';
import { createPool, type PoolOptions } from './postgres-pool.ts';
import { tlsWays, type PostgresTls } from './postgres-tls.ts';
import { watched } from './postgres-watch.ts';

/** A pool that works, and its kind of pooling. */
export interface Way {
  readonly pool: Pool;
  /**
   * `session`: connections belong to the gateway, and keep the timeouts that they were made with. `transaction`: a pooler such as PgBouncer
   * assigns a connection of the server to each transaction, which sets its timeouts itself.
   */
  readonly pooling: 'session' | 'transaction';
}

/** Returns a function that connects and resolves to the way that works. Throws an Error for the operator when the URL is invalid. */
export function createConnector(options: PoolOptions): () => Promise<Way> {
  const { url, masked } = options;
  // Creates a pool that is not used, so that an invalid URL throws at once.
  const ways = tlsWays(url, masked);
  createPool({ ...options, tls: false, timeouts: false })
    .end()
    .catch(() => {});

  async function tryWay(tls: PostgresTls): Promise<Way> {
    const direct = createPool({ ...options, tls, timeouts: true });
    try {
      if (await keepsTimeouts(direct, options)) return { pool: direct, pooling: 'session' };
    } catch (error) {
      if (!isUnknownParameter(error)) {
        discard(direct);
        throw error;
      }
    }
    discard(direct);
    return { pool: createPool({ ...options, tls, timeouts: false }), pooling: 'transaction' };
  }

  return async () => {
    for (const [index, tls] of ways.entries()) {
      try {
        // oxlint-disable-next-line no-await-in-loop -- the second way is for servers that refuse the first
        return await tryWay(tls);
      } catch (error) {
        if (index === ways.length - 1 || isUnreachable(error)) throw error;
      }
    }
    throw new Error('There is no way to the database.');
  };
}

/** True when a connection has the timeouts. A pooler that accepts and ignores them would leave statements without any. */
async function keepsTimeouts(pool: Pool, { masked, limits }: PoolOptions): Promise<boolean> {
  const wanted: Readonly<Record<string, number>> = {
    statement_timeout: limits.statement,
    lock_timeout: limits.lock,
    idle_in_transaction_session_timeout: limits.idleInTransaction,
  };
  const statement = `SELECT name, setting FROM pg_settings WHERE name IN ('${Object.keys(wanted).join("', '")}')`;
  const client = await pool.connect();
  let isBroken = true;
  try {
    const { rows } = await watched(client, masked, limits.silence, () =>
      client.query<{ readonly name: string; readonly setting: string }>(statement),
    );
    isBroken = false;
    return rows.every(({ name, setting }) => Number(setting) === wanted[name]);
  } finally {
    client.release(isBroken);
  }
}

function discard(pool: Pool): void {
  pool.end().catch(() => {});
}

/** True for PgBouncer's error for unknown parameters at the start of a connection. */
function isUnknownParameter(error: unknown): boolean {
  return error instanceof Error && /unsupported startup parameter/i.test(error.message);
}

/** True for errors that no other way of connecting would avoid. */
function isUnreachable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = 'code' in error ? String(error.code) : '';
  return /^E(?!PROTO)[A-Z]+$|^28P01$|^3D000$/.test(code) || /timeout/i.test(error.message);
}

/** Returns true for an error that another way of connecting may not have: the server speaks TLS now, or no longer, or a pooler came or went. */
export function isOfAnotherWay(error: unknown): boolean {
  return (
    isUnknownParameter(error) ||
    (error instanceof Error && /SSL|TLS|certificate|no encryption/i.test(error.message))
  );
}
