/** Knows which client waits for a read, so that reads are given up when it has left. */
import { AsyncLocalStorage } from 'node:async_hooks';

const readers = new AsyncLocalStorage<AbortSignal>();

/** Runs work whose reads are given up once the signal is aborted. */
export function readUntil<Result>(signal: AbortSignal, work: () => Result): Result {
  return readers.run(signal, work);
}

/** Returns the signal of the work that runs, if it has one: see {@link readUntil}. */
export function readerSignal(): AbortSignal | undefined {
  return readers.getStore();
}

/** Runs work whose reads are not given up, because others wait for them, too. */
export function readAlways<Result>(work: () => Result): Result {
  return readers.exit(work);
}
