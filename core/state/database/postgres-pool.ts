/** Creates pools of PostgreSQL connections with timeouts that follow from the URL, and masks the URL for messages. */
import { createRequire } from 'node:module';
import type { Pool } from 'pg';
import { hideUrl } from '../../settings/hide-url.ts';
import { withoutOwnParameters, type PostgresTls } from './postgres-tls.ts';

/** Default number of connections, and so of parallel statements; others wait. Ten gateways stay below a server's usual limit of 100. */
export const usualPoolSize = 8;

/** Time after which an idle connection is closed, in milliseconds. */
const IDLE = 30_000;

/** Times in milliseconds. */
export interface PostgresLimits {
  /** Wait for a free or a new connection. */
  readonly connect: number;
  /** Silence of the server after which the connection is closed. */
  readonly silence: number;
  /** Wait for a lock. Below `silence`, so that the server reports the reason and the connection survives. */
  readonly lock: number;
  /** Time after which the server cancels a statement, which no caller waits for by then. */
  readonly statement: number;
  /** Time after which the server ends an idle transaction, so that a suspended gateway does not keep rows locked. */
  readonly idleInTransaction: number;
}

/** Returns the limits for a URL. They follow from the permitted silence of the server: `answer_timeout` in seconds; default 0.9. */
export function limitsOf(url: string, masked: string): PostgresLimits {
  const given = new URL(url).searchParams.get('answer_timeout');
  const longest = given === null ? 900 : Number(given) * 1_000;
  if (!(longest >= 100 && longest <= 600_000))
    throw new Error(
      `The database URL ${masked} has an answer_timeout that is no number of seconds from 0.1 to 600.`,
    );
  return {
    connect: longest + 100,
    silence: longest,
    lock: Math.floor(longest * 0.9),
    statement: Math.max(10_000, 2 * longest),
    idleInTransaction: Math.max(2_000, 2 * longest),
  };
}

const BIGINT = 20;

/** Loads the driver on demand, so that gateways without PostgreSQL start without it. */
const require = createRequire(import.meta.url);

/** Options of all pools of a server. */
export interface PoolOptions {
  readonly url: string;
  /** The URL as messages may show it. */
  readonly masked: string;
  readonly limits: PostgresLimits;
  /** Maximum number of connections. */
  readonly size: number;
}

/** Options of one pool. */
export interface NewPool extends PoolOptions {
  readonly tls: PostgresTls;
  /** True: connections are made with the limits as parameters, which a transaction pooler refuses. */
  readonly timeouts: boolean;
}

/** Creates a pool; does not connect yet. Throws an Error for the operator when the URL is invalid. */
export function createPool({ url, masked, limits, size, tls, timeouts }: NewPool): Pool {
  hideUrl(url);
  const pg = require('pg') as typeof import('pg');
  let pool: Pool;
  try {
    pool = new pg.Pool({
      connectionString: withoutOwnParameters(url),
      ssl: tls,
      max: size,
      connectionTimeoutMillis: limits.connect,
      idleTimeoutMillis: IDLE,
      ...(timeouts
        ? {
            statement_timeout: limits.statement,
            lock_timeout: limits.lock,
            idle_in_transaction_session_timeout: limits.idleInTransaction,
          }
        : {}),
      application_name: 'sluice',
      keepAlive: true,
      allowExitOnIdle: true,
      types: {
        getTypeParser: (oid, format) => (oid === BIGINT ? Number : pg.types.getTypeParser(oid, format)),
      },
    });
  } catch {
    // Not as a cause: errors about URLs carry the URL, and with it the password.
    throw new Error(`The database URL ${masked} cannot be read. ${EXAMPLE}`);
  }
  // A connection that breaks while idle has left the pool already, and the next statement opens another.
  pool.on('error', () => {});
  // A connection that breaks in use rejects its statement; without a listener it would end the process as well.
  pool.on('connect', (client) => void client.on('error', () => {}));
  return pool;
}

const EXAMPLE = 'Write postgres://USER:PASSWORD@HOST:5432/DATABASE, with % codes for special characters.';

/** Returns the URL without its password. Throws for an invalid URL, without repeating it. */
export function maskUrl(text: string): string {
  if (!URL.canParse(text)) throw new Error(`The database URL cannot be read. ${EXAMPLE}`);
  const url = new URL(text);
  const user = url.username === '' ? '' : `${url.username}${url.password === '' ? '' : ':…'}@`;
  return `postgres://${user}${url.host}${url.pathname}`;
}
