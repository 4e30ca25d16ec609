import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Database } from './database.ts';
import type { PostgresDatabase, PostgresSession } from './postgres.ts';

/** What a statement can be given, in either database. */
export type SqlValue = string | number | null;

/** A row as the driver gives it. */
export type Row = Readonly<Record<string, unknown>>;

interface Statement {
  readonly sql: string;
  readonly values: readonly SqlValue[];
}

/**
 * Work on a database, written once for both kinds: a generator that delegates to {@link rows} and {@link row}. SQLite runs it to its end
 * at once, so that nothing comes between; Postgres waits for each answer.
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

const prepared = new WeakMap<DatabaseSync, Map<string, StatementSync>>();

/** Runs work on a connection, whatever transaction it is in. */
export function workInSqlite<Result>(connection: DatabaseSync, work: () => Work<Result>): Result {
  let statements = prepared.get(connection);
  if (statements === undefined) prepared.set(connection, (statements = new Map()));
  const steps = work();
  let step = steps.next();
  while (step.done !== true) {
    const { sql, values } = step.value;
    let statement = statements.get(sql);
    if (statement === undefined) statements.set(sql, (statement = connection.prepare(sql)));
    step = steps.next(statement.all(...values));
  }
  return step.value;
}

function sqlite(database: Database, connection: DatabaseSync): Sql {
  return {
    database,
    forUpdate: '',
    forUpdateOfFree: '',
    run: async (work) => workInSqlite(connection, work),
    async atomically(work) {
      connection.exec('BEGIN IMMEDIATE');
      try {
        const result = workInSqlite(connection, work);
        connection.exec('COMMIT');
        return result;
      } catch (error) {
        // Some failures (a full disk) have ended the transaction already.
        if (connection.isTransaction) connection.exec('ROLLBACK');
        throw error;
      }
    },
  };
}

const numbered = new Map<string, string>();

/** Runs work in a session, whatever transaction it is in. */
export async function workInPostgres<Result>(
  session: PostgresSession,
  work: () => Work<Result>,
): Promise<Result> {
  const steps = work();
  let step = steps.next();
  while (step.done !== true) {
    const { sql, values } = step.value;
    let text = numbered.get(sql);
    if (text === undefined) {
      let count = 0;
      numbered.set(sql, (text = sql.replaceAll('?', () => `$${(count += 1)}`)));
    }
    // oxlint-disable-next-line no-await-in-loop -- each statement may depend on the one before
    step = steps.next(await session.query(text, values));
  }
  return step.value;
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
