/**
 * Runs statements, sessions and transactions on one PostgreSQL server, over a bounded pool of connections with or without a transaction
 * pooler.
 */
import type { PoolClient, QueryResult } from 'pg';
import { Canceller } from './postgres-cancel.ts';
import { createConnector, isOfAnotherWay, type Way } from './postgres-connector.ts';
import { PostgresError } from './postgres-error.ts';
import { limitsOf, maskUrl, usualPoolSize, type PostgresLimits } from './postgres-pool.ts';
import type { PostgresRow, PostgresSession, PostgresValue } from './postgres-session.ts';
import { explain, silence, watched } from './postgres-watch.ts';

/** A server, independent of its tables. */
export interface PostgresServer extends PostgresSession {
  /** The URL without its password. */
  readonly url: string;
  readonly limits: PostgresLimits;
  /** As `query`, for several statements; in a transaction behind a transaction pooler. */
  session<Result>(work: (session: PostgresSession) => Promise<Result>): Promise<Result>;
  transaction<Result>(work: (session: PostgresSession) => Promise<Result>): Promise<Result>;
  /** See {@link Way.pooling}. Undefined before the first connection was made. */
  readonly pooling: Way['pooling'] | undefined;
  readonly connections: PoolState;
  readonly isOpen: boolean;
  close(): Promise<void>;
}

/** State of the pool of a server. */
export interface PoolState {
  readonly size: number;
  readonly inUse: number;
  readonly idle: number;
  /** Number of statements that wait for a connection. */
  readonly waiting: number;
}

/** Minimum rate at which the server accepts text, in characters per millisecond: large values extend the timeout. */
const SLOWEST = 5_000;

/** Opens a server; does not connect yet. Throws an Error for the operator when the URL is invalid. */
export function openPostgresServer(url: string, size: number = usualPoolSize): PostgresServer {
  const connections = new Connections(url, size);
  const { masked, limits } = connections;
  const transact: PostgresServer['transaction'] = (work) =>
    connections.connected((connection) => within(connections, connection, work));
  const query: PostgresSession['query'] = (sql, values, options) =>
    connections.connected(async (connection) => {
      const isLarge = options?.isLarge === true;
      if (connection.pooling === 'session') {
        if (isLarge) await connection.prepareForLarge();
        return connection.query(sql, values, options);
      }
      const settings = isLarge ? `; ${largeRead('SET LOCAL')}` : '';
      return within(connections, connection, (session) => session.query(sql, values, options), settings);
    });
  return {
    url: masked,
    limits,
    query,
    session: (work) =>
      connections.connected((connection) =>
        connection.pooling === 'session' ? work(connection) : within(connections, connection, work),
      ),
    transaction: transact,
    get pooling() {
      return connections.way?.pooling;
    },
    get connections() {
      return stateOf(size, connections.way);
    },
    get isOpen() {
      return connections.isOpen;
    },
    close: () => connections.close(),
  };
}

/** Connections to one server. Determines the way of connecting with the first one. */
class Connections {
  readonly masked: string;
  readonly limits: PostgresLimits;
  readonly #connect: () => Promise<Way>;
  #finding: Promise<Way> | undefined;
  #way: Way | undefined;
  #closing: Promise<void> | undefined;
  readonly #canceller: Canceller;
  /** Connections that have the settings of large reads. */
  readonly #ready = new WeakSet<PoolClient>();

  constructor(url: string, size: number) {
    this.masked = maskUrl(url);
    this.limits = limitsOf(url, this.masked);
    this.#canceller = new Canceller(this.masked, this.limits.silence);
    this.#connect = createConnector({ url, masked: this.masked, limits: this.limits, size });
  }

  /** The way of connecting. Undefined before the first connection. */
  get way(): Way | undefined {
    return this.#way;
  }

  get isOpen(): boolean {
    return this.#closing === undefined;
  }

  close(): Promise<void> {
    this.#closing ??= Promise.resolve(
      this.#finding?.then(
        ({ pool }) => pool.end(),
        () => {},
      ),
    );
    return this.#closing;
  }

  /** Determines the way of connecting once, and again after a failure. */
  #find(): Promise<Way> {
    this.#finding ??= this.#connect().then(
      (found) => (this.#way = found),
      (error: unknown) => {
        this.#finding = undefined;
        throw error;
      },
    );
    return this.#finding;
  }

  /**
   * Ends the pool of a way that failed, because the server has changed how it is connected to. Does nothing where another call has found a new
   * way since.
   */
  #forget(failed: Way): void {
    if (this.#way !== failed) return;
    failed.pool.end().catch(() => {});
    this.#way = undefined;
    this.#finding = undefined;
  }

  /**
   * Has the statement of a connection cancelled when the signal is aborted. `end`, after the statement, resolves when no cancelling is under way any
   * more, because it might hit the next statement of the connection.
   */
  #cancelOn(signal: AbortSignal, client: PoolClient): { end(): Promise<void> } {
    const { pool, pooling } = this.#way ?? {};
    let cancelling: Promise<void> | undefined;
    const cancel = (): void => {
      // A pooler has the connection of another process of the server.
      if (pool !== undefined && pooling === 'session') cancelling = this.#canceller.cancel(pool, client);
    };
    signal.addEventListener('abort', cancel, { once: true });
    return {
      async end() {
        signal.removeEventListener('abort', cancel);
        await cancelling;
      },
    };
  }

  async connected<Result>(work: (connection: PostgresConnection) => Promise<Result>): Promise<Result> {
    if (this.#closing !== undefined) throw new PostgresError(`The database ${this.masked} is closed.`);
    let client: PoolClient;
    let found: Way | undefined;
    try {
      found = await this.#find();
      client = await found.pool.connect();
    } catch (error) {
      if (error instanceof PostgresError) throw error;
      if (found !== undefined && isOfAnotherWay(error)) this.#forget(found);
      // The driver has several messages for a timeout, and no code.
      const late = error instanceof Error && /timeout/.test(error.message) && !('code' in error);
      throw late ? silence(this.masked) : explain(this.masked, error);
    }
    const { pooling } = found;
    let broken = false;
    const run: PostgresConnection['run'] = async (
      sql,
      values = [],
      { patience = this.limits.silence, signal } = {},
    ) => {
      // It may have been aborted while a connection was waited for.
      signal?.throwIfAborted();
      const canceller = signal === undefined ? undefined : this.#cancelOn(signal, client);
      try {
        return await watched(client, this.masked, patience + lengthOf(values) / SLOWEST, async () => {
          if (values.length > 0) return client.query<PostgresRow>(sql, values.map(storable));
          // Several statements may stand in one text then: the last one's answer counts.
          const results = [await client.query<PostgresRow>(sql)].flat();
          return results.at(-1) as QueryResult<PostgresRow>;
        });
      } catch (error) {
        // A refused statement does not break the connection.
        if (!(error instanceof PostgresError && error.code !== undefined)) broken = true;
        throw error;
      } finally {
        await canceller?.end();
      }
    };
    try {
      return await work({
        run,
        pooling,
        query: async (...statement) => (await run(...statement)).rows,
        prepareForLarge: async () => {
          if (this.#ready.has(client)) return;
          await run(largeRead('SET'));
          this.#ready.add(client);
        },
      });
    } finally {
      client.release(broken);
    }
  }
}

/** Runs work in a transaction of one connection. */
async function within<Result>(
  { masked, limits }: Connections,
  { run, query, pooling }: PostgresConnection,
  work: (session: PostgresSession) => Promise<Result>,
  settings = '',
): Promise<Result> {
  await run((pooling === 'session' ? 'BEGIN' : beginWith(limits)) + settings);
  let result: Result;
  try {
    result = await work({ query });
  } catch (error) {
    // When this fails the connection is broken, and the server rolls back by itself.
    await run('ROLLBACK').catch(() => {});
    throw error;
  }
  const { command } = await run('COMMIT');
  // The server's result when a statement has failed and the work has ignored that.
  if (command === 'ROLLBACK') throw new PostgresError(`The database ${masked} undid a transaction.`);
  return result;
}

/** A connection, while it is taken from the pool. */
export interface PostgresConnection extends PostgresSession {
  readonly pooling: Way['pooling'];
  /** As `query`, with the driver's whole result. */
  run(...statement: Parameters<PostgresSession['query']>): Promise<QueryResult<PostgresRow>>;
  /** Makes the settings of large reads those of the connection. Only for connections of the gateway's own. */
  prepareForLarge(): Promise<void>;
}

/**
 * Returns the settings of statements that add up very many rows. The server's compiler takes 80 to 130 ms for the sums of 30 days by key, which it
 * does not win back, and with its usual 4 MB of memory it writes the groups of 50,000 keys to disk. Parallel processes take a third more CPU time: 460
 * ms instead of 340 for an overview of 30 days, whose statements run beside each other anyway (November 2026, PostgreSQL 15). A connection of the
 * gateway's own keeps them: a transaction for each of these statements would have three round trips instead of one.
 */
function largeRead(set: 'SET' | 'SET LOCAL'): string {
  return `${set} jit = off; ${set} work_mem = '16MB'; ${set} max_parallel_workers_per_gather = 0`;
}

/** Begins a transaction that has the timeouts for itself, because the next one may be on another connection of the server. */
function beginWith({ statement, lock, idleInTransaction }: PostgresLimits): string {
  return `BEGIN; SET LOCAL statement_timeout = ${statement}; SET LOCAL lock_timeout = ${lock}; SET LOCAL idle_in_transaction_session_timeout = ${idleInTransaction}`;
}

function stateOf(size: number, way: Way | undefined): PoolState {
  const { totalCount = 0, idleCount = 0, waitingCount = 0 } = way?.pool ?? {};
  return { size, inUse: totalCount - idleCount, idle: idleCount, waiting: waitingCount };
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
