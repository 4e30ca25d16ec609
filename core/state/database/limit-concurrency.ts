/** Limits how many statements run at once, so that statements of an abandoned request are skipped. */
import { setImmediate } from 'node:timers/promises';
import type { Semaphore } from '../../sdk/semaphore.ts';
import { readerSignal } from '../waiting-reader.ts';
import type { Query } from './long-reads.ts';

/** Returns a function that runs a statement when a permit is free. It rejects when the request was abandoned while it waited. */
export function limitConcurrency(query: Query, permits: Semaphore): Query {
  return (sql, values) =>
    permits.run(async () => {
      // Lets the thread read the messages that abandon requests, because SQLite holds the thread while a statement runs.
      await setImmediate();
      readerSignal()?.throwIfAborted();
      return query(sql, values);
    });
}
