/** Reserves and charges each response of a realtime session separately. */
import { concat, concatMap, defer, from, throwError, type Observable, type ObservableInput } from 'rxjs';
import {
  GatewayError,
  sumUsage,
  type ApiKey,
  type GatewayEvent,
  type Usage,
  type AttemptEvent,
} from 'sluice';
import type { SessionWatch, Expected } from 'sluice/channel-kit';
import { noPriceError } from '../_price-errors.ts';
import {
  accountOf,
  chargedFor,
  chargedHolders,
  CallReservation,
  mostFor,
  priceFor,
  tunnelWatch,
  type Call,
} from 'sluice/internal';
import type {
  ApiKeys,
  Bookkeeper,
  Catalog,
  ChargedHolders,
  Ledger,
  Prices,
  Reservation,
  Settlement,
  UsageRecord,
} from './core-types.ts';

/** Holders of budgets for sessions without an API key. */
const nobody: ChargedHolders = { owners: [], series: [] };

/** Services for charging sessions. */
export interface SessionTools {
  readonly apiKeys: ApiKeys;
  readonly bookkeeper: Bookkeeper;
  readonly catalog: Catalog;
  readonly ledger: Ledger;
  readonly prices: Prices;
  /** Milliseconds. */
  readonly lease: number;
}

/** Returns the usage of a session that is not charged yet; undefined if there is none. */
function unpaid(watch: SessionWatch | undefined): Usage | undefined {
  const { unfinished, unreported } = watch ?? {};
  return unfinished === undefined || unreported === undefined
    ? (unfinished ?? unreported)
    : sumUsage(unfinished, unreported);
}

/** Charges of one session. */
export class Session {
  /** The API key as it was at the last reservation. */
  #key: ApiKey | undefined;
  readonly #call: Call;
  readonly #tools: SessionTools;
  /** The model in force when the session was sent. */
  #model: string;
  #attempt: AttemptEvent | undefined;
  #answers = 0;
  #answeredAt: number;
  readonly #reservation: CallReservation;
  /** Tokens of the conversation so far, which the next response has as input. */
  #context = 0;
  #refused: GatewayError | undefined;
  #over = false;

  constructor(call: Call, key: ApiKey | undefined, tools: SessionTools) {
    this.#call = call;
    this.#key = key;
    this.#tools = tools;
    this.#model = call.model;
    this.#answeredAt = call.startedAt;
    this.#reservation = new CallReservation(tools.bookkeeper);
    // Each response is charged separately, so the session itself costs nothing.
    accountOf(call).charge({ amounts: { microDollars: 0, tokens: 0 } });
  }

  /** True when the session has ended. */
  get over(): boolean {
    return this.#over;
  }

  /** Reserves the maximum cost of the next response. Throws 429 when a budget is too small; does nothing for keys without budgets. */
  async reserve(): Promise<void> {
    // The budgets may have been changed since the session began.
    if (this.#key !== undefined) this.#key = this.#tools.apiKeys.current(this.#key)?.key ?? this.#key;
    const key = this.#key;
    const { budgets = [] } = key ?? {};
    if (key === undefined || budgets.length === 0) return;
    const { prices, bookkeeper, lease } = this.#tools;
    const { input, output, units } = this.#expected();
    const own = priceFor(key.pricing, this.#model);
    const microDollars = mostFor(own, prices, this.#model, [input, output, units]);
    if (microDollars === undefined && budgets.some(({ unit }) => unit === 'micro-dollar'))
      throw noPriceError(this.#model);
    let reservation: Reservation;
    try {
      const most = { microDollars: microDollars ?? 0, tokens: input + output };
      reservation = await bookkeeper.reserve(key.id, budgets, most, lease);
    } catch (error) {
      if (error instanceof GatewayError) throw error;
      throw new GatewayError('server_is_overloaded', 'The budget of this API key cannot be checked now.', {
        retryAfter: 5,
        cause: error,
      });
    }
    if (this.#over) bookkeeper.release(reservation.id);
    else this.#reservation.hold(reservation);
  }

  /** Charges every response as it ends. The event that ends it is sent when the next response is reserved. */
  follow(events: Observable<GatewayEvent>): Observable<GatewayEvent> {
    return events.pipe(concatMap((event) => this.#step(event)));
  }

  /** Ends the session: charges an unfinished response by what was received of it, and releases the reservation. */
  end(): void {
    if (this.#over) return;
    this.#over = true;
    const watch = this.#attempt === undefined ? undefined : this.#call.get(tunnelWatch);
    const rest = unpaid(watch);
    const ended = watch?.unfinished === undefined ? 'complete' : 'left';
    if (rest !== undefined)
      this.#tools.bookkeeper.enqueue(this.#settlement(rest, ended, this.#reservation.settle()));
    this.#reservation.end();
  }

  #step(event: GatewayEvent): ObservableInput<GatewayEvent> {
    switch (event.type) {
      case 'request':
        this.#model = event.model;
        return [event];
      case 'attempt':
        if (event.failure === undefined) this.#attempt = event;
        return [event];
      case 'usage': {
        const refused = this.#refused;
        // The budget is spent: the session ends at this usage where the provider sends no message before.
        if (refused !== undefined) return throwError(() => refused);
        return event.part === undefined ? [event] : this.#charged(event, event.part);
      }
      case 'message':
        return this.#refused === undefined ? [event] : this.#last(event, this.#refused);
      default:
        return [event];
    }
  }

  #charged(event: GatewayEvent, part: Usage): ObservableInput<GatewayEvent> {
    if (part.input + part.output > 0) this.#context = part.input + part.output;
    const reservation = this.#reservation.settle();
    const settlement = this.#settlement(part, 'complete', reservation);
    if (reservation === undefined && (this.#key?.budgets ?? []).length === 0) {
      this.#tools.bookkeeper.enqueue(settlement);
      return [event];
    }
    // Begun at once: also a session that ends meanwhile has paid.
    const { gate, inputGate } = this.#call;
    gate.close();
    inputGate.close();
    const charging = this.#settle(settlement).finally(() => {
      gate.open();
      inputGate.open();
    });
    return defer(async () => {
      await charging;
      return event;
    });
  }

  /** Charges first and reserves then, because both reservations together could exceed the budget. */
  async #settle(settlement: Settlement): Promise<void> {
    try {
      await this.#tools.ledger.settle([settlement]);
    } catch {
      // Unknown whether the settlement was written. Settling it twice charges it once.
      this.#tools.bookkeeper.enqueue(settlement);
    }
    try {
      await this.reserve();
    } catch (error) {
      this.#refused =
        error instanceof GatewayError
          ? error
          : new GatewayError('internal_error', 'The budget of this API key could not be checked.', {
              cause: error,
            });
    }
  }

  #last(event: GatewayEvent, error: GatewayError): Observable<GatewayEvent> {
    return concat(
      from([event]),
      throwError(() => error),
    );
  }

  /** Returns the expected usage of one response: the conversation so far, new input, and output. */
  #expected(): Expected {
    const { codec, request } = this.#call;
    const { input, output, units } = codec.estimate?.(request) ?? { input: 0, output: 0 };
    const traits = this.#tools.catalog.targets(this.#model).map((target) => target.traits);
    const within = (tokens: number, limits: readonly (number | undefined)[]): number => {
      const known = limits.filter((limit) => limit !== undefined);
      return known.length === 0 || known.length < limits.length
        ? tokens
        : Math.min(
            tokens,
            known.reduce((most, limit) => Math.max(most, limit)),
          );
    };
    return {
      input: within(
        this.#context + input,
        traits.map(({ inputLimit }) => inputLimit),
      ),
      output: within(
        output,
        traits.map(({ outputLimit }) => outputLimit),
      ),
      ...(units === undefined ? {} : { units }),
    };
  }

  #settlement(usage: Usage, ended: UsageRecord['ended'], reservation: string | undefined): Settlement {
    const call = this.#call;
    const cost = this.#tools.prices.cost(this.#model, usage, this.#attempt);
    const now = performance.now();
    this.#answers += 1;
    const { channel, model, format } = this.#attempt ?? {};
    const keyId = this.#key?.id;
    const { input, output, cacheRead, cacheWrite, reasoning } = usage;
    const record: UsageRecord = {
      id: `${call.id}_${this.#answers}`,
      at: Date.now(),
      ip: call.wire.ip,
      operation: call.operation,
      format: call.format.name,
      model: call.askedModel,
      stream: true,
      passThrough: true,
      status: 200,
      ended,
      input,
      output,
      cacheRead,
      cacheWrite,
      reasoning,
      ms: Math.round(now - this.#answeredAt),
      ...(keyId === undefined ? {} : { keyId }),
      ...(format === undefined ? {} : { upstreamFormat: format }),
      ...(model === undefined ? {} : { upstreamModel: model }),
      ...(channel === undefined ? {} : { channel }),
      ...(usage.estimated === true ? { estimated: true } : {}),
      ...(cost === undefined ? {} : { microDollars: cost.microDollars, price: cost.price }),
    };
    this.#answeredAt = now;
    const own = { microDollars: cost?.microDollars ?? 0, tokens: input + output };
    const { owners, series, pricing } = this.#key === undefined ? nobody : chargedHolders(this.#key);
    const charged = chargedFor(priceFor(pricing, this.#model), own, [{ usage, price: cost?.price }]);
    const isDifferent = charged.microDollars !== own.microDollars;
    accountOf(call).chargeApart({
      amounts: charged,
      ...(isDifferent ? { cost: own.microDollars } : {}),
      usage,
      ...(cost === undefined ? {} : { price: cost.price }),
    });
    return {
      charged,
      record: isDifferent ? { ...record, chargedMicroDollars: charged.microDollars } : record,
      ...(keyId === undefined ? {} : { keyId, owners, series }),
      ...(reservation === undefined ? {} : { reservation }),
    };
  }
}
