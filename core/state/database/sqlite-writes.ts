import type { DatabaseSync } from 'node:sqlite';
import { setTimeout as pass } from 'node:timers/promises';

/** How long SQLite itself waits for another process's write, in milliseconds: the event loop stands still meanwhile. */
export const blockedFor = 5;

/** How long a write may wait for another process's, in milliseconds, before it fails. */
const patience = 5_000;

/** Longest pause between two tries, in milliseconds. */
const longestPause = 50;

const SQLITE_BUSY = 5;

/** The last write that waits for each connection. It tells whether it was made: those behind it keep their order. */
const waiting = new WeakMap<DatabaseSync, Promise<boolean>>();

/**
 * Makes a write at once or, while another process is writing, as soon as that has ended, in the order in which they were asked for; the
 * event loop goes on meanwhile. `write` is one statement or one transaction, and is tried again from its beginning. Rejects with what it
 * throws, and when it had to wait for longer than `most` milliseconds.
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
  const turn = made.then(
    () => true,
    (error: unknown) => error !== tooLong,
  );
  waiting.set(connection, turn);
  void turn.then(() => {
    if (waiting.get(connection) === turn) waiting.delete(connection);
  });
  return made;
}

/** As {@link writeInSqlite}, for work of several statements: all of it or nothing. It takes the write lock before it reads. */
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

/** One object: nobody reads where it was made. */
const tooLong = new Error('The database is busy: another process is writing.');

async function writeLater<Result>(
  before: Promise<boolean> | undefined,
  write: () => Result,
  deadline: number,
): Promise<Result> {
  const made = await before;
  // Where the one before has given up, another try would only hold the event loop up.
  if (made === false && performance.now() > deadline) throw tooLong;
  // Where it was made the lock is free: with a pause before each, those that wait would become more with every call that comes.
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
  // The low byte is the code; the others say why.
  return error instanceof Error && 'errcode' in error && (Number(error.errcode) & 0xff) === SQLITE_BUSY;
}
