import { GatewayError } from 'sluice';
import { ReplyMeter, type Used } from './reply-meter.ts';
import { type Call, type CallReservation, type Next } from 'sluice/internal';
import type { Ending } from './core-types.ts';

/** Charges the run of a tool with its price, also where the caller left meanwhile. A run that failed costs nothing. */
export class ToolMeter extends ReplyMeter {
  readonly #microDollars: number;
  readonly model: string;
  readonly answered = undefined;

  constructor(call: Call, microDollars: number, reservation: CallReservation | undefined) {
    super(call, reservation);
    this.#microDollars = microDollars;
    this.model = call.model;
  }

  /** A run that its caller gave up is charged as one that the caller did not wait for: the tool may have run. */
  override send(next: Next): ReturnType<Next> {
    return super.send((call) =>
      next(call).catch((error: unknown) => {
        if (error instanceof GatewayError && error.code === 'client_closed_request') this.end('left');
        throw error;
      }),
    );
  }

  event(): void {
    // The price is known beforehand.
  }

  used(how: Ending): Used {
    return { usage: undefined, parts: [], microDollars: how === 'error' ? 0 : this.#microDollars };
  }
}
