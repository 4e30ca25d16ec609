/** Amounts that this process has reserved ahead for keys that call often. */
import type { Amounts } from '../../model/usage-record.ts';
import type { HeldBudget } from '../../sdk/budget.ts';
import { Allotment, type SentAt } from './allotment.ts';
import { none } from './amounts.ts';
import type { Clock } from './clock.ts';
import { FrequentKeys } from './frequent-keys.ts';
import type { AllotmentDraw, AllotmentReturns, Reservation, Settlement } from './index.ts';

/*
 * A reservation in the database for each call costs more than all else that the gateway does for a short call: a budget in dollars
 * made it 2.3 times as expensive (November 2026). So a process reserves ahead for keys that call often, and serves the calls that follow
 * from memory. What is reserved ahead counts as reserved for everybody, so that budgets stay exact.
 */

/** How many further calls like the one that asks are reserved ahead. */
const callsAhead = 15;

/** Time in ms without a new call after which what is free of an allotment is given back. */
const idle = 1_000;

/** The allotments of one process. Nothing in it waits: the bookkeeper speaks with the database. */
export class Allotments {
  readonly #clock: Clock;
  readonly #keys: FrequentKeys;
  /** By key. */
  readonly #open = new Map<string, Allotment>();
  /** By id: the open ones, and those with calls that run or charges that wait. */
  readonly #all = new Map<string, Allotment>();
  /** Reservations of calls that nobody watches any more, and when that began: they are about to be settled. */
  readonly #unwatched = new Map<string, number>();
  #isClosed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#keys = new FrequentKeys(clock);
  }

  /** True when calls are served from any. */
  get hasOpen(): boolean {
    return this.#open.size > 0;
  }

  /** True when there are none, in the database neither. */
  get isEmpty(): boolean {
    return this.#all.size === 0;
  }

  /** Reserves the amounts for a call from memory. Undefined when no allotment of the key has so much room. */
  take(keyId: string, budgets: readonly HeldBudget[], most: Amounts): Reservation | undefined {
    const allotment = this.#open.get(keyId);
    if (allotment === undefined) return undefined;
    if (allotment.isFor(budgets)) return allotment.reserve(most);
    this.#close(allotment);
    return undefined;
  }

  /**
   * Returns what to reserve ahead, together with a call that is about to reserve in the database; undefined for keys that call rarely.
   * {@link endRequest} must be called when the database has answered.
   */
  wanted(keyId: string, { microDollars, tokens }: Amounts): Amounts | undefined {
    if (this.#isClosed) return undefined;
    const open = this.#open.get(keyId);
    if (!this.#keys.begin(keyId, open !== undefined && open.idleFor < idle)) return undefined;
    const running = open?.claimed ?? none;
    return {
      microDollars: callsAhead * microDollars + 2 * running.microDollars,
      tokens: callsAhead * tokens + 2 * running.tokens,
    };
  }

  /** Notes that the reservation for {@link wanted} was made or refused. */
  endRequest(keyId: string): void {
    this.#keys.end(keyId);
  }

  /** Takes over a reservation that was made with something ahead. Returns the call's own part of it. */
  adopt(reservation: Reservation, budgets: readonly HeldBudget[], sent: SentAt): Reservation {
    this.close(reservation.keyId);
    const allotment = new Allotment(reservation, budgets, sent, this.#clock);
    this.#open.set(allotment.keyId, allotment);
    this.#all.set(allotment.id, allotment);
    const own = allotment.reserve(reservation.most) ?? reservation;
    if (this.#isClosed) this.#close(allotment);
    return own;
  }

  /** True for the id of a running call's reservation that is part of an allotment. */
  has(reservation: string): boolean {
    return this.#of(reservation) !== undefined;
  }

  /** Gives back the reservation of a call that costs nothing. False when it is no part of an allotment. */
  release(reservation: string): boolean {
    this.#unwatched.delete(reservation);
    return this.#of(reservation)?.end(reservation, none) !== undefined;
  }

  /** Nobody watches the reservation any more: its call is about to be settled. */
  unwatch(reservation: string): void {
    if (this.#of(reservation)?.hasReservation(reservation) === true)
      this.#unwatched.set(reservation, this.#clock.now());
  }

  /** Gives back reservations of calls that nobody has settled for as long as their lease, as those run out that are no part of an allotment. */
  releaseAbandoned(): void {
    const now = this.#clock.now();
    for (const [reservation, since] of this.#unwatched)
      if (now - since >= (this.#of(reservation)?.lease ?? 0)) this.release(reservation);
  }

  /** Returns the settlement of a call as the database has to make it: one whose reservation is part of an allotment draws on that. */
  drawn(settlement: Settlement): Settlement {
    const { reservation = '', ...rest } = settlement;
    this.#unwatched.delete(reservation);
    const { charged, keyId, owners, isPriced } = settlement;
    // The price rule of owners that are looked up on settlement is not in `charged` yet.
    const isFinal = keyId === undefined || owners !== undefined || isPriced === true;
    const allotment = this.#of(reservation)?.end(reservation, isFinal ? charged : undefined);
    return allotment === undefined ? settlement : { ...rest, allotment };
  }

  /** The database has taken these charges off their allotments. */
  settled(draws: readonly AllotmentDraw[]): void {
    for (const { id, amounts } of draws) this.#all.get(id)?.settled(amounts);
  }

  /** Gives back what is reserved ahead for a key. */
  close(keyId: string): void {
    const allotment = this.#open.get(keyId);
    if (allotment !== undefined) this.#close(allotment);
  }

  /** Gives back allotments that were recalled, by their ids. Those of other processes may be among them. */
  recall(ids: readonly string[]): void {
    for (const id of ids) {
      const allotment = this.#all.get(id);
      if (allotment?.isOpen === true) this.giveUp(allotment.keyId);
    }
  }

  /** Gives back what is reserved ahead for a key whose budgets have little room left. Nothing is reserved ahead for it for a while. */
  giveUp(keyId: string): void {
    this.close(keyId);
    this.#keys.rest(keyId);
  }

  /** Gives back all that is reserved ahead, for the end of the process. */
  closeAll(): void {
    this.#isClosed = true;
    for (const allotment of this.#open.values()) this.#close(allotment);
  }

  /** Gives back what is reserved ahead for keys that do not call any more, and what may not be used any more. */
  closeIdle(): void {
    for (const allotment of this.#open.values())
      if (allotment.idleFor >= idle || !allotment.isTrusted) this.#close(allotment);
  }

  /** Returns those that are to be renewed, as reservations of what they need without what is free: so much is reserved anew where a lease has run out. */
  due(): readonly Reservation[] {
    const now = this.#clock.now();
    return [...this.#all.values()]
      .filter(({ renewAt }) => renewAt <= now)
      .map(({ id, keyId, owners, lease, needed }) => ({
        id,
        keyId,
        ...(owners === undefined ? {} : { owners }),
        lease,
        most: needed,
      }));
  }

  /** They were renewed; those in `lost` had run out and were made anew, so that what was free of them may be somebody else's by now. */
  renewed(due: readonly Reservation[], lost: ReadonlySet<string>, sent: SentAt): void {
    for (const { id } of due) {
      const allotment = this.#all.get(id);
      allotment?.renewed(sent);
      if (allotment !== undefined && lost.has(id)) this.#close(allotment);
    }
  }

  /** True for the id of an allotment that the database holds something for. */
  holds(id: string): boolean {
    return this.#all.has(id);
  }

  /** Returns the changes to write to the database; undefined when there are none. After the write call {@link returned} or {@link failed}. */
  returns(): AllotmentReturns | undefined {
    const dirty = [...this.#all.values()].filter(({ isDirty }) => isDirty);
    if (dirty.length === 0) return undefined;
    for (const allotment of dirty) allotment.isDirty = false;
    return {
      resized: dirty
        .filter(({ isOver }) => !isOver)
        .map(({ id, needed }) => ({ id, amounts: needed, free: none })),
      ended: dirty.filter(({ isOver }) => isOver).map(({ id }) => id),
    };
  }

  /** The changes were written. */
  returned({ ended }: AllotmentReturns): void {
    for (const id of ended) this.#all.delete(id);
  }

  /** The write failed: the changes are written again. */
  failed({ resized, ended }: AllotmentReturns): void {
    for (const id of [...resized.map((one) => one.id), ...ended]) {
      const allotment = this.#all.get(id);
      if (allotment !== undefined) allotment.isDirty = true;
    }
  }

  /** True when there are changes to write to the database. */
  get hasReturns(): boolean {
    for (const { isDirty } of this.#all.values()) if (isDirty) return true;
    return false;
  }

  #of(reservation: string): Allotment | undefined {
    const end = reservation.indexOf('/');
    return end < 0 ? undefined : this.#all.get(reservation.slice(0, end));
  }

  #close(allotment: Allotment): void {
    if (this.#open.get(allotment.keyId) === allotment) this.#open.delete(allotment.keyId);
    allotment.close();
  }
}
