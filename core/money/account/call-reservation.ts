/** Lifecycle of a call's budget reservation: hold, renew, hand over to a charge, or release at the end of the call. */
import type { Amounts } from '../../model/usage-record.ts';
import type { Call } from '../../sdk/call.ts';
import { GatewayError } from '../../sdk/errors.ts';
import type { Bookkeeper, Reservation } from '../ledger/index.ts';

/**
 * One reservation of a call. Its lease is renewed, and it is given up exactly once: by the charge that settles it, by {@link release}, or by
 * the end of the call.
 */
export class CallReservation {
  /** True while a request that the reservation pays for is under way, and for good once that is charged. */
  isTaken = false;
  readonly #bookkeeper: Bookkeeper;
  #reservation: Reservation | undefined;
  #unwatch: (() => void) | undefined;
  #isOver = false;

  constructor(bookkeeper: Bookkeeper) {
    this.#bookkeeper = bookkeeper;
  }

  /** True when at least these amounts are reserved. */
  covers({ tokens, microDollars }: Amounts): boolean {
    const most = this.#reservation?.most;
    return most !== undefined && tokens <= most.tokens && microDollars <= most.microDollars;
  }

  /** Amounts that are reserved, also where they pay for a request that is under way; nothing once that is charged. */
  get held(): Amounts | undefined {
    return this.#reservation?.most;
  }

  /** True while something is reserved that pays for nothing yet. */
  get isFree(): boolean {
    return !this.isTaken && this.#reservation !== undefined;
  }

  /** Ends the reservation with the call. Throws when the call has ended already. */
  endWith(call: Call): void {
    if (call.hasEnded) throw clientLeft();
    call.onEnd(() => this.end());
  }

  /** Takes over a reservation. Releases it and throws when the call ended while it was made. */
  hold(reservation: Reservation): void {
    if (this.#isOver) {
      this.#bookkeeper.release(reservation.id);
      throw clientLeft();
    }
    this.#reservation = reservation;
    this.#unwatch = this.#bookkeeper.watch(reservation);
  }

  /** Gives the reservation back. Another may be held afterwards. */
  release(): void {
    this.isTaken = false;
    const id = this.#letGo();
    if (id !== undefined) this.#bookkeeper.release(id);
  }

  /** Returns the id of the reservation for a settlement that is enqueued at once. Another may be held afterwards, unless the call has ended. */
  settle(): string | undefined {
    return this.#letGo();
  }

  /** Returns the reservation for the charge that settles it, which goes on renewing it. Another may be held, unless the call has ended. */
  handOver(): HeldReservation | undefined {
    const reservation = this.#reservation;
    const unwatch = this.#unwatch;
    this.#reservation = undefined;
    this.#unwatch = undefined;
    return reservation && { id: reservation.id, most: reservation.most, unwatch: () => unwatch?.() };
  }

  /** The call has ended: releases a reservation that pays for nothing, and takes over no other. */
  end(): void {
    this.#isOver = true;
    if (!this.isTaken) this.release();
  }

  #letGo(): string | undefined {
    const id = this.#reservation?.id;
    this.#unwatch?.();
    this.#unwatch = undefined;
    this.#reservation = undefined;
    return id;
  }
}

/** A reservation that pays for something, and is renewed until `unwatch` is called. */
export interface HeldReservation {
  readonly id: string;
  readonly most: Amounts;
  unwatch(): void;
}

/** Returns the error of a call that ended before it was sent. */
export function clientLeft(): GatewayError {
  return new GatewayError('client_closed_request', 'The client left before its call was sent.');
}
