/** The settlement queue: reserves budgets, batches settlements and releases into transactions, and retries while the database fails. */
import type { Amounts } from '../../model/usage-record.ts';
import type { HeldBudget } from '../../sdk/budget.ts';
import { isWithin } from './allotment.ts';
import { Allotments } from './allotments.ts';
import { ReservationWatch } from './reservation-watch.ts';
import { InOrder } from './in-order.ts';
import { passed, systemClock, type Clock } from './clock.ts';
import { BudgetExhausted } from './periods.ts';
import type { Bookkeeper, Ledger, Reservation, Settlement } from './index.ts';

/** Times in milliseconds. */
export interface BookkeeperOptions {
  /** Number of waiting settlements from which on new calls should be refused. Default 10,000. */
  readonly most?: number;
  /** Time for which settlements are collected into a batch. Default 25: half of the 50 ms for a settlement, because the database needs time too. */
  readonly gather?: number;
  /** Time for which `close` retries while the database fails. Default 3,000, because a worker that ends has four seconds in all. */
  readonly patience?: number;
  /** Default: the clock of the system. */
  readonly clock?: Clock;
}

const batchSize = 500;
/** Pauses between retries while the database fails, in ms. */
const backoff = { first: 100, longest: 5_000 };

/** Minimum interval between reports of a failing database, in ms. */
const reportEvery = 60_000;

/**
 * Times in ms that a call waits before it is refused: for settlements of other processes, for those of this one, and for allotments that other
 * processes give back, with the pause between two looks.
 */
const waits = { others: 75, longest: 1_000, recalled: 1_000, look: 25 };

/** Starts a bookkeeper. Calls `report` when the database begins to fail, and for settlements that were dropped. */
export function startBookkeeper(
  ledger: Ledger,
  report: (error: Error) => void,
  options: BookkeeperOptions = {},
): Bookkeeper {
  return new QueueingBookkeeper(ledger, report, options);
}

class QueueingBookkeeper implements Bookkeeper {
  readonly #ledger: Ledger;
  readonly #report: (error: Error) => void;
  readonly #most: number;
  readonly #gather: number;
  readonly #patience: number;
  readonly #clock: Clock;
  readonly #allotments: Allotments;
  readonly #watch: ReservationWatch;
  readonly #inOrder = new InOrder();
  #queue: Settlement[] = [];
  readonly #released = new Set<string>();
  #flushing: Promise<void> | undefined;
  #stopTimer: (() => void) | undefined;
  #pause = 0;
  #reportedAt = Number.NEGATIVE_INFINITY;
  /** Smaller after a failure, so that one settlement that cannot be made does not hold up the others. */
  #size = batchSize;
  #dropped = 0;
  #isClosed = false;

  constructor(
    ledger: Ledger,
    report: (error: Error) => void,
    { most = 10_000, gather = 25, patience = 3_000, clock = systemClock }: BookkeeperOptions,
  ) {
    this.#ledger = ledger;
    this.#report = report;
    this.#most = most;
    this.#gather = gather;
    this.#patience = patience;
    this.#clock = clock;
    this.#allotments = new Allotments(clock);
    this.#watch = new ReservationWatch(
      { ledger, allotments: this.#allotments, clock, inOrder: this.#inOrder },
      { report, release: (id) => this.release(id), changed: () => this.#later() },
    );
    this.enqueue = this.enqueue.bind(this);
  }

  async reserve(
    keyId: string,
    budgets: readonly HeldBudget[],
    most: Amounts,
    lease?: number,
    less?: Amounts,
    mayShare = false,
  ): Promise<Reservation> {
    const taken = mayShare ? this.#allotments.take(keyId, budgets, most) : undefined;
    if (taken !== undefined) return taken;
    const wanted = mayShare ? this.#allotments.wanted(keyId, most) : undefined;
    try {
      return await this.#reserveInDatabase(keyId, async (isFirst) => {
        const sent = { now: this.#clock.now(), wall: this.#clock.wall() };
        const ahead = isFirst ? wanted : undefined;
        const reservation = await this.#ledger.reserve(keyId, budgets, most, lease, less, ahead);
        // This process was suspended: the lease may have expired, and others may have reserved the same budget.
        if (!isWithin(reservation.lease, sent, this.#clock)) {
          this.release(reservation.id);
          throw new Error('The reservation was made too long ago.');
        }
        return reservation.ahead === undefined
          ? reservation
          : this.#allotments.adopt(reservation, budgets, sent);
      });
    } finally {
      if (wanted !== undefined) this.#allotments.endRequest(keyId);
    }
  }

  enqueue(settlement: Settlement): void {
    const { charged, reservation } = settlement;
    if (
      this.#queue.length >= this.#most &&
      reservation === undefined &&
      charged.microDollars + charged.tokens === 0
    ) {
      this.#dropped += 1;
      return;
    }
    this.#queue.push(this.#allotments.drawn(settlement));
    this.#later();
  }

  release(reservation: string): void {
    if (!this.#allotments.release(reservation)) this.#released.add(reservation);
    else if (!this.#allotments.hasReturns) return;
    this.#later();
  }

  watch(reservation: Reservation): () => void {
    const { id } = reservation;
    return this.#allotments.has(id) ? () => this.#allotments.unwatch(id) : this.#watch.watch(reservation);
  }

  get full(): boolean {
    return this.#queue.length >= this.#most;
  }

  get waiting(): number {
    return this.#queue.length;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#stopTimer?.();
    this.#allotments.closeAll();
    await this.#watch.close();
    const deadline = this.#clock.now() + this.#patience;
    for (;;) {
      // oxlint-disable-next-line no-await-in-loop -- one try after the other
      await this.#flush();
      if (!this.#hasWork) return;
      if (this.#clock.now() + this.#pause > deadline) break;
      // oxlint-disable-next-line no-await-in-loop -- as above
      await passed(this.#clock, Math.min(this.#pause, 1_000));
    }
    this.#report(new Error(`${this.#queue.length} calls could not be charged before the gateway stopped.`));
  }

  /** Retries when only reservations exhaust a budget, after ended calls are settled and amounts reserved ahead are given back. */
  async #reserveInDatabase(keyId: string, reserve: Reserving): Promise<Reservation> {
    let refusal = await refused(reserve, true);
    if (!(refusal instanceof BudgetExhausted)) return refusal;
    if (!refusal.claimed) throw refusal;
    this.#allotments.giveUp(keyId);
    const settled = this.#hasWork ? this.#flush() : undefined;
    await Promise.race([
      Promise.all([settled, passed(this.#clock, waits.others)]),
      passed(this.#clock, waits.longest),
    ]);
    const deadline = this.#clock.now() + waits.recalled;
    for (;;) {
      // oxlint-disable no-await-in-loop -- one try after the other
      refusal = await refused(reserve, false);
      if (!(refusal instanceof BudgetExhausted)) return refusal;
      if (!refusal.claimed || !refusal.recalls) throw refusal;
      if (this.#clock.now() >= deadline) break;
      this.#allotments.giveUp(keyId);
      if (this.#hasWork) void this.#flush();
      await passed(this.#clock, waits.look);
      // oxlint-enable no-await-in-loop
    }
    throw refusal;
  }

  get #hasWork(): boolean {
    return this.#queue.length > 0 || this.#released.size > 0 || this.#allotments.hasReturns;
  }

  #later(): void {
    if (this.#isClosed || this.#stopTimer !== undefined) return;
    this.#stopTimer = this.#clock.after(Math.max(this.#gather, this.#pause), () => {
      this.#stopTimer = undefined;
      void this.#flush();
    });
  }

  #flush(): Promise<void> {
    return (this.#flushing ??= this.#settleAll().finally(() => {
      this.#flushing = undefined;
      if (this.#hasWork) this.#later();
    }));
  }

  async #settleAll(): Promise<void> {
    while (this.#hasWork) {
      // oxlint-disable-next-line no-await-in-loop -- what is settled first makes room for what is released
      if (!(await this.#settleSome())) return;
    }
  }

  /** Returns false when the database failed. */
  async #settleSome(): Promise<boolean> {
    const batch = this.#queue.slice(0, this.#size);
    try {
      if (batch.length > 0) {
        await this.#inOrder.run(() => this.#ledger.settle(batch));
        this.#allotments.settled(batch.flatMap(({ allotment }) => allotment ?? []));
      } else await this.#giveBack();
    } catch (error) {
      this.#failed(error);
      // Retries with half as many, whatever the reason. A settlement that fails alone goes to the end of the queue.
      if (batch.length === 1) this.#queue = [...this.#queue.slice(1), ...batch];
      this.#size = Math.max(1, Math.floor(batch.length / 2));
      return false;
    }
    this.#queue = this.#queue.slice(batch.length);
    this.#size = Math.min(batchSize, this.#size * 2);
    this.#succeeded();
    return true;
  }

  /** Gives back reservations and allotments. After the settlements, because a reservation may belong to a call whose charge waits there. */
  async #giveBack(): Promise<void> {
    if (this.#released.size > 0) {
      const ids = [...this.#released];
      // Taken out first, because one may be released again meanwhile: when a renewal that was under way has made it anew.
      this.#released.clear();
      try {
        await this.#inOrder.run(() => this.#ledger.release(ids));
      } catch (error) {
        for (const id of ids) this.#released.add(id);
        throw error;
      }
    }
    const returns = this.#allotments.returns();
    if (returns === undefined) return;
    try {
      await this.#inOrder.run(() => this.#ledger.giveBack(returns));
      this.#allotments.returned(returns);
    } catch (error) {
      this.#allotments.failed(returns);
      throw error;
    }
  }

  #failed(error: unknown): void {
    const now = this.#clock.now();
    if (this.#pause === 0 && now - this.#reportedAt > reportEvery) {
      this.#reportedAt = now;
      this.#report(
        new Error('Settlements are waiting: the database does not accept them.', { cause: error }),
      );
    }
    this.#pause = Math.min(backoff.longest, Math.max(backoff.first, this.#pause * 2));
  }

  #succeeded(): void {
    this.#pause = 0;
    if (this.#dropped === 0) return;
    this.#report(new Error(`${this.#dropped} calls without cost were not recorded: too many were waiting.`));
    this.#dropped = 0;
  }
}

/** Tries to reserve in the database; the first try may reserve something ahead. */
type Reserving = (isFirst: boolean) => Promise<Reservation>;

/** Runs a reservation. Returns the refusal of a budget, and throws everything else. */
async function refused(reserve: Reserving, isFirst: boolean): Promise<Reservation | BudgetExhausted> {
  try {
    return await reserve(isFirst);
  } catch (error) {
    if (error instanceof BudgetExhausted) return error;
    throw error;
  }
}
