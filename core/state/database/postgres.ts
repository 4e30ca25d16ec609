import type { PoolClient, QueryResult } from 'pg';
import { appliedInPostgres, migratePostgres, missingSteps, type Migration, type Step } from './migrations.ts';
import { PostgresError } from './postgres-error.ts';
import { createPool, limitsOf, maskUrl } from './postgres-pool.ts';
import { explain, silence, watched } from './postgres-watch.ts';

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

/** How fast the server takes in text at the least, in characters per millisecond: large values extend the patience. */
const SLOWEST = 5_000;

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
