/** Writes to SQLite without blocking the event loop while another process writes: a queue with retries for each connection. */
import type { DatabaseSync } from 'node:sqlite';
import { setTimeout as pass } from 'node:timers/promises';

/** Time that SQLite itself waits for another process's write, in milliseconds; it blocks the event loop. */
export const blockedFor = 5;

/** Maximum time that a write waits for writes of other processes before it fails, in milliseconds. */
const patience = 5_000;

/** Maximum pause between two attempts, in milliseconds. */
const longestPause = 50;

const SQLITE_BUSY = 5;

/** The last waiting write of each connection; resolves to false when it was given up because the wait was too long. */
const waiting = new WeakMap<DatabaseSync, Promise<boolean>>();

/**
 * Runs a write at once or, while another process is writing, as soon as that has ended, in the order of the calls; the event loop is not
 * blocked meanwhile. `write` is one statement or one transaction, and is retried from its beginning. Rejects with the error of `write`, and
 * when it has waited for longer than `most` milliseconds.
 */
export function writeInSqlite<Result>(
  connection: DatabaseSync,
  write: () => Result,
  most = patience,
): Promise<Result> {
  const before = waiting.get(connection);
  if (before === undefined) {
    try {
      return Promise.resolve(write());
    } catch (error) {
      if (!isBusy(error)) return Promise.reject(error as Error);
    }
  }
  const made = writeLater(before, write, performance.now() + most);
  const settled = made.then(
    () => true,
    (error: unknown) => error !== tooLong,
  );
  waiting.set(connection, settled);
  void settled.then(() => {
    if (waiting.get(connection) === settled) waiting.delete(connection);
  });
  return made;
}

/** As {@link writeInSqlite}, for work of several statements in one transaction. Takes the write lock before it reads. */
export function transactionInSqlite<Result>(
  connection: DatabaseSync,
  work: () => Result,
  most?: number,
): Promise<Result> {
  return writeInSqlite(
    connection,
    () => {
      connection.exec('BEGIN IMMEDIATE');
      try {
        const result = work();
        connection.exec('COMMIT');
        return result;
      } catch (error) {
        // Some failures (a full disk) have ended the transaction already.
        if (connection.isTransaction) connection.exec('ROLLBACK');
        throw error;
      }
    },
    most,
  );
}

/** One shared object, because its stack trace is of no use. */
const tooLong = new Error('The database is busy: another process is writing.');

async function writeLater<Result>(
  before: Promise<boolean> | undefined,
  write: () => Result,
  deadline: number,
): Promise<Result> {
  const made = await before;
  // Does not try where the write before has given up, because that would only block the event loop.
  if (made === false && performance.now() > deadline) throw tooLong;
  // No pause where the write before succeeded, because the lock is free: with a pause before each write the queue would grow with every call.
  let pause = made === true ? 0 : blockedFor;
  for (;;) {
    if (pause > 0) await pass(pause * (0.5 + Math.random()));
    try {
      return write();
    } catch (error) {
      if (!isBusy(error)) throw error;
    }
    if (performance.now() > deadline) throw tooLong;
    pause = Math.min(longestPause, Math.max(blockedFor, pause * 1.5));
  }
}

function isBusy(error: unknown): boolean {
  // The low byte is the primary result code; the others extend it.
  return error instanceof Error && 'errcode' in error && (Number(error.errcode) & 0xff) === SQLITE_BUSY;
}
