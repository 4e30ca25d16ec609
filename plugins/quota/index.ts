/** Budgets: reserves what a call may cost, and refuses it when the budget is spent. */
import { z } from 'zod';
import { caller, GatewayError, type ApiKey, type HeldBudget, type Operation } from 'sluice';
import { noPriceError, noServicePriceError, noTierPriceError } from '../_price-errors.ts';
import { CallClaims } from './call-claims.ts';
import {
  definePlugin,
  chargedHolders,
  noAmounts,
  sumOfAmounts,
  accountOf,
  attributionOf,
  endUserBudgets,
  withEndUsers,
  Claim,
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

const options = z.strictObject({
  /** The output limit that a call is sent with near the end of a budget, when it has none and its model gives no less. */
  assumedOutput: z.int().min(1).max(10_000_000).default(32_000),
  /** The number of uses of tools that the provider runs, for calls that state no limit of them. Keys with a budget in dollars are held to it. */
  assumedToolUses: z.int().min(1).max(1000).default(10),
  /** Seconds after which the claim of a call is given back whose gateway was killed. Running calls renew theirs. */
  lease: z.number().min(1).max(3600).default(60),
  /**
   * Whether a process reserves ahead for keys that call often, so that most of their calls need no reservation in the database. What no call
   * uses is given back after a second without calls, and when another call has no room. False: each call makes a reservation.
   */
  reserveAhead: z.boolean().default(true),
});

/** What costs nothing. A video is charged when its task is made; a realtime session for each answer, by whoever hears it. */
const free: ReadonlySet<Operation> = new Set<Operation>([
  'count-tokens',
  'get-video',
  'delete-video',
  'realtime',
  'list-models',
  'state',
]);

/**
 * Callers pay for what they use, once, whatever the format and however the call ends. A key with budgets gets 429 for a call that may
 * exceed one of them; what a call may come to is reserved before it, so that calls at the same time cannot exceed it together.
 */
export default definePlugin({
  name: 'quota',
  stage: 'admit',
  // It keeps the records with which accounts settle their charges.
  after: ['usage-log'],
  reads: 'usage',
  options,
  setup({ assumedOutput, assumedToolUses, lease, reserveAhead }, tools: InternalTools) {
    const { bookkeeper, catalog, prices, settings } = tools;

    const bound: Bounding = (call) =>
      boundOf(
        call,
        catalog.targets(call.model),
        assumedOutput,
        tools.isSingleChoice,
        tools.areMcpServersCalled(call),
      );

    /** The maximum number of uses of services that a call asks for. */
    const requested = (call: Call): Services | undefined =>
      servicesOf(call.bodyOutline, assumedToolUses, {
        format: call.codec.format,
        added: call.edits.addedMembers,
      });

    const unbudgeted = (call: Call, send: Next) => new Meter(call, bound).send(send);

    /** The most that a call may come to. Throws 403 where nobody knows it, and a budget is in dollars. */
    const amountsOf = (call: Call, { requests: sent, input, units, media }: Bound, dollars: boolean) => {
      const requests = sent * (1 + mostHedges(call, settings.routing));
      const { tier: serviceTier, path = '' } = (dollars ? tierOf(call.bodyOutline) : undefined) ?? {};
      const own = accountOf(call).ownPrice(call.model);
      const { row } = own;
      if (row === undefined && serviceTier !== undefined && prices.unpricedTier(call.model, serviceTier))
        throw noTierPriceError(call.model, serviceTier, path);
      const possible = media && { input: media };
      return (written: number, services: Services | undefined): Amounts => {
        const priced = services && row ? row.unnamed(services) : services;
        const unpriced = dollars && priced ? prices.unpricedService(call.model, priced) : undefined;
        if (unpriced !== undefined) throw noServicePriceError(call.model, unpriced);
        // Each provider that is asked beside the first reads the input too, and may use the services.
        const read = requests * input;
        const all = services === undefined ? units : { ...units, services: times(services, requests) };
        const bounds = { calls: requests, longest: read, serviceTier, media: possible };
        const microDollars = mostFor(own, prices, call.model, [read, written, all], bounds);
        if (microDollars === undefined && dollars) throw noPriceError(call.model);
        return { microDollars: microDollars ?? 0, tokens: read + written };
      };
    };

    /** Reserves amounts, or less where only that has room. Throws 429 where nothing has, 503 where the database does not tell. */
    const reserved = async (
      { id }: Pick<ApiKey, 'id'>,
      budgets: readonly HeldBudget[],
      most: Amounts,
      mayShare: boolean,
      less?: Amounts,
    ): Promise<Reservation> => {
      try {
        return await bookkeeper.reserve(
          id,
          budgets,
          most,
          Math.round(lease * 1000),
          less,
          reserveAhead && mayShare,
        );
      } catch (error) {
        if (error instanceof GatewayError) throw error;
        throw new GatewayError('server_is_overloaded', 'The budget of this API key cannot be checked now.', {
          retryAfter: 5,
          cause: error,
        });
      }
    };

    /**
     * Claims what a call may come to, unless so much is claimed already. `before`: what the same call has been charged, or has claimed for
     * requests that are under way. Gives the call as it is to be sent.
     */
    const reserve = async (
      call: Call,
      { id }: ApiKey,
      budgets: readonly HeldBudget[],
      claim: Claim,
      before: Amounts = noAmounts,
    ): Promise<Call> => {
      const limits = bound(call);
      const { most: written, held } = limits.output;
      const dollars = budgets.some(({ unit }) => unit === 'micro-dollar');
      const own = amountsOf(call, limits, dollars);
      const amounts: typeof own = (output, uses) => sumOfAmounts(own(output, uses), before);
      const limited = (uses: number): CallEdits | undefined =>
        dollars ? limitEdits(call, catalog.targets(call.model), uses) : undefined;
      const few = limited(1);
      const most = amounts(written, requested(call));
      if (claim.covers(most)) return call;
      claim.release();
      const less =
        held === undefined && few === undefined
          ? undefined
          : amounts(held?.most ?? written, requested(few === undefined ? call : call.with(few)));
      // What is settled elsewhere has a reservation of its own.
      const mayShare = hasNoEndUser(budgets) && before === noAmounts && !accountOf(call).settlesElsewhere;
      const reservation = await reserved({ id }, budgets, most, mayShare, less);
      claim.hold(reservation);
      const isHeld = less !== undefined && isLess(reservation.most, most);
      const edits = isHeld ? few : few && limited(assumedToolUses);
      const sent = edits === undefined ? call : call.with(edits);
      return isHeld && held !== undefined ? sent.with({ settings: { maxOutput: held.limit } }) : sent;
    };

    /** The price of a tool is known: that is reserved, and charged once it has run. */
    const tool = async (call: Call, next: Next, key?: ApiKey, budgets: readonly HeldBudget[] = []) => {
      const microDollars = call.get(toolPrice) ?? 0;
      if (microDollars === 0) return next(call);
      const claim = key && new Claim(bookkeeper);
      if (key !== undefined && claim !== undefined) {
        claim.endWith(call);
        const { amounts } = accountOf(call).chargeOf(call.model, { microDollars, tokens: 0 });
        claim.hold(await reserved(key, budgets, amounts, hasNoEndUser(budgets)));
      }
      accountOf(call).sendThrough((now, send) => new ToolMeter(now, microDollars, claim).send(send));
      return next(call);
    };

    const budgeted = async (call: Call, next: Next, key: ApiKey, budgets: readonly HeldBudget[]) => {
      const claim = new Claim(bookkeeper);
      claim.endWith(call);
      const sent = await reserve(call, key, budgets, claim);
      const services = requested(sent);
      // Plugins behind this one may ask for another model, for more, or twice.
      let claims: CallClaims | undefined;
      const meterOf = async (now: Call, own: Claim, before?: Amounts): Promise<Meter> => {
        const asked = await reserve(now, key, budgets, own, before);
        return new Meter(asked, bound, own, requested(asked));
      };
      const again = async (now: Call, send: Next) => {
        if (claim.isTaken) {
          claims ??= new CallClaims(call, bookkeeper, claim);
          const meter = await claims.further((own, before) => meterOf(now, own, before));
          return meter.send(send);
        }
        claim.endWith(now);
        return (await meterOf(now, claim)).send(send);
      };
      accountOf(call).sendThrough(
        (now, send) =>
          claim.isFree && costsTheSame(now, sent)
            ? new Meter(now, bound, claim, services).send(send)
            : again(now, send),
        claim,
      );
      return next(sent);
    };

    return function quota(call: Call, next) {
      if (free.has(call.operation)) return next(call);
      if (bookkeeper.full) {
        throw new GatewayError(
          'server_is_overloaded',
          'The gateway takes no calls now: its database does not keep up with those that have ended.',
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
      // Nobody without a budget waits for the database.
      if (key !== undefined && budgets.length > 0)
        return call.operation === 'tool'
          ? tool(call, next, key, budgets)
          : budgeted(call, next, key, budgets);
      if (call.operation === 'tool') return tool(call, next);
      accountOf(call).sendThrough(unbudgeted);
      return next(call);
    };
  },
});

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
