/** Locks in the database, which one process at a time holds while it works. */
import { randomUUID } from 'node:crypto';
import { setTimeout as pass } from 'node:timers/promises';
import { rows, sqlOf } from './database/sql.ts';
import { insertEntry } from './keyv/entry-writes.ts';
import type { Stores } from './stores.ts';

/** A lock by its name. */
export interface LockOptions {
  /** Namespace of its entry. */
  readonly namespace: string;
  readonly key: string;
  /** Time after which the lock of a process that was killed expires, in milliseconds. A process that works renews it before. */
  readonly lifeMs: number;
  /** Time that is waited for others, in milliseconds. */
  readonly patienceMs: number;
  /** Makes the error for those who have waited in vain. */
  readonly refusal: () => Error;
}

/** Number of times that a lock is renewed within its life. */
const renewals = 3;

/** Runs work while no other process, and nobody else in this one, holds the lock. Throws the refusal where others do not come to an end. */
export async function whileLocked<Result>(
  stores: Stores,
  { namespace, key, lifeMs, patienceMs, refusal }: LockOptions,
  work: () => Promise<Result>,
): Promise<Result> {
  const { database } = stores;
  const holder = JSON.stringify(randomUUID());
  const until = performance.now() + patienceMs;
  const lock = (): Promise<boolean> =>
    insertEntry(database, { namespace, key }, { value: holder, expires: Date.now() + lifeMs });
  // oxlint-disable-next-line no-await-in-loop -- waits for whoever has the lock
  while (!(await lock())) {
    if (performance.now() > until) throw refusal();
    // oxlint-disable-next-line no-await-in-loop -- as above
    await pass(20 + Math.random() * 40);
  }
  // A lock that has expired may be another holder's by now, which stays.
  const where = 'WHERE namespace = ? AND key = ? AND value = ?';
  const write = (sql: string, ...values: readonly number[]): Promise<unknown> =>
    sqlOf(database).run(() => rows(`${sql} ${where}`, ...values, namespace, key, holder));
  let renewing: Promise<unknown> = Promise.resolve();
  const timer = setInterval(() => {
    // A database that fails is asked again by the next renewal.
    renewing = write('UPDATE keyv SET expires = ?', Date.now() + lifeMs).catch(() => {});
  }, lifeMs / renewals).unref();
  try {
    return await work();
  } finally {
    clearInterval(timer);
    await renewing;
    // The work is done: a database that fails now leaves a lock that expires.
    await write('DELETE FROM keyv').catch(() => {});
  }
}
