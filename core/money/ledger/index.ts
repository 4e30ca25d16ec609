import type { Amounts, UsageRecord } from '../../model/usage-record.ts';
import type { HeldBudget } from '../../sdk/budget.ts';
import type { HolderSeries } from './windows.ts';
import type { Work } from '../../state/database/sql.ts';

/** A call's claim on its key's budgets until it is settled or its lease has run out. */
export interface Reservation {
  readonly id: string;
  readonly keyId: string;
  /** Ids of owners of the key on whose budgets the same was claimed. */
  readonly owners?: readonly string[];
  /** What was claimed. */
  readonly most: Amounts;
  /** Milliseconds from each renewal on, after which the claim of a call that nobody renews counts no more and is swept. */
  readonly lease: number;
  /** What was reserved beyond `most`, for calls that follow. Such a reservation is an allotment: other processes may recall what is free of it. */
  readonly ahead?: Amounts;
}

/** What is taken off an allotment, or what one is to hold from now on. */
export interface AllotmentDraw {
  /** The allotment's id. */
  readonly id: string;
  readonly amounts: Amounts;
  /** What no call uses of what it holds then. */
  readonly free: Amounts;
}

/** What the database is to be told of allotments. */
export interface AllotmentReturns {
  /** Those that serve no calls any more, with what their running calls and waiting charges need. */
  readonly resized: readonly AllotmentDraw[];
  /** Ids of those that need nothing any more. */
  readonly ended: readonly string[];
}

/** What a call has come to: charged, its claim given back and its record written, all or nothing. */
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

/** What becomes of claims together with something else. */
export interface ClaimChanges {
  readonly renewed?: readonly Reservation[];
  /** Their ids. */
  readonly released?: readonly string[];
}

/** One budget as it stands. */
export interface BudgetState extends HeldBudget {
  /** Milliseconds since 1970: when the period, or the window of `hours`, began; 0 for `total`. */
  readonly since: number;
  /** When the next period begins; absent for `hours` and `total`. */
  readonly until?: number;
  readonly spent: number;
  /** What running calls may come to, and charges that wait. */
  readonly reserved: number;
  /** What is reserved ahead and no call uses. It is given back within seconds when no calls come, and earlier when others want it. */
  readonly ahead: number;
}

/**
 * Money and tokens, exact across processes: what is spent and reserved never exceeds a budget. Spending is summed for every key and every
 * owner of keys, so that a budget given later counts what was spent before. Rejects when the database fails or takes longer than its patience, which is a second by
 * default; nothing is half done then.
 */
export interface Ledger {
  /**
   * Claims the most that a call may come to, for `lease` milliseconds (default a minute); where that has no room, `less`, which the call
   * can be held to. Throws {@link BudgetExhausted} naming the budget when one would be exceeded by either. Where there is no room for the
   * most, the allotments of the holders without room are recalled. `ahead` is reserved with it, or a part of that, where the budgets have much more room.
   */
  reserve(
    keyId: string,
    budgets: readonly HeldBudget[],
    most: Amounts,
    lease?: number,
    less?: Amounts,
    ahead?: Amounts,
  ): Promise<Reservation>;
  /** Lowers what closed allotments hold, and ends those that need nothing any more. Made twice it does no more than once. */
  giveBack(returns: AllotmentReturns): Promise<void>;
  /** Returns the ids of all allotments that were recalled and not given back yet, of whatever process. */
  recalled(): Promise<readonly string[]>;
  /**
   * In one transaction. A settlement that was made before (same record id) charges nothing. Charged to the period in which the claim was
   * made, also when it was swept meanwhile; without one to that of now.
   */
  settle(settlements: readonly Settlement[]): Promise<void>;
  /**
   * As `settle`, with `first` before it in the same transaction: when that gives false nothing else is done. Returns what it gave. `claims`
   * are renewed, with the lease that they have here, or given back in the same transaction.
   */
  settleAfter(
    settlements: readonly Settlement[],
    first: () => Work<boolean>,
    claims?: ClaimChanges,
  ): Promise<boolean>;
  /** Gives back claims of calls that came to nothing and are recorded by nobody. */
  release(reservations: readonly string[]): Promise<void>;
  /**
   * Moves the expiry of claims whose calls still run. A claim that had run out or was swept is made anew, whether or not it fits: its call
   * will be charged in full, and nobody shall be let in on what it takes. Returns the ids of those.
   */
  renew(reservations: readonly Reservation[]): Promise<readonly string[]>;
  /** Gives back what expired claims hold; returns how many there were. */
  sweep(): Promise<number>;
  /** How budgets stand now: those of a key, and of its owners. */
  states(keyId: string, budgets: readonly HeldBudget[]): Promise<readonly BudgetState[]>;
}

/** Takes settlements off the calls' path: gathers them and settles them in batches, from a bounded queue. */
export interface Bookkeeper {
  /**
   * As {@link Ledger.reserve}. Where only the claims of other calls stand in the way, what has ended is settled first: here, and in other
   * processes that share the database. So nobody is refused because of a call whose answer was read to its end, or because of what another
   * process has reserved ahead. `mayShare`: the reservation may be part of an allotment, because it is settled or released here and is kept
   * nowhere else.
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
   * Never throws, never waits. Settled within about 50 milliseconds, which is what a process can lose that is killed; kept and tried again
   * while the database fails. What charges nobody anything is let go of when the queue is full.
   */
  book(settlement: Settlement): void;
  /** Gives back the claim of a call that came to nothing and that nobody books. */
  release(reservation: string): void;
  /** Watches over the claim of a running call: renews it until the returned function is called. */
  watch(reservation: Reservation): () => void;
  /** True when so much waits that no new call should be taken. */
  readonly full: boolean;
  /** Settlements that wait. */
  readonly waiting: number;
  /** Settles what waits; for the end of the process. */
  close(): Promise<void>;
}
