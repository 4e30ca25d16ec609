import { setImmediate } from 'node:timers/promises';

/**
 * Lets everything else that is ready run first. SQLite answers in the turn in which it is asked: long work goes in slices with one of these
 * between them, so that no call waits for all of it; and questions that come together are answered together.
 */
export function yieldTurn(): Promise<void> {
  return setImmediate();
}
