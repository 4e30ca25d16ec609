/** Deletes expired responses, and parses the stored JSON of responses and items; shared by the stores of responses and conversations. */
import { isObject, type JsonObject } from '../../model/json.ts';
import { row, rows, type Sql, type Work } from '../database/sql.ts';
import type { ReportError } from '../stores.ts';
import { startSweeping } from '../database/sweeping.ts';

/** Small batches, because rows may have megabytes and SQLite blocks the event loop while it deletes them. */
const SWEEP = { batch: 50, pause: 60_000, pauseWhenFull: 200 };

/** Maximum size of the text that one query may load, in bytes: a history of turns, or a page of items. */
export const mostText = { history: 256 * 1024 * 1024, page: 64 * 1024 * 1024 };

/** Maximum length of an item's id in characters. No provider has longer ids, and indexes have limits. */
const LONGEST_ID = 512;

const swept = new WeakSet<Sql>();

/** Deletes expired responses, at most `limit` of them, and returns their number. */
export function deleteExpiredResponses(sql: Sql, limit: number): Promise<number> {
  const now = nowInSeconds();
  return sql.atomically(function* () {
    const expired = yield* rows(
      `SELECT owner, id FROM responses WHERE expires <= ? ORDER BY expires LIMIT ?${sql.forUpdateOfFree}`,
      now,
      limit,
    );
    for (const { owner, id } of expired) yield* deleteResponse(String(owner), String(id));
    return expired.length;
  });
}

/** Deletes a response and the index of its items. Returns its expiry (Unix seconds); undefined when there was none. */
export function* deleteResponse(owner: string, id: string): Work<number | undefined> {
  // The response first, as when it is saved: another order of locks could cause a deadlock.
  const deleted = yield* row('DELETE FROM responses WHERE owner = ? AND id = ? RETURNING expires', owner, id);
  yield* rows('DELETE FROM response_items WHERE owner = ? AND response = ?', owner, id);
  return deleted === undefined ? undefined : Number(deleted['expires']);
}

/** Starts to remove expired responses periodically, while the database is open. Later calls for the same database do nothing. */
export function sweepResponses(sql: Sql, report: ReportError): void {
  const { database } = sql;
  if (swept.has(sql)) return;
  swept.add(sql);
  const stop = startSweeping(
    async () => {
      if (!database.isOpen) {
        stop();
        return false;
      }
      return (await deleteExpiredResponses(sql, SWEEP.batch)) === SWEEP.batch;
    },
    SWEEP,
    (cause) => {
      if (database.isOpen)
        report(new Error(`Expired responses could not be removed from ${database.url}.`, { cause }));
    },
  );
}

/** True for an id by which an item can be found. */
export function isItemId(id: unknown): id is string {
  return typeof id === 'string' && id !== '' && id.length <= LONGEST_ID;
}

/** Returns the current time in Unix seconds. */
export function nowInSeconds(): number {
  return Math.floor(Date.now() / 1000);
}

/** Parses stored text as an object. Returns undefined, and reports `what`, when it is damaged. */
export function readObject(text: unknown, what: string, report: ReportError): JsonObject | undefined {
  return readJson(text, isObject, what, report);
}

/** Parses stored text as a list of objects. Returns undefined, and reports `what`, when it is damaged. */
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
