/** A part of a key's budgets that one process has reserved ahead in the database, and from which it reserves for calls in memory. */
import type { Amounts } from '../../model/usage-record.ts';
import type { HeldBudget } from '../../sdk/budget.ts';
import { difference, fits, none, smaller, sum } from './amounts.ts';
import type { Clock } from './clock.ts';
import type { AllotmentDraw, Reservation } from './index.ts';
import { sharedSpan } from './windows.ts';
import type { Span } from '../../model/time-zones.ts';

/** Share of its lease for which an allotment is used without being renewed. The rest is for clocks that differ in speed. */
const trustedShare = 0.9;

/** The times of both clocks before the database was asked: a lease begins no earlier. */
export type SentAt = Readonly<Record<'now' | 'wall', number>>;

/**
 * Part of the budgets of a key and its owners that this process has reserved: for running calls, for charges that wait to be settled, and,
 * while it is open, for calls to come.
 */
export class Allotment {
  readonly id: string;
  readonly keyId: string;
  /** Ids of owners of the key on whose budgets it is reserved too. */
  readonly owners: readonly string[] | undefined;
  readonly lease: number;
  /** True when the database holds more for it than it needs. */
  isDirty = false;
  renewAt: number;
  readonly #clock: Clock;
  readonly #budgets: readonly HeldBudget[];
  /** The time in which its calls count in the same day, and in the same parts of rolling windows, as the reservation itself. */
  readonly #span: Span;
  /** Reserved amounts of running calls, by the ids of their reservations. */
  readonly #claims = new Map<string, Amounts>();
  /** For calls to come. */
  #free: Amounts;
  #claimed = none;
  #unsettled = none;
  #isOpen = true;
  /** When a call last reserved something of it. */
  #usedAt: number;
  #renewedAt: SentAt;
  #ids = 0;

  constructor(
    { id, keyId, owners, most, lease, ahead = none }: Reservation,
    budgets: readonly HeldBudget[],
    sent: SentAt,
    clock: Clock,
  ) {
    this.id = id;
    this.keyId = keyId;
    this.owners = owners;
    this.lease = lease;
    this.#budgets = budgets;
    this.#clock = clock;
    this.#span = sharedSpan(budgets, sent.wall);
    this.#free = sum(most, ahead);
    this.#usedAt = sent.now;
    this.renewAt = sent.now + lease / 3;
    this.#renewedAt = sent;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Amounts that running calls have reserved of it. */
  get claimed(): Amounts {
    return this.#claimed;
  }

  /** True when it is closed and no call and no charge needs it. */
  get isOver(): boolean {
    const { microDollars, tokens } = this.#unsettled;
    return !this.#isOpen && this.#claims.size === 0 && microDollars === 0 && tokens === 0;
  }

  /** Amounts that running calls and waiting charges need of it. */
  get needed(): Amounts {
    return sum(this.#claimed, this.#unsettled);
  }

  /** True when calls may be served from it: its lease has not run out, and the budgets and their periods are those it was made for. */
  isFor(budgets: readonly HeldBudget[]): boolean {
    return this.#budgets === budgets && this.isTrusted;
  }

  /** False when its lease may have run out, or the time is over in which its calls may count as the reservation does. */
  get isTrusted(): boolean {
    const wall = this.#clock.wall();
    const { start, end } = this.#span;
    return isWithin(this.lease, this.#renewedAt, this.#clock) && wall >= start && wall < end;
  }

  /** Milliseconds since a call last reserved something of it. */
  get idleFor(): number {
    return this.#clock.now() - this.#usedAt;
  }

  /** Reserves amounts for a call. Undefined when there is not so much room. */
  reserve(most: Amounts): Reservation | undefined {
    if (!this.#isOpen || !fits(most, this.#free)) return undefined;
    const id = `${this.id}/${(this.#ids += 1)}`;
    this.#claims.set(id, most);
    this.#claimed = sum(this.#claimed, most);
    this.#free = difference(this.#free, most);
    this.#usedAt = this.#clock.now();
    return { id, keyId: this.keyId, most, lease: this.lease };
  }

  /** True for the id of a running call's reservation. */
  hasReservation(reservation: string): boolean {
    return this.#claims.has(reservation);
  }

  /**
   * Ends a call's reservation. What the call was not charged is free for others, or given back. Returns what the settlement of the call has
   * to take off the allotment; undefined when there is no reservation of this id. `charged`: absent where it is known on settlement alone.
   */
  end(claim: string, charged?: Amounts): AllotmentDraw | undefined {
    const most = this.#claims.get(claim);
    if (most === undefined) return undefined;
    this.#claims.delete(claim);
    this.#claimed = difference(this.#claimed, most);
    // No more than was reserved for it, because the rest is reserved for other calls.
    const amounts = charged === undefined ? most : smaller(charged, most);
    this.#unsettled = sum(this.#unsettled, amounts);
    if (this.#isOpen) this.#free = difference(sum(this.#free, most), amounts);
    else this.isDirty = true;
    return { id: this.id, amounts, free: this.#free };
  }

  /** The database has taken these amounts off it. */
  settled(amounts: Amounts): void {
    this.#unsettled = difference(this.#unsettled, amounts);
    if (this.isOver) this.isDirty = true;
  }

  /** Ends the serving of calls from it. What is free is given back. */
  close(): void {
    this.#isOpen = false;
    this.#free = none;
    this.isDirty = true;
  }

  /** Its lease was renewed by a request that was sent at this time. */
  renewed(sent: SentAt): void {
    this.renewAt = sent.now + this.lease / 3;
    this.#renewedAt = sent;
  }
}

/** False when a lease that was asked for at this time, by either clock, may be over. */
export function isWithin(lease: number, sent: SentAt, clock: Clock): boolean {
  const trusted = lease * trustedShare;
  return clock.now() - sent.now < trusted && clock.wall() - sent.wall < trusted;
}
