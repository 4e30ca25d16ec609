import { createRequire } from 'node:module';
import type { Pool } from 'pg';
import { hideUrl } from '../../settings/secret.ts';
import { withoutOwnParameters, type PostgresTls } from './postgres-tls.ts';

/** The most connections, and so the most statements that run at once; others wait. Ten gateways stay below a server's usual hundred. */
export const usualPoolSize = 8;

/** How long a connection that nobody uses is kept, in milliseconds. */
const IDLE = 30_000;

/** Times in milliseconds. */
export interface PostgresLimits {
  /** For a connection, a free one or a new one. */
  readonly connect: number;
  /** Silence of the server after which it counts as gone. */
  readonly silence: number;
  /** For somebody else's lock. Below `silence`, so that the server says why and the connection survives. */
  readonly lock: number;
  /** The server ends what nobody here waits for any longer. */
  readonly statement: number;
  /** A gateway that was stopped in the middle of a transaction must not keep others from their rows. */
  readonly idleInTransaction: number;
}

/** The times that follow from how long the server may be silent: `answer_timeout` in the URL, in seconds, or a little less than one. */
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

/** Loaded by those who have such a server: others start without it. */
const require = createRequire(import.meta.url);

/** What connections are made with. */
export interface PoolOptions {
  readonly url: string;
  /** The URL as messages may show it. */
  readonly masked: string;
  readonly limits: PostgresLimits;
  /** The most connections. */
  readonly size: number;
}

/** How a pool is made. */
export interface NewPool extends PoolOptions {
  readonly tls: PostgresTls;
  /** Connections are made with the limits. A pooler that lends them by the transaction refuses that. */
  readonly timeouts: boolean;
}

/** The connections to the server that a URL names: none is made yet. Throws an Error for the operator when the URL cannot be read. */
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
  // What breaks while it is idle has left the pool already, and the next statement opens another.
  pool.on('error', () => {});
  // One that breaks while it is used tells its statement; without a listener it would end the process as well.
  pool.on('connect', (client) => void client.on('error', () => {}));
  return pool;
}

const EXAMPLE = 'Write postgres://USER:PASSWORD@HOST:5432/DATABASE, with % codes for special characters.';

/** The URL as messages may show it. Throws when it is none, without repeating it. */
export function maskUrl(text: string): string {
  if (!URL.canParse(text)) throw new Error(`The database URL cannot be read. ${EXAMPLE}`);
  const url = new URL(text);
  const user = url.username === '' ? '' : `${url.username}${url.password === '' ? '' : ':…'}@`;
  return `postgres://${user}${url.host}${url.pathname}`;
}
