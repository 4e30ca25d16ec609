/** Opens and checks the database that a URL names: SQLite here, PostgreSQL through `postgres.ts`. */
import { closeSync, existsSync, mkdirSync, openSync } from 'node:fs';
import { dirname, extname, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { isPostgres, urlOf, type DatabaseSettings } from '../../settings/database.ts';
import { appliedInSqlite, migrateSqlite, missingSteps } from './migrations.ts';
import { openPostgres, type PostgresDatabase } from './postgres.ts';
import { ReadingThread } from './reading-thread.ts';
import type { Row, SqlValue } from './sql-values.ts';
import type { SqliteQuestion } from './sqlite-reader-thread.ts';
import { schema } from './tables/index.ts';
import { blockedFor } from './sqlite-writes.ts';

/** An open database, shared by all parts of the process that keep state. The code that opened it closes it. It has the tables of `tables/`. */
export type Database = SqliteDatabase | PostgresDatabase;

/** An SQLite database (a file or memory), through Node's own driver. */
export interface SqliteDatabase {
  readonly kind: 'sqlite';
  /** The URL it was opened with. */
  readonly url: string;
  /** Node's own synchronous connection; a statement blocks the event loop for as long as it runs. */
  readonly connection: DatabaseSync;
  /**
   * Runs a SELECT that may be long without blocking the event loop: in a thread with a connection of its own, where there is a file. It sees
   * committed data.
   */
  read(sql: string, values: readonly SqlValue[]): Promise<readonly Row[]>;
  /**
   * Returns a thread that runs a program on this database, with connections of its own; it ends when the database is closed. Undefined for a
   * database in memory.
   */
  startThread(program: URL): ReadingThread | undefined;
  /**
   * Returns a number that changes when another connection, of this process or another, has written; writes of this connection do not change it.
   * Costs a few microseconds.
   */
  version(): number;
  /** False once it was closed. */
  readonly isOpen: boolean;
  /** Closes the database. May be called twice. Later statements fail. */
  close(): void;
}

const ACCEPTED =
  'Accepted are "sqlite:" with the path of a file (sqlite:./data/sluice.db), "sqlite::memory:", and "postgres:" (postgres://USER:PASSWORD@HOST/DATABASE)';

/** Maximum time that a start waits for other processes that start, in milliseconds. */
const START_TIMEOUT = 2_000;

const SQLITE_BUSY = 5;

/**
 * Opens the database that a URL names. Creates a missing file and its folder, readable by this user only; the first statement connects to a
 * server. `report` is called when a read replica begins to fail. Throws an Error whose message can be
 * shown to the operator.
 */
export function openDatabase(target: DatabaseSettings, report?: (error: Error) => void): Database {
  const url = urlOf(target);
  return isPostgres(url) ? openPostgres(target, schema, report) : openSqlite(url);
}

/** As {@link openDatabase}, for a URL that names a file or `:memory:`. */
export function openSqlite(url: string): SqliteDatabase {
  const path = pathIn(url);
  const connection = connect(path);
  try {
    if (path === ':memory:') makeTablesInMemory(connection, url);
    else migrateSqlite(connection, { steps: schema, url });
    connection.exec(`PRAGMA busy_timeout = ${blockedFor}`);
  } catch (error) {
    connection.close();
    throw error;
  }
  const threads: ReadingThread[] = [];
  const startThread = (program: URL): ReadingThread | undefined => {
    if (path === ':memory:') return undefined;
    const thread = new ReadingThread(program, { kind: 'sqlite', path });
    threads.push(thread);
    return thread;
  };
  const reader = startThread(new URL(`sqlite-reader-thread${extname(import.meta.url)}`, import.meta.url));
  const dataVersion = connection.prepare('PRAGMA data_version');
  return {
    kind: 'sqlite',
    url,
    connection,
    read: async (sql, values) =>
      reader === undefined
        ? connection.prepare(sql).all(...values)
        : ((await reader.ask({ sql, values } satisfies SqliteQuestion)) as readonly Row[]),
    startThread,
    version: () => Number(dataVersion.get()?.['data_version']),
    get isOpen() {
      return connection.isOpen;
    },
    close: () => {
      for (const thread of threads) void thread.close();
      if (connection.isOpen) connection.close();
    },
  };
}

/** Serialized database in memory with all tables and no rows. */
let emptyTables: Uint8Array | undefined;

/**
 * Makes the tables of a new database in memory. The second one in a process is a copy of the first, because tests start thousands of
 * gateways: the copy takes 0.1 ms and the steps of the schema 12 ms (measured in November 2026). Node 22 cannot copy.
 */
function makeTablesInMemory(connection: DatabaseSync, url: string): void {
  if (emptyTables !== undefined) {
    connection.deserialize(emptyTables);
    return;
  }
  migrateSqlite(connection, { steps: schema, url });
  if ('serialize' in connection) emptyTables = connection.serialize();
}

/**
 * Checks a database. Rejects with the problem that would prevent the gateway from using it. Changes nothing: a missing file is no problem,
 * because the first start creates it.
 */
export async function checkDatabase(target: DatabaseSettings): Promise<void> {
  const url = urlOf(target);
  if (isPostgres(url)) {
    const database = openPostgres(target, schema);
    return database.check().finally(() => database.close());
  }
  const path = pathIn(url);
  if (path === ':memory:' || !existsSync(path)) return;
  lookInto(path, (connection) => missingSteps({ steps: schema, url }, appliedInSqlite(connection)));
}

/** Runs a function on an existing file, with a connection of its own. */
export function lookInto<Found>(path: string, look: (connection: DatabaseSync) => Found): Found {
  const connection = connect(path);
  try {
    return look(connection);
  } finally {
    connection.close();
  }
}

/** Returns the path in the URL of an SQLite file, or `:memory:`. Throws an Error for the operator where there is none. */
export function pathIn(url: string): string {
  const [, scheme, rest = ''] = /^([a-z][a-z0-9+.-]*):(.*)$/is.exec(url) ?? [];
  // Only the scheme is repeated: the URL of a database server has a password in it.
  if (scheme === undefined) throw new Error(`The database URL names no kind of database. ${ACCEPTED}.`);
  if (scheme.toLowerCase() !== 'sqlite') {
    throw new Error(`The database URL starts with "${scheme}:", which is not known here. ${ACCEPTED}.`);
  }
  // Other tools write sqlite://path, and sqlite:///path for an absolute one.
  const path = rest.startsWith('//') ? rest.slice(2) : rest;
  if (path === '') throw new Error(`The database URL "${url}" has no path. ${ACCEPTED}.`);
  return path === ':memory:' ? path : resolve(path);
}

function connect(path: string): DatabaseSync {
  let connection: DatabaseSync | undefined;
  try {
    if (path !== ':memory:') makePrivateFile(path);
    connection = new DatabaseSync(path, { timeout: START_TIMEOUT });
    useWriteAheadLog(connection);
    // NORMAL: a killed process loses nothing, a power cut may take the last commits but never damages the file.
    connection.exec('PRAGMA synchronous = NORMAL');
    return connection;
  } catch (error) {
    connection?.close();
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(
      `The database ${path} cannot be opened: ${reason}. Check that it is an SQLite file in a folder that this user may write to.`,
      { cause: error },
    );
  }
}

/**
 * SQLite gives its log files the permissions of the database file. An existing file is left unopened: closing any
 * descriptor of it would drop the locks that another connection of this process holds.
 */
function makePrivateFile(path: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
  }
}

/** Switches to WAL with retries, because SQLite's own lock timeout does not cover the switch, at which workers that start together collide. */
function useWriteAheadLog(connection: DatabaseSync): void {
  const deadline = Date.now() + START_TIMEOUT;
  for (;;) {
    try {
      connection.exec('PRAGMA journal_mode = WAL');
      return;
    } catch (error) {
      const busy = error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY;
      if (!busy || Date.now() > deadline) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    }
  }
}
