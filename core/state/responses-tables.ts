import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { isObject, type JsonObject } from '../model/json.ts';
import type { Database } from './database.ts';
import type { ReportError } from './stores.ts';

/**
 * The owner is part of every key, so that no question can be asked without one. The large columns come last: what precedes them is read
 * without them. `response_items` says in which responses an item is; the item itself is in their text.
 */
const SCHEMA = `
  CREATE TABLE IF NOT EXISTS responses (
    owner TEXT NOT NULL, id TEXT NOT NULL, created BIGINT NOT NULL, expires BIGINT NOT NULL, status TEXT NOT NULL,
    previous TEXT, channel TEXT, runs_until BIGINT, response TEXT NOT NULL, input TEXT NOT NULL,
    PRIMARY KEY (owner, id)
  );
  CREATE INDEX IF NOT EXISTS responses_expires ON responses (expires);
  CREATE TABLE IF NOT EXISTS response_items (
    owner TEXT NOT NULL, response TEXT NOT NULL, item TEXT NOT NULL,
    PRIMARY KEY (owner, response, item)
  );
  CREATE INDEX IF NOT EXISTS response_items_item ON response_items (owner, item);
  CREATE TABLE IF NOT EXISTS conversations (
    owner TEXT NOT NULL, id TEXT NOT NULL, created BIGINT NOT NULL, positions BIGINT NOT NULL, metadata TEXT NOT NULL,
    PRIMARY KEY (owner, id)
  );
  CREATE TABLE IF NOT EXISTS conversation_items (
    owner TEXT NOT NULL, conversation TEXT NOT NULL, position BIGINT NOT NULL, item TEXT NOT NULL, value TEXT NOT NULL,
    PRIMARY KEY (owner, conversation, position)
  );
  CREATE UNIQUE INDEX IF NOT EXISTS conversation_items_once ON conversation_items (owner, conversation, item);
  CREATE INDEX IF NOT EXISTS conversation_items_item ON conversation_items (owner, item);
`;

/** Rows of megabytes are removed in small batches, because the event loop stands still meanwhile. */
const SWEEP = { batch: 50, pause: 60_000, pauseWhenFull: 200 };

/** The most text that one question may bring into memory, in bytes or characters: a history of turns, or a page of items. */
export const mostText = { history: 256 * 1024 * 1024, page: 64 * 1024 * 1024 };

/** A row as the driver gives it. */
export type Row = Readonly<Record<string, unknown>>;

/** The tables of one database. */
export interface Tables {
  readonly database: Database;
  /** A prepared statement; the same text is prepared once. */
  statement(sql: string): StatementSync;
  /** All of the job or nothing, and nothing of another process in between. */
  atomically<Result>(job: () => Result): Result;
}

const opened = new WeakMap<DatabaseSync, Tables>();
const swept = new WeakSet<DatabaseSync>();

/** The tables in this database, made when they are not there. */
export function tablesOf(database: Database): Tables {
  const { connection } = database;
  const known = opened.get(connection);
  if (known !== undefined) return known;
  connection.exec(`BEGIN IMMEDIATE; ${SCHEMA} COMMIT`);
  const statements = new Map<string, StatementSync>();
  const tables: Tables = {
    database,
    statement(sql) {
      let statement = statements.get(sql);
      if (statement === undefined) statements.set(sql, (statement = connection.prepare(sql)));
      return statement;
    },
    atomically(job) {
      connection.exec('BEGIN IMMEDIATE');
      try {
        const result = job();
        connection.exec('COMMIT');
        return result;
      } catch (error) {
        // Some failures (a full disk) have ended the transaction already.
        if (connection.isTransaction) connection.exec('ROLLBACK');
        throw error;
      }
    },
  };
  opened.set(connection, tables);
  return tables;
}

/** Deletes responses that have expired, at most `limit` of them, and says how many it found. */
export function deleteExpiredResponses(tables: Tables, limit: number): number {
  const now = nowInSeconds();
  return tables.atomically(() => {
    const rows: Row[] = tables
      .statement('SELECT owner, id FROM responses WHERE expires <= ? ORDER BY expires LIMIT ?')
      .all(now, limit);
    for (const { owner, id } of rows) deleteResponse(tables, String(owner), String(id));
    return rows.length;
  });
}

/** Deletes a response and what leads to its items; false when there was none. Belongs inside `atomically`. */
export function deleteResponse(tables: Tables, owner: string, id: string): boolean {
  tables.statement('DELETE FROM response_items WHERE owner = ? AND response = ?').run(owner, id);
  return tables.statement('DELETE FROM responses WHERE owner = ? AND id = ?').run(owner, id).changes !== 0;
}

/** Removes expired responses until the database is closed. Once per database, however often it is asked. */
export function startSweeping(tables: Tables, report: ReportError): void {
  const { connection, url } = tables.database;
  if (swept.has(connection)) return;
  swept.add(connection);
  const sweep = (): void => {
    if (!connection.isOpen) return;
    let full = false;
    try {
      full = deleteExpiredResponses(tables, SWEEP.batch) === SWEEP.batch;
    } catch (error) {
      report(new Error(`Expired responses could not be removed from ${url}.`, { cause: error }));
    }
    setTimeout(sweep, full ? SWEEP.pauseWhenFull : SWEEP.pause).unref();
  };
  setTimeout(sweep, SWEEP.pauseWhenFull).unref();
}

/** Unix seconds. */
export function nowInSeconds(): number {
  return Math.floor(Date.now() / 1000);
}

/** Stored text as an object, or undefined when it is damaged: `what` then names it in the report. */
export function readObject(text: unknown, what: string, report: ReportError): JsonObject | undefined {
  return readJson(text, isObject, what, report);
}

/** Stored text as a list of objects, or undefined when it is damaged: `what` then names it in the report. */
export function readObjects(
  text: unknown,
  what: string,
  report: ReportError,
): readonly JsonObject[] | undefined {
  const areObjects = (value: unknown): value is readonly JsonObject[] =>
    Array.isArray(value) && value.every(isObject);
  return readJson(text, areObjects, what, report);
}

function readJson<Value>(
  text: unknown,
  isRight: (value: unknown) => value is Value,
  what: string,
  report: ReportError,
): Value | undefined {
  let cause: unknown;
  try {
    const value: unknown = JSON.parse(String(text));
    if (isRight(value)) return value;
  } catch (error) {
    cause = error;
  }
  report(new Error(`${what} is damaged in the database and counts as missing.`, { cause }));
  return undefined;
}
