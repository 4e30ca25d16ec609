/** Cleanup of temporary things of a command, also when a signal ends its process. */
import { setTimeout as pass } from 'node:timers/promises';

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Maximum time for the cleanup, in milliseconds. After it the process exits. */
const longest = 10_000;

/**
 * Runs `work`, and `undo` after it, also when a signal ends this process or the reader of its output closes the pipe. Call it before the
 * process creates anything that needs a cleanup.
 */
export async function withUndo<Result>(
  work: () => Promise<Result>,
  undo: () => Promise<void>,
): Promise<Result> {
  let undoing: Promise<void> | undefined;
  let isLeaving = false;
  const undoOnce = (): Promise<void> => (undoing ??= undo());
  /** Cleans up and exits. Ignores further signals, because one Ctrl-C can arrive from the terminal and from a parent process. */
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
      // A reader such as `head` closes the pipe when it has enough lines. That is not an error.
      if (error.code !== 'EPIPE') console.error(`Cannot write to standard output: ${error.message}`);
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
    // The work may fail because the process ends. That error is not reported.
    if (isLeaving) await new Promise<never>(() => {});
    await undoOnce().finally(forget);
  }
}
