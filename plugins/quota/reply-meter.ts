/** Base class of meters: observes the response to one request, and charges its call exactly once. */
import {
  observe,
  type AttemptEvent,
  type CallCost,
  type GatewayEvent,
  type Observing,
  type Usage,
} from 'sluice';
import { accountOf, clientLeft, type Call, type CallReservation, type Next } from 'sluice/internal';
import type { Ending } from './core-types.ts';

/** Usage of one request, in total and by the providers that charge for it. */
export interface Used {
  readonly usage: Usage | undefined;
  readonly parts: readonly Usage[];
  /** Cost of a run with a fixed price, which has no usage. */
  readonly microDollars?: number;
}

/**
 * Observes the response to one request of a call and charges the call once, however the response or the call ends. Nothing is charged
 * where `next` rejects: another request may follow, with a reservation of its own.
 */
export abstract class ReplyMeter implements Observing {
  protected readonly call: Call;
  readonly #held: CallReservation | undefined;
  #forget: (() => void) | undefined = undefined;
  #isOver = false;

  /** `reservation`: the one that pays for the request. Throws when the call has ended, because nobody would settle what it costs. */
  constructor(call: Call, reservation: CallReservation | undefined) {
    if (call.hasEnded) {
      reservation?.release();
      throw clientLeft();
    }
    this.call = call;
    this.#held = reservation;
    if (reservation !== undefined) reservation.isTaken = true;
  }

  /** The model in force when the request was sent. */
  abstract get model(): string;
  /** The attempt that answered. */
  abstract get answered(): AttemptEvent | undefined;
  abstract event(event: GatewayEvent): void;
  /** Returns the usage to charge. `how`: the way in which the response has ended. */
  abstract used(how: Ending): Used;

  /** Sends the request. Once. */
  send(next: Next): ReturnType<Next> {
    // No stream ends where the client leaves before the provider has responded, so the end of the call is observed too.
    this.#forget = this.call.onEnd(() => this.end('left'));
    return next(this.call).then(observe(this), (error: unknown) => this.#failed(error));
  }

  end(how: Ending): void {
    if (!this.#finish()) return;
    try {
      this.#charge(how);
    } catch (error) {
      this.#held?.release();
      throw error;
    }
  }

  #charge(how: Ending): void {
    const account = accountOf(this.call);
    const { usage, parts, microDollars = 0 } = this.used(how);
    const costs = parts.map((part) => account.priced(this.model, part, this.answered));
    const cost = sumOfCosts(costs);
    const reservation = this.#held?.handOver();
    const { row } = account.ownPrice(this.model);
    const priced = row && parts.map((part, index) => ({ usage: part, price: costs[index]?.price }));
    account.charge({
      ...account.chargeOf(
        this.model,
        {
          microDollars: cost?.microDollars ?? microDollars,
          tokens: usage === undefined ? 0 : usage.input + usage.output,
        },
        priced,
      ),
      ...(usage === undefined ? {} : { usage }),
      ...(cost?.price === undefined ? {} : { price: cost.price }),
      ...(reservation === undefined ? {} : { reservation }),
    });
  }

  #failed(error: unknown): never {
    if (this.#finish()) this.#held?.release();
    throw error;
  }

  /** False when it is over already. */
  #finish(): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    this.#forget?.();
    return true;
  }
}

/** Adds the costs of the parts of a request, with the price of the first. */
function sumOfCosts(costs: readonly (CallCost | undefined)[]): CallCost | undefined {
  const known = costs.filter((cost) => cost !== undefined);
  const microDollars = known.reduce((sum, cost) => sum + cost.microDollars, 0);
  const price = known[0]?.price;
  return known.length === 0 ? undefined : { microDollars, ...(price === undefined ? {} : { price }) };
}
