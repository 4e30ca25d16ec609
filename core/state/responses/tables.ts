import { isObject, type JsonObject } from '../../model/json.ts';
import { row, rows, type Sql, type Work } from '../database/sql.ts';
import type { ReportError } from '../stores.ts';
import { startSweeping } from '../database/sweeping.ts';

/** Rows of megabytes are removed in small batches, because SQLite's event loop stands still meanwhile. */
const SWEEP = { batch: 50, pause: 60_000, pauseWhenFull: 200 };

/** The most text that one question may bring into memory, in bytes: a history of turns, or a page of items. */
export const mostText = { history: 256 * 1024 * 1024, page: 64 * 1024 * 1024 };

/** The longest id under which an item is kept, in characters. Nobody's ids are longer, and indexes do not take everything. */
const LONGEST_ID = 512;

const swept = new WeakSet<Sql>();

/** Deletes responses that have expired, at most `limit` of them, and says how many it found. */
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

/** Deletes a response and what leads to its items; gives when it would have expired, undefined when there was none. */
export function* deleteResponse(owner: string, id: string): Work<number | undefined> {
  // The response first, as when it is saved: two who lock the same rows in another order would wait for each other.
  const deleted = yield* row('DELETE FROM responses WHERE owner = ? AND id = ? RETURNING expires', owner, id);
  yield* rows('DELETE FROM response_items WHERE owner = ? AND response = ?', owner, id);
  return deleted === undefined ? undefined : Number(deleted['expires']);
}

/** Removes expired responses while the process lives and the database is open. Once per database, however often it is asked. */
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

/** Whether an item can be found by what it has for an id. */
export function isItemId(id: unknown): id is string {
  return typeof id === 'string' && id !== '' && id.length <= LONGEST_ID;
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
