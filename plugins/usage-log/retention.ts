import type { Log } from 'sluice';
import type { InternalTools } from 'sluice/internal';
import type { Upkeep, UsageLog, UsageRetention } from './core-types.ts';

/** Delay until the first pruning and pause between prunings, in milliseconds. Not at the start, because other work runs then. */
const pruning = { first: 30_000, pause: 600_000 };
/**
 * When records are added to the sums, in milliseconds. Where there are more than one step adds, the next follows after `busy` milliseconds, and
 * not before twice the time that the step took: calls need the rest.
 */
const summing = { first: 1_000, pause: 1_000, busy: 20, rest: 2 };
/** Interval in milliseconds at which the state of records and sums is logged. */
const telling = { first: 5_000, pause: 300_000 };

/**
 * Adds records to the sums, and removes records and sums that are too old or too many, now and then, until the gateway closes.
 */
export function startTending(
  usageLog: Pick<UsageLog, 'prune' | 'addToSums' | 'standing'>,
  keep: UsageRetention,
  upkeep: Pick<Upkeep, 'set'>,
  log: Log,
  onClose: InternalTools['onClose'],
): void {
  onClose(
    repeat(pruning.first, async () => {
      try {
        const removed = await usageLog.prune(keep);
        if (removed.records > 0 || removed.sums > 0)
          log.info(removed, 'old records and sums were removed from the usage log');
      } catch (error) {
        log.error({ error }, 'old records could not be removed from the usage log');
      }
      return pruning.pause;
    }),
  );
  onClose(
    repeat(telling.first, async () => {
      try {
        for (const kept of await usageLog.standing(keep)) upkeep.set(kept);
      } catch {
        // The maintenance task itself logs the failure of the database.
      }
      return telling.pause;
    }),
  );
  let isFailing = false;
  onClose(
    repeat(summing.first, async () => {
      try {
        const begun = performance.now();
        const hasMore = await usageLog.addToSums();
        isFailing = false;
        if (!hasMore) return summing.pause;
        return Math.max(summing.busy, summing.rest * (performance.now() - begun));
      } catch (error) {
        // Until then they are summed when somebody asks.
        if (!isFailing) log.error({ error }, 'records could not be added to the sums of the usage log');
        isFailing = true;
        return summing.pause;
      }
    }),
  );
}

/** Runs work again and again, each time after the pause that the last run returned. Returns a function that ends this, after the run. */
function repeat(first: number, work: () => Promise<number>): () => Promise<void> {
  let isClosed = false;
  let running: Promise<void> | undefined;
  let timer: NodeJS.Timeout;
  const later = (pause: number): void => {
    if (isClosed) return;
    timer = setTimeout(() => {
      running = work().then(later);
    }, pause).unref();
  };
  later(first);
  return async () => {
    isClosed = true;
    clearTimeout(timer);
    await running;
  };
}
