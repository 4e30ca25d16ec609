import { passed, type Clock } from './clock.ts';
import type { InOrder } from './in-order.ts';
import type { Allotments } from './allotments.ts';
import type { Ledger, Reservation } from './index.ts';

/** Maximum time in ms between two looks for expired reservations; shorter where leases are shorter. */
const sweepEvery = 20_000;

/** Time in ms between two looks for reservations that are due to be renewed. */
const tendEvery = 250;

/** Time in ms between two looks whether allotments are wanted back by other processes. */
const recallEvery = 100;

interface Watched {
  readonly reservation: Reservation;
  dueAt: number;
}

/** Renews the reservations of running calls and the allotments of this process, gives back what others recall, and sweeps what was left behind. */
export class ReservationWatch {
  readonly #ledger: Ledger;
  readonly #allotments: Allotments;
  readonly #clock: Clock;
  readonly #inOrder: InOrder;
  readonly #report: (error: Error) => void;
  readonly #release: (reservation: string) => void;
  readonly #changed: () => void;
  readonly #watched = new Map<string, Watched>();
  #shortest = sweepEvery;
  #sweepAt = 0;
  /** The database failed at the last try. */
  #isFailing = false;
  #tending: Promise<void> | undefined;
  #recalling: Promise<void> | undefined;
  readonly #stops: (() => void)[] = [];
  #isClosed = false;

  constructor(
    {
      ledger,
      allotments,
      clock,
      inOrder,
    }: { ledger: Ledger; allotments: Allotments; clock: Clock; inOrder: InOrder },
    on: {
      readonly report: (error: Error) => void;
      readonly release: (reservation: string) => void;
      /** True when there are changes of allotments to write to the database. */
      readonly changed: () => void;
    },
  ) {
    this.#ledger = ledger;
    this.#allotments = allotments;
    this.#clock = clock;
    this.#inOrder = inOrder;
    this.#report = on.report;
    this.#release = on.release;
    this.#changed = on.changed;
    this.#every(tendEvery, () => {
      this.#tending ??= this.#tend().finally(() => (this.#tending = undefined));
    });
    this.#every(recallEvery, () => {
      if (!this.#allotments.isEmpty)
        this.#recalling ??= this.#lookForRecalls().finally(() => (this.#recalling = undefined));
    });
  }

  /** Renews a reservation until the returned function is called. */
  watch(reservation: Reservation): () => void {
    const { id, lease } = reservation;
    const now = this.#clock.now();
    this.#watched.set(id, { reservation, dueAt: now + lease / 3 });
    if (lease / 3 < this.#shortest) {
      this.#shortest = lease / 3;
      this.#sweepAt = Math.min(this.#sweepAt, now + this.#shortest);
    }
    return () => void this.#watched.delete(id);
  }

  /** Stops. Resolves when the database is not being asked any more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const stop of this.#stops) stop();
    await Promise.all([this.#tending, this.#recalling]);
  }

  #every(milliseconds: number, job: () => void): void {
    const at = this.#stops.length;
    const next = (): void => {
      this.#stops[at] = this.#clock.after(milliseconds, () => {
        if (this.#isClosed) return;
        next();
        job();
      });
    };
    next();
  }

  /** Renews what is due, and sweeps what others have left. The time of day is not used for what is due: it may be set. */
  async #tend(): Promise<void> {
    try {
      await this.#inOrder.run(() => this.#renew());
      if (this.#sweepAt <= this.#clock.now()) {
        await this.#ledger.sweep();
        this.#sweepAt = this.#clock.now() + Math.min(sweepEvery, this.#shortest);
      }
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing)
        this.#report(
          new Error('Reservations of running calls cannot be renewed or removed now.', { cause: error }),
        );
      this.#isFailing = true;
    }
  }

  async #renew(): Promise<void> {
    const sent = { now: this.#clock.now(), wall: this.#clock.wall() };
    const calls: Reservation[] = [];
    for (const { dueAt, reservation } of this.#watched.values())
      if (dueAt <= sent.now) calls.push(reservation);
    const allotments = this.#allotments.due();
    if (calls.length + allotments.length === 0) return;
    const lost = await this.#ledger.renew([...calls, ...allotments]);
    for (const { id, lease } of calls) {
      const watched = this.#watched.get(id);
      if (watched !== undefined) watched.dueAt = sent.now + lease / 3;
    }
    this.#allotments.renewed(allotments, new Set(lost), sent);
    this.#reportLost(lost);
  }

  /** Reports reservations that were made anew. A call that has ended meanwhile needs none any more. */
  #reportLost(lost: readonly string[]): void {
    if (lost.length === 0) return;
    this.#report(
      new Error(
        `The reservations of ${lost.length} running calls had expired and were made again, because this process or the database was blocked for longer than their lease.`,
      ),
    );
    for (const id of lost) if (!this.#watched.has(id) && !this.#allotments.holds(id)) this.#release(id);
    if (this.#allotments.hasReturns) this.#changed();
  }

  /** Gives back what other processes want, and what no call needs any more. */
  async #lookForRecalls(): Promise<void> {
    this.#allotments.closeIdle();
    this.#allotments.releaseAbandoned();
    try {
      if (this.#allotments.hasOpen) this.#allotments.recall(await this.#ledger.recalled());
    } catch {
      // The renewals report a database that fails. A recall that is not seen now is seen later.
      await passed(this.#clock, tendEvery);
    }
    if (this.#allotments.hasReturns) this.#changed();
  }
}
