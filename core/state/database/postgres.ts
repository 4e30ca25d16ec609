import { createRequire } from 'node:module';
import type { Duplex } from 'node:stream';
import type { Pool, PoolClient, QueryResult } from 'pg';
import { hideSecret } from '../../log.ts';
import { appliedInPostgres, migratePostgres, missingSteps, type Migration, type Step } from './migrations.ts';

/** What a statement can be given: `$1` is the first. Text that Postgres cannot hold (NUL) is replaced as UTF-8 decoders do. */
export type PostgresValue = string | number | bigint | boolean | null | Buffer | readonly PostgresValue[];

/** A row by the names of its columns. BIGINT comes as a number, NUMERIC (such as the SUM of a BIGINT) as text: cast it. */
export type PostgresRow = Readonly<Record<string, unknown>>;

/** Where statements are run: on any connection, or on the one of a transaction. */
export interface PostgresSession {
  /**
   * The rows, which are none without SELECT or RETURNING. Rejects with {@link PostgresError}: at once when the server refuses, and when
   * it has been silent for `patience` milliseconds (default: less than a second), because it is down, hangs or waits for a lock.
   */
  query(
    sql: string,
    values?: readonly PostgresValue[],
    options?: { readonly patience?: number },
  ): Promise<readonly PostgresRow[]>;
}

/** A Postgres database behind a bounded number of connections. Its tables are made before the first statement runs. */
export interface PostgresDatabase extends PostgresSession {
  readonly kind: 'postgres';
  /** The URL without its password. */
  readonly url: string;
  /** How long a silent server is waited for, connecting included, in milliseconds: `answer_timeout` in the URL. */
  readonly patience: number;
  /**
   * All of the work or nothing; it may pause for two seconds at the most between its statements. Rejects with what the work rejected with, or with {@link PostgresError}; when the connection broke at the
   * very end, the work may have been done all the same.
   */
  transaction<Result>(work: (session: PostgresSession) => Promise<Result>): Promise<Result>;
  /** Connects, and makes or changes tables where that is due; what is asked before waits for it. Rejects as `query` does. */
  ready(): Promise<void>;
  /** Connects and changes nothing. Rejects as `ready` would. */
  check(): Promise<void>;
  /** False once it was closed. */
  readonly isOpen: boolean;
  /** Lets running statements end. Closing twice is allowed; what is asked afterwards is rejected. */
  close(): Promise<void>;
}

/** A database that failed, as a sentence for the operator. `code` is the SQLSTATE when the server named one: `23505`, `40P01`. */
export class PostgresError extends Error {
  readonly code: string | undefined;

  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'PostgresError';
    const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
    this.code = typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : undefined;
  }
}

/** The most connections, and so the most statements that run at once; others wait. Ten gateways stay below a server's usual hundred. */
const CONNECTIONS = 8;

/** How long a connection that nobody uses is kept, in milliseconds. */
const IDLE = 30_000;

/** How often a statement is looked at, in milliseconds. */
const LOOK = 100;

/** Times in milliseconds. */
interface Limits {
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
function limitsOf(url: string, masked: string): Limits {
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

/** How fast the server takes in text at the least, in characters per millisecond: large values extend the patience. */
const SLOWEST = 5_000;

const BIGINT = 20;

/** Loaded by those who have such a server: others start without it. */
const require = createRequire(import.meta.url);

/**
 * The database that a `postgres://` URL names; nothing is connected yet. `steps` are what its tables consist of. Throws an Error for the
 * operator when the URL cannot be read.
 */
export function openPostgres(url: string, steps: readonly Step[]): PostgresDatabase {
  const masked = maskUrl(url);
  const migration: Migration = { steps, url: masked };
  const limits = limitsOf(url, masked);
  const pool = createPool(url, masked, limits);
  let opening: Promise<void> | undefined;
  let closing: Promise<void> | undefined;

  async function connected<Result>(
    work: (connection: PostgresConnection) => Promise<Result>,
  ): Promise<Result> {
    if (closing !== undefined) throw new PostgresError(`The database ${masked} is closed.`);
    let client: PoolClient;
    try {
      client = await pool.connect();
    } catch (error) {
      // The driver has several words for it, and no code.
      const late = error instanceof Error && /timeout/.test(error.message) && !('code' in error);
      throw late ? silence(masked) : explain(masked, error);
    }
    let broken = false;
    const run: PostgresConnection['run'] = async (sql, values = [], { patience = limits.silence } = {}) => {
      try {
        return await watched(client, masked, patience + lengthOf(values) / SLOWEST, async () => {
          if (values.length > 0) return client.query<PostgresRow>(sql, values.map(storable));
          // Several statements may stand in one text then: the last one's answer counts.
          const results = [await client.query<PostgresRow>(sql)].flat();
          return results.at(-1) as QueryResult<PostgresRow>;
        });
      } catch (error) {
        // What the server refused leaves the connection as good as before.
        if (!(error instanceof PostgresError && error.code !== undefined)) broken = true;
        throw error;
      }
    };
    try {
      return await work({ run, query: async (...statement) => (await run(...statement)).rows });
    } finally {
      client.release(broken);
    }
  }

  const transact = <Result>(work: (session: PostgresSession) => Promise<Result>): Promise<Result> =>
    connected(async ({ run, query }) => {
      await run('BEGIN');
      let result: Result;
      try {
        result = await work({ query });
      } catch (error) {
        // When this fails so does the connection, and the server rolls back by itself.
        await run('ROLLBACK').catch(() => {});
        throw error;
      }
      const { command } = await run('COMMIT');
      // So answers a server to whom a failed statement was sent, which the work has passed over.
      if (command === 'ROLLBACK') throw new PostgresError(`The database ${masked} undid a transaction.`);
      return result;
    });

  const missing = async (): Promise<readonly Step[]> =>
    missingSteps(migration, await connected(appliedInPostgres));

  async function open(): Promise<void> {
    if ((await missing()).length > 0) await transact((session) => migratePostgres(session, migration));
  }

  /** Tried again by the next that asks when it failed: the server may be back. */
  function ready(): Promise<void> {
    opening ??= open().catch((error: unknown) => {
      opening = undefined;
      throw error;
    });
    return opening;
  }

  return {
    kind: 'postgres',
    url: masked,
    patience: limits.connect,
    ready,
    check: async () => void (await missing()),
    async query(sql, values, options) {
      await ready();
      return connected(({ query }) => query(sql, values, options));
    },
    async transaction(work) {
      await ready();
      return transact(work);
    },
    get isOpen() {
      return closing === undefined;
    },
    close: () => (closing ??= pool.end()),
  };
}

interface PostgresConnection extends PostgresSession {
  /** As `query`, with all that the driver says. */
  run(...statement: Parameters<PostgresSession['query']>): Promise<QueryResult<PostgresRow>>;
}

function createPool(url: string, masked: string, limits: Limits): Pool {
  const { password, searchParams } = new URL(url);
  for (const secret of [password, searchParams.get('password') ?? '']) {
    if (secret === '') continue;
    hideSecret(secret);
    hideSecret(decode(secret));
  }
  const pg = require('pg') as typeof import('pg');
  let pool: Pool;
  try {
    pool = new pg.Pool({
      connectionString: url,
      max: CONNECTIONS,
      connectionTimeoutMillis: limits.connect,
      idleTimeoutMillis: IDLE,
      statement_timeout: limits.statement,
      lock_timeout: limits.lock,
      idle_in_transaction_session_timeout: limits.idleInTransaction,
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
function maskUrl(text: string): string {
  if (!URL.canParse(text)) throw new Error(`The database URL cannot be read. ${EXAMPLE}`);
  const url = new URL(text);
  const user = url.username === '' ? '' : `${url.username}${url.password === '' ? '' : ':…'}@`;
  return `postgres://${user}${url.host}${url.pathname}`;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Runs a statement, and breaks the connection when nothing moves on it any longer. Nothing less makes a hanging server let go. */
async function watched<Result>(
  client: PoolClient,
  url: string,
  patience: number,
  work: () => Promise<Result>,
): Promise<Result> {
  const { stream } = (client as unknown as { readonly connection: { readonly stream: Moving } }).connection;
  let moved = stream.bytesRead + stream.bytesWritten;
  // Looks, not time: a gateway that stood still itself must not take the server for gone.
  let looks = 0;
  let silent = false;
  const timer = setInterval(() => {
    const now = stream.bytesRead + stream.bytesWritten;
    if (now !== moved) {
      moved = now;
      looks = 0;
      return;
    }
    looks += 1;
    if (looks * LOOK < patience) return;
    silent = true;
    stream.destroy(new Error('no answer'));
  }, LOOK);
  try {
    return await work();
  } catch (error) {
    if (silent) throw silence(url);
    throw explain(url, error);
  } finally {
    clearInterval(timer);
  }
}

/** A socket, with or without TLS. */
type Moving = Duplex & { readonly bytesRead: number; readonly bytesWritten: number };

function silence(url: string): PostgresError {
  return new PostgresError(`The database ${url} does not answer in time.`);
}

function explain(url: string, error: unknown): PostgresError {
  return new PostgresError(`The database ${url} failed: ${reasonOf(error)}.`, error);
}

function reasonOf(error: unknown): string {
  // Node tries all addresses of a name, and says nothing itself when none of them answered.
  if (error instanceof AggregateError) return [...new Set(error.errors.map(reasonOf))].join(', ');
  return error instanceof Error ? error.message : String(error);
}

function lengthOf(values: readonly PostgresValue[]): number {
  let sum = 0;
  for (const value of values) {
    if (typeof value === 'string' || Buffer.isBuffer(value)) sum += value.length;
    else if (Array.isArray(value)) sum += lengthOf(value as readonly PostgresValue[]);
  }
  return sum;
}

function storable(value: PostgresValue): unknown {
  if (typeof value === 'string') return value.includes('\0') ? value.replaceAll('\0', '\uFFFD') : value;
  return Array.isArray(value) ? (value as readonly PostgresValue[]).map(storable) : value;
}
