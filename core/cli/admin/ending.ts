/** Undoes what a command has made for itself, however its process ends. */
import { setTimeout as pass } from 'node:timers/promises';

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Longest time to undo something before the process ends all the same, in milliseconds. */
const longest = 10_000;

/**
 * Runs `work`, and `undo` after it: also where a signal ends this process meanwhile, or the reader of its output has gone. Call it before the
 * process does anything that needs to be undone.
 */
export async function withUndo<Result>(
  work: () => Promise<Result>,
  undo: () => Promise<void>,
): Promise<Result> {
  let undoing: Promise<void> | undefined;
  let isLeaving = false;
  const undoOnce = (): Promise<void> => (undoing ??= undo());
  /** Signals that come meanwhile change nothing: a terminal sends one to each of its processes, and one may pass it on to another. */
  const leave = (end: () => void): void => {
    if (isLeaving) return;
    isLeaving = true;
    const undone = undoOnce().catch((error: unknown) => console.error(String(error)));
    void Promise.race([undone, pass(longest)]).finally(() => {
      forget();
      end();
    });
  };
  const onSignal = (signal: NodeJS.Signals): void => leave(() => process.kill(process.pid, signal));
  const onBroken = (error: NodeJS.ErrnoException): void =>
    leave(() => {
      // A reader such as `head` closes the pipe when it has enough, which is no failure.
      if (error.code !== 'EPIPE') console.error(`Standard output failed: ${error.message}`);
      process.exit(error.code === 'EPIPE' ? 0 : 1);
    });
  const forget = (): void => {
    for (const signal of signals) process.off(signal, onSignal);
    process.stdout.off('error', onBroken);
  };
  for (const signal of signals) process.on(signal, onSignal);
  process.stdout.on('error', onBroken);
  try {
    return await work();
  } finally {
    // The work may fail because the process ends: that is no error of the command.
    if (isLeaving) await new Promise<never>(() => {});
    await undoOnce().finally(forget);
  }
}
