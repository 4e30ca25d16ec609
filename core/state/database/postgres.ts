/** PostgreSQL: statements, transactions, and a server that does not answer. */
import type { PostgresSettings } from '../../settings/database.ts';
import { appliedInPostgres, migratePostgres, missingSteps, type Migration, type Step } from './migrations.ts';
import { openReplica } from './postgres-replica.ts';
import { openPostgresServer, type PoolState, type PostgresServer } from './postgres-server.ts';
import type { PostgresSession } from './postgres-session.ts';
import { ReadingThread } from './reading-thread.ts';

export type { PostgresRow, PostgresSession, PostgresValue } from './postgres-session.ts';

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
  /** Connects, to the read replica as well, and changes nothing. Rejects as `ready` would. */
  check(): Promise<void>;
  /**
   * As `query`, for what an operator reads: from the read replica, which may be some time behind, where there is one that answers.
   */
  read: PostgresSession['query'];
  /** Returns a thread that runs a program on this database, with connections of its own; it ends when the database is closed. */
  startThread(program: URL): ReadingThread;
  /** How connections of the server are held: see {@link PostgresServer.pooling}. */
  readonly pooling: PostgresServer['pooling'];
  /** How the connections of the primary and of the replica stand, and those of threads to either of them. */
  connections(): readonly (PoolState & { readonly server: 'primary' | 'replica' | 'thread' })[];
  /** False once it was closed. */
  readonly isOpen: boolean;
  /** Lets running statements end. Closing twice is allowed; what is asked afterwards is rejected. */
  close(): Promise<void>;
}

/**
 * Opens the database that a `postgres://` URL names; nothing is connected yet. `steps` are what its tables consist of. `report` is called when
 * the read replica begins to fail. Throws an Error for the operator when the URL cannot be read.
 */
export function openPostgres(
  target: string | PostgresSettings,
  steps: readonly Step[],
  report: (error: Error) => void = () => {},
): PostgresDatabase {
  const settings = typeof target === 'string' ? { url: target } : target;
  const { url, poolSize, replica: replicaUrl } = settings;
  const server = openPostgresServer(url, poolSize);
  const migration: Migration = { steps, url: server.url };
  const replica = replicaUrl === undefined ? undefined : openReplica(replicaUrl, poolSize, report);
  const threads: ReadingThread[] = [];
  let opening: Promise<void> | undefined;
  let closing: Promise<void> | undefined;

  const missing = async (): Promise<readonly Step[]> =>
    missingSteps(migration, await server.session(appliedInPostgres));

  async function open(): Promise<void> {
    if ((await missing()).length > 0)
      await server.transaction((session) => migratePostgres(session, migration));
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
    url: server.url,
    patience: server.limits.connect,
    ready,
    async check() {
      await missing();
      await replica?.check();
    },
    async query(sql, values, options) {
      await ready();
      return server.query(sql, values, options);
    },
    async read(sql, values, options) {
      await ready();
      return (await replica?.read(sql, values, options)) ?? server.query(sql, values, options);
    },
    startThread(program) {
      const thread = new ReadingThread(program, { kind: 'postgres', settings }, report);
      threads.push(thread);
      return thread;
    },
    async transaction(work) {
      await ready();
      return server.transaction(work);
    },
    get pooling() {
      return server.pooling;
    },
    connections: () => [
      { server: 'primary', ...server.connections },
      ...(replica === undefined ? [] : [{ server: 'replica' as const, ...replica.connections }]),
      ...threads.flatMap(({ connections }) =>
        connections === undefined ? [] : [{ server: 'thread' as const, ...connections }],
      ),
    ],
    get isOpen() {
      return server.isOpen;
    },
    close: () =>
      (closing ??= Promise.all([
        server.close(),
        replica?.close(),
        ...threads.map((thread) => thread.close()),
      ]).then(() => {})),
  };
}
