/**
 * Types of the budget ledger: reservations, settlements and budget states, and the interfaces of the ledger in the database and of the queue
 * before it.
 */
import type { Amounts, UsageRecord } from '../../model/usage-record.ts';
import type { HeldBudget } from '../../sdk/budget.ts';
import type { HolderSeries } from './windows.ts';
import type { Work } from '../../state/database/sql.ts';

/** Amounts that a call has reserved of its key's budgets, until it is settled or its lease expires. */
export interface Reservation {
  readonly id: string;
  readonly keyId: string;
  /** Ids of owners of the key on whose budgets the same amounts are reserved. */
  readonly owners?: readonly string[];
  /** Reserved amounts: the most that the call may cost. */
  readonly most: Amounts;
  /** Milliseconds from each renewal on, after which an unrenewed reservation no longer counts and is swept. */
  readonly lease: number;
  /** Amounts reserved beyond `most`, for later calls. Such a reservation is an allotment: other processes may recall its free part. */
  readonly ahead?: Amounts;
}

/** Amounts that are taken off an allotment, or that it holds from now on. */
export interface AllotmentDraw {
  /** The allotment's id. */
  readonly id: string;
  readonly amounts: Amounts;
  /** Part of the allotment that no call uses afterwards. */
  readonly free: Amounts;
}

/** Changes of allotments for the database. */
export interface AllotmentReturns {
  /** Those that serve no calls any more, with what their running calls and waiting charges need. */
  readonly resized: readonly AllotmentDraw[];
  /** Ids of those that need nothing any more. */
  readonly ended: readonly string[];
}

/** Final accounting of one call. One transaction charges the budgets, releases the reservation and writes the usage record. */
export interface Settlement {
  readonly keyId?: string;
  /** Ids of the owners of the key, who are charged the same. Absent: the owners that the key has when it is settled. */
  readonly owners?: readonly string[];
  /** The series in which the charge is summed too. Without `owners`: beside those of the owners that are found. */
  readonly series?: readonly HolderSeries[];
  readonly reservation?: string;
  /** The allotment that the call's reservation was part of, and what is taken off it in the same transaction. */
  readonly allotment?: AllotmentDraw;
  readonly charged: Amounts;
  /** True where the price rule of the owners is in `charged` already, as in a refund of what was charged. */
  readonly isPriced?: true;
  readonly record: UsageRecord;
  /** `charged` is given back: to the periods that hold this time (milliseconds since 1970), which is when it was charged. */
  readonly refundOf?: number;
}

/** Changes of reservations in the same transaction as settlements. */
export interface ReservationChanges {
  readonly renewed?: readonly Reservation[];
  /** Their ids. */
  readonly released?: readonly string[];
}

/** State of one budget. */
export interface BudgetState extends HeldBudget {
  /** Milliseconds since 1970: when the period, or the window of `hours`, began; 0 for `total`. */
  readonly since: number;
  /** When the next period begins; absent for `hours` and `total`. */
  readonly until?: number;
  readonly spent: number;
  /** Reserved for running calls, and for charges that wait. */
  readonly reserved: number;
  /** Reserved ahead for later calls. Given back within seconds without calls, and earlier when another process recalls it. */
  readonly ahead: number;
}

/**
 * Budgets of money and tokens, exact across processes: spent and reserved amounts never exceed a budget. Spending is summed for every key and
 * every owner of keys, so that a budget that is set later counts earlier spending. Rejects when the database fails or exceeds its timeout (a
 * second by default); the transaction is then rolled back.
 */
export interface Ledger {
  /**
   * Reserves `most`, the maximum cost of a call, for `lease` milliseconds (default a minute); where a budget has no room for that, `less`, to
   * which the call can be limited. Throws `BudgetExhausted` with the name of the budget when neither fits. Where there is no room for `most`,
   * recalls the allotments of the holders without room. Also reserves `ahead`, or a part of it, where the budgets have ample room.
   */
  reserve(
    keyId: string,
    budgets: readonly HeldBudget[],
    most: Amounts,
    lease?: number,
    less?: Amounts,
    ahead?: Amounts,
  ): Promise<Reservation>;
  /** Lowers the amounts of closed allotments, and ends those that are no longer needed. Idempotent. */
  giveBack(returns: AllotmentReturns): Promise<void>;
  /** Returns the ids of all allotments that were recalled and not given back yet, of whatever process. */
  recalled(): Promise<readonly string[]>;
  /**
   * Books settlements in one transaction. A settlement that was booked before (same record id) charges nothing. Charges the period in which
   * the reservation was made, also when it was swept meanwhile; without a reservation the current period.
   */
  settle(settlements: readonly Settlement[]): Promise<void>;
  /**
   * As `settle`, with `first` before it in the same transaction: when that returns false nothing else is done. Returns its result. `claims`
   * are renewed, with the lease that they have here, or released in the same transaction.
   */
  settleAfter(
    settlements: readonly Settlement[],
    first: () => Work<boolean>,
    claims?: ReservationChanges,
  ): Promise<boolean>;
  /** Releases reservations of calls that cost nothing and have no record. */
  release(reservations: readonly string[]): Promise<void>;
  /**
   * Extends the leases of running calls. Makes a reservation that had expired or was swept anew, whether or not it fits, because its call
   * will be charged in full. Returns the ids of those.
   */
  renew(reservations: readonly Reservation[]): Promise<readonly string[]>;
  /** Removes expired reservations; returns how many there were. */
  sweep(): Promise<number>;
  /** Returns the current states of budgets of a key and its owners. */
  states(keyId: string, budgets: readonly HeldBudget[]): Promise<readonly BudgetState[]>;
}

/** Settles asynchronously: collects settlements in a bounded queue and books them in batches. */
export interface Bookkeeper {
  /**
   * As {@link Ledger.reserve}. Where only reservations of other calls exhaust a budget, waits until ended calls are settled, here and in other
   * processes that share the database, so that no call is refused because of a call that has ended or because of an allotment. `mayShare`: the
   * reservation may be part of an allotment, because it is settled or released by this process and is stored nowhere else.
   */
  reserve(
    keyId: string,
    budgets: readonly HeldBudget[],
    most: Amounts,
    lease?: number,
    less?: Amounts,
    mayShare?: boolean,
  ): Promise<Reservation>;
  /**
   * Enqueues a settlement; never throws or blocks. Books it within about 50 ms, so a killed process can lose 50 ms of settlements. Retries
   * while the database fails. Drops settlements without a charge when the queue is full.
   */
  enqueue(settlement: Settlement): void;
  /** Releases the reservation of a call that is not booked. */
  release(reservation: string): void;
  /** Renews the reservation of a running call until the returned function is called. */
  watch(reservation: Reservation): () => void;
  /** True when the queue is full, so that new calls should be refused. */
  readonly full: boolean;
  /** Number of waiting settlements. */
  readonly waiting: number;
  /** Books the waiting settlements, at the end of the process. */
  close(): Promise<void>;
}
