/** Work on the database, written once for both kinds. */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Database } from './index.ts';
import type { PostgresDatabase, PostgresSession } from './postgres.ts';
import type { Row, SqlValue } from './sql-values.ts';
import { transactionInSqlite, writeInSqlite } from './sqlite-writes.ts';

export type { Row, SqlValue } from './sql-values.ts';

interface Statement {
  readonly sql: string;
  readonly values: readonly SqlValue[];
}

/**
 * Work on a database, written once for both kinds: a generator that delegates to {@link rows} and {@link row}.
 */
export type Work<Result> = Generator<Statement, Result, readonly Row[]>;

/** Both kinds of databases, for work that uses no more than they have in common. */
export interface Sql {
  readonly database: Database;
  /** Follows a SELECT whose rows are going to be changed: where rows are locked one by one, they stay as they are until then. */
  readonly forUpdate: '' | ' FOR UPDATE';
  /** As `forUpdate`, for a SELECT that can do without the rows that somebody else is changing. */
  readonly forUpdateOfFree: '' | ' FOR UPDATE SKIP LOCKED';
  /** Statement by statement: others may write in between. */
  run<Result>(work: () => Work<Result>): Promise<Result>;
  /** All of the work or nothing. */
  atomically<Result>(work: () => Work<Result>): Promise<Result>;
}

/** The rows that a statement gives, which are those of its RETURNING when it writes. `?` stands for each value. */
export function* rows(sql: string, ...values: readonly SqlValue[]): Work<readonly Row[]> {
  return yield { sql, values };
}

/** As {@link rows}, the first of them. */
export function* row(sql: string, ...values: readonly SqlValue[]): Work<Row | undefined> {
  return (yield { sql, values })[0];
}

const opened = new WeakMap<Database, Sql>();

/** The database for work of both kinds; prepared statements are kept with it. */
export function sqlOf(database: Database): Sql {
  let sql = opened.get(database);
  if (sql === undefined) {
    sql = database.kind === 'sqlite' ? sqlite(database, database.connection) : postgres(database);
    opened.set(database, sql);
  }
  return sql;
}

/** A statement of a connection, and whether it changes anything. */
interface Prepared {
  readonly statement: StatementSync;
  readonly writes: boolean;
}

const prepared = new WeakMap<DatabaseSync, Map<string, Prepared>>();

function prepare(connection: DatabaseSync, sql: string): Prepared {
  let statements = prepared.get(connection);
  if (statements === undefined) prepared.set(connection, (statements = new Map()));
  let found = statements.get(sql);
  if (found === undefined) {
    found = { statement: connection.prepare(sql), writes: /\b(?:INSERT|UPDATE|DELETE|REPLACE)\b/i.test(sql) };
    statements.set(sql, found);
  }
  return found;
}

/** Runs work on a connection, inside a transaction. */
export function workInSqlite<Result>(connection: DatabaseSync, work: () => Work<Result>): Result {
  const steps = work();
  let step = steps.next();
  while (step.done !== true) {
    const { sql, values } = step.value;
    step = steps.next(prepare(connection, sql).statement.all(...values));
  }
  return step.value;
}

/** Runs a statement in SQLite. A read never waits; a write waits for writes of other processes. */
async function queryInSqlite(
  connection: DatabaseSync,
  sql: string,
  values: readonly SqlValue[],
): Promise<readonly Row[]> {
  const { statement, writes } = prepare(connection, sql);
  return writes ? writeInSqlite(connection, () => statement.all(...values)) : statement.all(...values);
}

/** Runs work statement by statement, each of which may wait. */
async function stepsOf<Result>(
  work: () => Work<Result>,
  query: (sql: string, values: readonly SqlValue[]) => Promise<readonly Row[]>,
): Promise<Result> {
  const steps = work();
  let step = steps.next();
  while (step.done !== true) {
    const { sql, values } = step.value;
    // oxlint-disable-next-line no-await-in-loop -- each statement may depend on the one before
    step = steps.next(await query(sql, values));
  }
  return step.value;
}

function sqlite(database: Database, connection: DatabaseSync): Sql {
  return {
    database,
    forUpdate: '',
    forUpdateOfFree: '',
    run: (work) => stepsOf(work, (sql, values) => queryInSqlite(connection, sql, values)),
    atomically: (work) => transactionInSqlite(connection, () => workInSqlite(connection, work)),
  };
}

const numbered = new Map<string, string>();

/** Runs work in a session, whatever transaction it is in. */
export function workInPostgres<Result>(session: PostgresSession, work: () => Work<Result>): Promise<Result> {
  return stepsOf(work, (sql, values) => {
    let text = numbered.get(sql);
    if (text === undefined) {
      let count = 0;
      numbered.set(sql, (text = sql.replaceAll('?', () => `$${(count += 1)}`)));
    }
    return session.query(text, values);
  });
}

function postgres(database: PostgresDatabase): Sql {
  return {
    database,
    forUpdate: ' FOR UPDATE',
    forUpdateOfFree: ' FOR UPDATE SKIP LOCKED',
    run: (work) => workInPostgres(database, work),
    atomically: (work) => database.transaction((session) => workInPostgres(session, work)),
  };
}
