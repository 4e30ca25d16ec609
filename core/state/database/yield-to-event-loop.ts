import { setImmediate } from 'node:timers/promises';

/**
 * Yields to the event loop. SQLite blocks the event loop while a statement runs, so long work runs in slices with a yield between them, because calls
 * would otherwise wait for all of it. Queries that arrive in the same turn can be batched, too.
 */
export function yieldToEventLoop(): Promise<void> {
  return setImmediate();
}
