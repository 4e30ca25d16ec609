import { GatewayError } from 'sluice';
import type { Amounts, Bookkeeper, Call, Reservation } from 'sluice/internal';

/** What a call has claimed of its budgets, from the claim to the charge that settles it. */
export class Claim {
  /** Set while a request that it pays for is under way, and for good when that is charged. */
  isTaken = false;
  readonly #bookkeeper: Bookkeeper;
  #reservation: Reservation | undefined;
  #unwatch: (() => void) | undefined;
  #over = false;

  constructor(bookkeeper: Bookkeeper) {
    this.#bookkeeper = bookkeeper;
  }

  /** True where so much is claimed. */
  covers({ tokens, microDollars }: Amounts): boolean {
    const most = this.#reservation?.most;
    return most !== undefined && tokens <= most.tokens && microDollars <= most.microDollars;
  }

  /** True while something is claimed that pays for nothing yet. */
  get isFree(): boolean {
    return !this.isTaken && this.#reservation !== undefined;
  }

  /** Keeps it alive until it is settled or given back. Throws when the call has ended meanwhile. */
  hold(reservation: Reservation): void {
    if (this.#over) {
      this.#bookkeeper.release(reservation.id);
      throw clientLeft();
    }
    this.#reservation = reservation;
    this.#unwatch = this.#bookkeeper.watch(reservation);
  }

  /** Nothing is claimed any more, until somebody claims again. */
  giveBack(): void {
    this.isTaken = false;
    const id = this.#letGo();
    if (id !== undefined) this.#bookkeeper.release(id);
  }

  /** What it paid for is charged: gives the reservation which that settles. */
  settle(): string | undefined {
    this.#over = true;
    return this.#letGo();
  }

  /** The call has ended: what pays for nothing is given back, and nothing is claimed from now on. */
  end(): void {
    this.#over = true;
    if (!this.isTaken) this.giveBack();
  }

  #letGo(): string | undefined {
    const id = this.#reservation?.id;
    this.#unwatch?.();
    this.#unwatch = undefined;
    this.#reservation = undefined;
    return id;
  }
}

/** Returns the error of a call that ended before it was sent. */
export function clientLeft(): GatewayError {
  return new GatewayError('client_closed_request', 'The client left before its call was sent.');
}

/** True when nothing was changed between the two views of a call by which its cost is found. */
export function costsTheSame(one: Call, other: Call): boolean {
  const [a, b] = [one.edits, other.edits];
  return (
    one.model === other.model &&
    a.body === b.body &&
    a.codec === b.codec &&
    a.settings === b.settings &&
    a.system === b.system &&
    a.messages === b.messages
  );
}
