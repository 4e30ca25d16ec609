import { BudgetExhausted } from './periods.ts';
import type { Ledger, Reservation, Settlement, Bookkeeper } from './index.ts';

/** Times in milliseconds. */
export interface BookkeeperOptions {
  /** Settlements that may wait before no new call should be taken. Default 10,000. */
  readonly most?: number;
  /** How long settlements are gathered. Default 25: half of what they may take, the other half is for the database. */
  readonly gather?: number;
  /** How long `close` tries to settle what waits while the database fails. Default 3,000: a worker that ends has four seconds for it all. */
  readonly patience?: number;
}

const batchSize = 500;
/** Pauses between tries while the database fails. */
const backoff = { first: 100, longest: 5_000 };
/** How often expired claims are looked for; oftener where leases are shorter. */
const sweepEvery = 20_000;

/** How often the log hears of one that cannot be made while others can. */
const reportEvery = 60_000;
/** How often it is looked which claims are due. */
const tendEvery = 250;

/** What a refused call waits for settlements: as long as other processes take for theirs, and at the most when this one has many. */
const settling = { others: 75, longest: 1_000 };

/** Starts a bookkeeper. `report` is told when the database begins to fail, and of what had to be given up. */
export function startBookkeeper(
  ledger: Ledger,
  report: (error: Error) => void,
  { most = 10_000, gather = 25, patience = 3_000 }: BookkeeperOptions = {},
): Bookkeeper {
  let queue: Settlement[] = [];
  const released = new Set<string>();
  const watched = new Map<string, { readonly reservation: Reservation; dueAt: number }>();
  let flushing: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let pause = 0;
  let reportedAt = Number.NEGATIVE_INFINITY;
  /** Smaller after a failure, so that one settlement that cannot be made does not hold up the others. */
  let size = batchSize;
  let dropped = 0;
  let shortest = sweepEvery;
  let sweepAt = 0;
  let closed = false;

  const failed = (error: unknown): void => {
    const now = performance.now();
    if (pause === 0 && now - reportedAt > reportEvery) {
      reportedAt = now;
      report(new Error('Settlements wait: the database does not take them.', { cause: error }));
    }
    pause = Math.min(backoff.longest, Math.max(backoff.first, pause * 2));
  };
  const succeeded = (): void => {
    pause = 0;
    if (dropped === 0) return;
    report(new Error(`${dropped} calls that cost nothing were not recorded: too many waited.`));
    dropped = 0;
  };

  const settleSome = async (): Promise<boolean> => {
    const batch = queue.slice(0, size);
    try {
      if (batch.length > 0) await ledger.settle(batch);
      // Behind the settlements: a claim may belong to a call whose charge waits among them.
      else if (released.size > 0) {
        const ids = [...released];
        await ledger.release(ids);
        for (const id of ids) released.delete(id);
      }
    } catch (error) {
      failed(error);
      // Whatever the reason, the next try is with fewer, and one that fails alone goes behind the others.
      if (batch.length === 1) queue = [...queue.slice(1), ...batch];
      size = Math.max(1, Math.floor(batch.length / 2));
      return false;
    }
    queue = queue.slice(batch.length);
    size = Math.min(batchSize, size * 2);
    succeeded();
    return true;
  };

  const settleAll = async (): Promise<void> => {
    while (queue.length > 0 || released.size > 0) {
      if (!(await settleSome())) return;
    }
  };

  const flush = (): Promise<void> =>
    (flushing ??= settleAll().finally(() => {
      flushing = undefined;
      if (queue.length > 0 || released.size > 0) later();
    }));

  function later(): void {
    if (closed || timer !== undefined) return;
    timer = setTimeout(
      () => {
        timer = undefined;
        void flush();
      },
      Math.max(gather, pause),
    ).unref();
  }

  /** Renews what is due, and sweeps what others have left. No clock of the day is asked: it may be set. */
  const tend = async (): Promise<void> => {
    const now = performance.now();
    try {
      const due: Reservation[] = [];
      for (const { dueAt, reservation } of watched.values()) if (dueAt <= now) due.push(reservation);
      if (due.length > 0) {
        const lost = await ledger.renew(due);
        for (const { id, lease } of due) {
          const claim = watched.get(id);
          if (claim !== undefined) claim.dueAt = now + lease / 3;
        }
        tellLost(lost);
      }
      if (sweepAt <= now) {
        await ledger.sweep();
        sweepAt = performance.now() + Math.min(sweepEvery, shortest);
      }
      untended = false;
    } catch (error) {
      if (!untended)
        report(new Error('Claims of running calls cannot be renewed or swept now.', { cause: error }));
      untended = true;
    }
  };
  /** Claims that were made anew. A call that has ended meanwhile needs none any more. */
  const tellLost = (lost: readonly string[]): void => {
    if (lost.length === 0) return;
    report(
      new Error(
        `The claims of ${lost.length} running calls had run out and were made anew: this process or the database stood still for longer than their lease.`,
      ),
    );
    for (const id of lost) if (!watched.has(id)) release(id);
  };
  let untended = false;
  let tending: Promise<void> | undefined;
  const tendingTimer = setInterval(() => {
    tending ??= tend().finally(() => {
      tending = undefined;
    });
  }, tendEvery).unref();

  const release = (reservation: string): void => {
    released.add(reservation);
    later();
  };

  return {
    async reserve(...wanted) {
      try {
        return await ledger.reserve(...wanted);
      } catch (error) {
        if (!(error instanceof BudgetExhausted && error.claimed)) throw error;
        const settled = queue.length > 0 || released.size > 0 ? flush() : undefined;
        await Promise.race([Promise.all([settled, passed(settling.others)]), passed(settling.longest)]);
        return ledger.reserve(...wanted);
      }
    },
    book(settlement) {
      const { microDollars, tokens } = settlement.charged;
      if (queue.length >= most && settlement.reservation === undefined && microDollars + tokens === 0) {
        dropped += 1;
        return;
      }
      queue.push(settlement);
      later();
    },
    release,
    watch(reservation) {
      const { id, lease } = reservation;
      const now = performance.now();
      watched.set(id, { reservation, dueAt: now + lease / 3 });
      if (lease / 3 < shortest) {
        shortest = lease / 3;
        sweepAt = Math.min(sweepAt, now + shortest);
      }
      return () => void watched.delete(id);
    },
    get full() {
      return queue.length >= most;
    },
    get waiting() {
      return queue.length;
    },
    async close() {
      closed = true;
      clearInterval(tendingTimer);
      clearTimeout(timer);
      await tending;
      const deadline = performance.now() + patience;
      for (;;) {
        await flush();
        if (queue.length === 0 && released.size === 0) return;
        if (performance.now() + pause > deadline) break;
        await passed(Math.min(pause, 1_000));
      }
      report(new Error(`${queue.length} calls could not be charged before the gateway ended.`));
    },
  };
}

function passed(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
