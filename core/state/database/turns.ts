/** Runs statements a few at a time, so that those of a question that was abandoned need not run. */
import { setImmediate } from 'node:timers/promises';
import type { Semaphore } from '../../sdk/semaphore.ts';
import { readerSignal } from '../waiting-reader.ts';
import type { Ask } from './long-reads.ts';

/** Returns a function that runs a statement when a permit is free, and rejects instead when its question has been abandoned by then. */
export function inTurn(ask: Ask, permits: Semaphore): Ask {
  return (sql, values) =>
    permits.run(async () => {
      // Lets the thread read the messages that abandon questions, because SQLite holds the thread while a statement runs.
      await setImmediate();
      readerSignal()?.throwIfAborted();
      return ask(sql, values);
    });
}
