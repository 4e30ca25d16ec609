/** Reserves what calls may cost, and charges what they have cost. */
import { caller, GatewayError, type ApiKey, type HeldBudget, type Operation } from 'sluice';
import { noPriceError, noServicePriceError, noTierPriceError } from '../_price-errors.ts';
import { CallReservations } from './call-reservations.ts';
import {
  chargedHolders,
  noAmounts,
  sumOfAmounts,
  accountOf,
  attributionOf,
  endUserBudgets,
  withEndUsers,
  CallReservation,
  mostFor,
  mostHedges,
  toolPrice,
  type Call,
  type InternalTools,
  type Next,
} from 'sluice/internal';
import type { Amounts, CallEdits, Reservation } from './core-types.ts';
import { boundOf, type Bound } from './estimate.ts';
import { Meter, type Bounding } from './meter.ts';
import { ToolMeter } from './tool-meter.ts';
import { limitEdits, servicesOf, tierOf, type Services } from './services.ts';

/** Operations without a charge here. A video is charged when its task is created, a realtime session for each response. */
const free: ReadonlySet<Operation> = new Set<Operation>([
  'count-tokens',
  'get-video',
  'delete-video',
  'realtime',
  'list-models',
  'state',
]);

/** Options of the plugin; their descriptions stand at its schema. */
export interface QuotaOptions {
  readonly assumedOutput: number;
  readonly assumedToolUses: number;
  /** Lifetime of a reservation in seconds. */
  readonly lease: number;
  readonly reserveAhead: boolean;
}

/** Admits calls by their budgets, and measures what they use. */
export class Quota {
  readonly #options: QuotaOptions;
  readonly #tools: InternalTools;

  constructor(options: QuotaOptions, tools: InternalTools) {
    this.#options = options;
    this.#tools = tools;
  }

  readonly #bound: Bounding = (call) =>
    boundOf(
      call,
      this.#tools.catalog.targets(call.model),
      this.#options.assumedOutput,
      this.#tools.isSingleChoice,
      this.#tools.areMcpServersCalled(call),
    );

  /** The maximum number of uses of services that a call asks for. */
  #requested(call: Call): Services | undefined {
    return servicesOf(call.bodyOutline, this.#options.assumedToolUses, {
      format: call.codec.format,
      added: call.edits.addedMembers,
    });
  }

  readonly #unbudgeted = (call: Call, send: Next): ReturnType<Next> =>
    new Meter(call, this.#bound).send(send);

  /** The most that a call may come to. Throws 403 where nobody knows it, and a budget is in dollars. */
  #amountsOf(call: Call, { requests: sent, input, units, media }: Bound, dollars: boolean) {
    const requests = sent * (1 + mostHedges(call, this.#tools.settings.routing));
    const { tier: serviceTier, path = '' } = (dollars ? tierOf(call.bodyOutline) : undefined) ?? {};
    const own = accountOf(call).ownPrice(call.model);
    const { row } = own;
    if (
      row === undefined &&
      serviceTier !== undefined &&
      this.#tools.prices.unpricedTier(call.model, serviceTier)
    )
      throw noTierPriceError(call.model, serviceTier, path);
    const possible = media && { input: media };
    return (written: number, services: Services | undefined): Amounts => {
      const priced = services && row ? row.unnamed(services) : services;
      const unpriced = dollars && priced ? this.#tools.prices.unpricedService(call.model, priced) : undefined;
      if (unpriced !== undefined) throw noServicePriceError(call.model, unpriced);
      // Each provider that is asked beside the first reads the input too, and may use the services.
      const read = requests * input;
      const all = services === undefined ? units : { ...units, services: times(services, requests) };
      const bounds = { calls: requests, longest: read, serviceTier, media: possible };
      const microDollars = mostFor(own, this.#tools.prices, call.model, [read, written, all], bounds);
      if (microDollars === undefined && dollars) throw noPriceError(call.model);
      return { microDollars: microDollars ?? 0, tokens: read + written };
    };
  }

  /** Reserves amounts, or less where only that has room. Throws 429 where nothing has, 503 where the database does not tell. */
  async #reserved(
    { id }: Pick<ApiKey, 'id'>,
    budgets: readonly HeldBudget[],
    most: Amounts,
    mayShare: boolean,
    less?: Amounts,
  ): Promise<Reservation> {
    try {
      return await this.#tools.bookkeeper.reserve(
        id,
        budgets,
        most,
        Math.round(this.#options.lease * 1000),
        less,
        this.#options.reserveAhead && mayShare,
      );
    } catch (error) {
      if (error instanceof GatewayError) throw error;
      throw new GatewayError('server_is_overloaded', 'The budget of this API key cannot be checked now.', {
        retryAfter: 5,
        cause: error,
      });
    }
  }

  /**
   * Reserves the upper bound of a call, unless the reservation covers it already. `before`: what the same call has been charged, or has
   * reserved for requests that are under way. Returns the call that must be sent.
   */
  async #reserve(
    call: Call,
    { id }: ApiKey,
    budgets: readonly HeldBudget[],
    reservation: CallReservation,
    before: Amounts = noAmounts,
  ): Promise<Call> {
    const limits = this.#bound(call);
    const { most: written, held } = limits.output;
    const dollars = budgets.some(({ unit }) => unit === 'micro-dollar');
    const own = this.#amountsOf(call, limits, dollars);
    const amounts: typeof own = (output, uses) => sumOfAmounts(own(output, uses), before);
    const limited = (uses: number): CallEdits | undefined =>
      dollars ? limitEdits(call, this.#tools.catalog.targets(call.model), uses) : undefined;
    const few = limited(1);
    const most = amounts(written, this.#requested(call));
    if (reservation.covers(most)) return call;
    reservation.release();
    const less =
      held === undefined && few === undefined
        ? undefined
        : amounts(held?.most ?? written, this.#requested(few === undefined ? call : call.with(few)));
    // Charges that are settled elsewhere have their own reservation.
    const mayShare = hasNoEndUser(budgets) && before === noAmounts && !accountOf(call).settlesElsewhere;
    const reserved = await this.#reserved({ id }, budgets, most, mayShare, less);
    reservation.hold(reserved);
    const isHeld = less !== undefined && isLess(reserved.most, most);
    const edits = isHeld ? few : few && limited(this.#options.assumedToolUses);
    const sent = edits === undefined ? call : call.with(edits);
    return isHeld && held !== undefined ? sent.with({ settings: { maxOutput: held.limit } }) : sent;
  }

  /** Reserves the known price of a tool, and charges it when the tool has run. */
  async #tool(call: Call, next: Next, key?: ApiKey, budgets: readonly HeldBudget[] = []) {
    const microDollars = call.get(toolPrice) ?? 0;
    if (microDollars === 0) return next(call);
    const reservation = key && new CallReservation(this.#tools.bookkeeper);
    if (key !== undefined && reservation !== undefined) {
      reservation.endWith(call);
      const { amounts } = accountOf(call).chargeOf(call.model, { microDollars, tokens: 0 });
      reservation.hold(await this.#reserved(key, budgets, amounts, hasNoEndUser(budgets)));
    }
    accountOf(call).sendThrough((now, send) => new ToolMeter(now, microDollars, reservation).send(send));
    return next(call);
  }

  async #budgeted(call: Call, next: Next, key: ApiKey, budgets: readonly HeldBudget[]) {
    const reservation = new CallReservation(this.#tools.bookkeeper);
    reservation.endWith(call);
    const sent = await this.#reserve(call, key, budgets, reservation);
    const services = this.#requested(sent);
    // Plugins behind this one may ask for another model, for more, or twice.
    let reservations: CallReservations | undefined;
    const meterOf = async (now: Call, own: CallReservation, before?: Amounts): Promise<Meter> => {
      const limited = await this.#reserve(now, key, budgets, own, before);
      return new Meter(limited, this.#bound, own, this.#requested(limited));
    };
    const again = async (now: Call, send: Next) => {
      if (reservation.isTaken) {
        reservations ??= new CallReservations(call, this.#tools.bookkeeper, reservation);
        const meter = await reservations.further((own, before) => meterOf(now, own, before));
        return meter.send(send);
      }
      reservation.endWith(now);
      return (await meterOf(now, reservation)).send(send);
    };
    accountOf(call).sendThrough(
      (now, send) =>
        reservation.isFree && costsTheSame(now, sent)
          ? new Meter(now, this.#bound, reservation, services).send(send)
          : again(now, send),
      reservation,
    );
    return next(sent);
  }

  /** Admits a call, or refuses it. Throws 429 when a budget is spent. */
  handle(call: Call, next: Next): ReturnType<Next> {
    if (free.has(call.operation)) return next(call);
    if (this.#tools.bookkeeper.full) {
      throw new GatewayError(
        'server_is_overloaded',
        'The gateway accepts no calls now, because its database does not keep up with settlements. Retry later.',
        { retryAfter: 5 },
      );
    }
    const key = call.get(caller);
    const account = accountOf(call);
    const attribution = attributionFor(key, call);
    account.attributeTo(attribution);
    const ofEndUser = key === undefined ? [] : endUserBudgets(key, attribution.endUser);
    const budgets = ofEndUser.length === 0 ? (key?.budgets ?? []) : [...(key?.budgets ?? []), ...ofEndUser];
    if (key !== undefined) {
      const holders = chargedHolders(key);
      account.belongTo(ofEndUser.length === 0 ? holders : withEndUsers(holders, ofEndUser));
    }
    // Calls without a budget do not wait for the database.
    if (key !== undefined && budgets.length > 0)
      return call.operation === 'tool'
        ? this.#tool(call, next, key, budgets)
        : this.#budgeted(call, next, key, budgets);
    if (call.operation === 'tool') return this.#tool(call, next);
    accountOf(call).sendThrough(this.#unbudgeted);
    return next(call);
  }
}

/**
 * Returns by what a call is attributed. What a plugin sends for a call of the same key is attributed as that call, so that it is reserved and
 * charged by the same budgets.
 */
function attributionFor(key: ApiKey | undefined, call: Call): ReturnType<typeof attributionOf> {
  const { parent, operation } = call;
  const inherited = key === undefined || parent === undefined ? undefined : accountOf(parent).attribution;
  return inherited ?? (operation === 'tool' ? {} : attributionOf(key, call));
}

/** True where no end user has a budget: each of them would need an allotment. */
function hasNoEndUser(budgets: readonly HeldBudget[]): boolean {
  return budgets.every(({ owner }) => owner?.scope === undefined);
}

function times(services: Services, factor: number): Services {
  return Object.fromEntries(Object.entries(services).map(([name, uses]) => [name, uses * factor]));
}

function isLess(one: Amounts, other: Amounts): boolean {
  return one.tokens < other.tokens || one.microDollars < other.microDollars;
}

/** True when nothing was changed between the two views of a call by which its cost is found. */
function costsTheSame(one: Call, other: Call): boolean {
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
