import type { InternalTools, Log, UsageLog } from 'sluice/internal';

/** When old records are looked for, in milliseconds: not at the start, when there is other work. */
const times = { first: 30_000, pause: 600_000 };

/** Removes records that are too old or too many, now and then, until the gateway closes. */
export function startPruning(
  usageLog: UsageLog,
  keep: { readonly days: number; readonly records: number },
  log: Log,
  onClose: InternalTools['onClose'],
): void {
  let running: Promise<void> | undefined;
  let timer: NodeJS.Timeout;
  const prune = async (): Promise<void> => {
    try {
      const removed = await usageLog.prune(keep);
      if (removed > 0) log.info({ removed }, 'old records were removed from the usage log');
    } catch (error) {
      log.error({ error }, 'old records could not be removed from the usage log');
    }
    running = undefined;
    later(times.pause);
  };
  let closed = false;
  const later = (pause: number): void => {
    if (closed) return;
    timer = setTimeout(() => void (running = prune()), pause).unref();
  };
  later(times.first);
  onClose(() => {
    closed = true;
    clearTimeout(timer);
    return running;
  });
}
