/** The price table: what a call cost, and the most it may cost. */
import type { Channel } from '../../sdk/call.ts';
import type { JsonObject } from '../../model/json.ts';
import { ownTokens, type Units, type Usage } from '../../model/usage.ts';
import { pico, micro } from './amounts.ts';
import type { PricedChannels, ServedBy } from './channels.ts';
import { Row, type CallBounds } from './row.ts';
import { ServiceTable, type Services } from './services.ts';
import { type PriceTable } from '../../settings/prices.ts';
import { matchesModel } from '../../sdk/allowed-models.ts';

export type { PricedChannels, ServedBy } from './channels.ts';
export type { CallBounds, Many } from './row.ts';

/** Cost of a call. */
export interface Cost {
  readonly microDollars: number;
  /** The row that was used, with its model pattern, and its `source` where that is not the config. */
  readonly price: JsonObject;
  /** The part of `microDollars` that services cost. Batches have no discount for it. */
  readonly services?: number;
}

/** A call whose provider stated a cost that is not what its price comes to. Both are micro-dollars. */
export interface CostDifference {
  readonly model: string;
  readonly channel: string;
  readonly stated: number;
  readonly ours: number;
}

/** Receivers of reports about prices. */
export interface PriceReports {
  /** A model that was to be charged for and has no price; once for each. */
  readonly unknown?: (model: string) => void;
  /** A stated cost that is far from ours; once a day for each model. */
  readonly difference?: (difference: CostDifference) => void;
}

/**
 * Prices of models. The config's table comes first: an exact public name before the longest pattern that matches. A model that is not in it
 * has the known price of each channel that serves it.
 */
export interface Prices {
  /**
   * Returns the cost of a call at `servedBy`, rounded up to whole micro-dollars: the cost that the provider states, unless the config's row
   * for the model has `takesProviderCost: false`; else the sum over the models of the usage, each at its own price. Without `servedBy`, or where that serves the model by a
   * pattern alone and has no price for it, the dearest channel that serves the model counts. Undefined when there is no price.
   */
  cost(model: string, usage: Usage, servedBy?: ServedBy): Cost | undefined;
  /**
   * The most that a call may cost with so many tokens, or several calls together, whichever channel serves it: what is reserved before it.
   * Undefined when the model has no price, or none at a channel that names it exactly.
   */
  most(model: string, input: number, output: number, units?: Units, bounds?: CallBounds): number | undefined;
  /** True for a model of which `most` is not known, so that keys with a budget in dollars cannot use it. */
  unpriced(model: string): boolean;
  /** The first of the services that has no price with this model, so that keys with a budget in dollars cannot use it. */
  unpricedService(model: string, services: Services): string | undefined;
  /** The most that uses of services cost with a model, in micro-dollars. Those without a price cost nothing. */
  serviceCost(model: string, services: Services): number;
  /** True for a service tier without a price at a channel of the model, so that keys with a budget in dollars cannot ask for it. */
  unpricedTier(model: string, serviceTier: string): boolean;
  /** The row of a model, for people: that at `servedBy`, or at the first channel that has one. */
  row(model: string, servedBy?: ServedBy): JsonObject | undefined;
}

/** How many names are remembered: a stranger's flood of new ones is looked up each time and fills no memory. */
const remembered = 1000;

/** Builds the table from what the settings accepted, and the prices that the channels of `catalog` know of. */
export function createPrices(
  table: PriceTable,
  { unknown = () => {}, difference }: PriceReports = {},
  catalog?: PricedChannels,
): Prices {
  const { configured, at, everywhere, ofOne } = rowsOf(table, catalog);
  const reported = new Set<string>();
  const report = (model: string): undefined => {
    if (reported.has(model) || reported.size >= remembered) return;
    reported.add(model);
    unknown(model);
  };

  const channelsById = new Map(catalog?.channels.map((channel) => [channel.id, channel]));
  /** Cost that the provider reports, in micro-dollars. It does not cover usage that was estimated. */
  const statedCost = (model: string, { raw, estimated }: Usage, servedBy?: ServedBy): number | undefined => {
    if (raw === undefined || estimated === true || servedBy === undefined) return undefined;
    const dollars = channelsById.get(servedBy.channel)?.statedCost?.(raw);
    if (dollars === undefined || configured(model)?.takesProviderCost === false) return undefined;
    return dollars >= 0 && dollars <= mostDollars ? micro(pico(dollars, 12)) : undefined;
  };
  const compare = difference === undefined ? () => {} : daily(difference);

  const services = new ServiceTable((model) => configured(model)?.services, catalog);
  const ofTokens: Prices['cost'] = (model, usage, servedBy) => {
    const { otherModels } = usage;
    if (otherModels === undefined) return ofOne(model, usage, servedBy);
    const own = ofOne(model, { ...usage, ...ownTokens(usage) }, servedBy);
    // A model without a price costs what that of the call does.
    const others = otherModels.map(
      (other) =>
        ofOne(other.model, other.usage, servedBy && { ...servedBy, model: other.model }) ??
        ofOne(model, other.usage, servedBy),
    );
    return sumOf(
      own,
      others.filter((one) => one !== undefined),
    );
  };

  const withServices = (
    cost: Cost | undefined,
    used: Services | undefined,
    model: string,
    servedBy: ServedBy | undefined,
  ): Cost | undefined => (cost && used ? addServices(cost, services.cost(model, used, servedBy)) : cost);

  return {
    cost(model, usage, servedBy) {
      const ours = withServices(ofTokens(model, usage, servedBy), usage.units?.services, model, servedBy);
      const stated = statedCost(model, usage, servedBy);
      if (stated === undefined || servedBy === undefined) return ours ?? report(model);
      if (ours !== undefined) compare({ model, channel: servedBy.channel, stated, ours: ours.microDollars });
      return { microDollars: stated, price: { ...ours?.price, statedBy: servedBy.channel } };
    },
    most(model, input, output, units = {}, bounds = {}) {
      const extra = units.services === undefined ? 0 : services.cost(model, units.services).microDollars;
      const of = (row: Row): number => extra + row.most([input, output, units], bounds);
      const own = configured(model);
      if (own !== undefined) return of(own);
      const { rows, enough } = everywhere(model);
      return enough ? Math.max(...rows.map(of)) : report(model);
    },
    unpriced: (model) => configured(model) === undefined && !everywhere(model).enough,
    unpricedService: (model, wanted) => services.unpriced(model, wanted),
    serviceCost: (model, wanted) => services.cost(model, wanted).microDollars,
    unpricedTier(model, serviceTier) {
      const own = configured(model);
      const rows = own === undefined ? everywhere(model).rows : [own];
      return rows.length === 0 || !rows.every((row) => row.hasTier(serviceTier));
    },
    row: (model, servedBy) =>
      (configured(model) ?? (servedBy === undefined ? everywhere(model).rows[0] : at(servedBy)))?.shown,
  };
}

/** The prices of a model at the channels that serve it. */
interface RowsOfModel {
  /** Each once: thousands of channels may have the same. */
  readonly rows: readonly Row[];
  /** True when they are enough to charge for the call. */
  readonly enough: boolean;
  /** Prices that the providers had reported when these were found. */
  readonly asOf: readonly (readonly [channel: Channel, asOf: object | undefined])[];
}

/** Finds rows: those of the config by public names, those of channels by the names of their providers. */
function rowsOf(table: PriceTable, catalog: PricedChannels | undefined) {
  const configured = tableOf(table);
  const channels = new Map(catalog?.channels.map((channel) => [channel.id, new ChannelRows(channel)]));
  const at = ({ channel, model }: ServedBy): Row | undefined => channels.get(channel)?.find(model);
  const found = new WeakMap<object, RowsOfModel>();
  const everywhere = (model: string): RowsOfModel => {
    const candidates = catalog?.candidates(model) ?? [];
    const known = found.get(candidates);
    if (known?.asOf.every(([channel, asOf]) => channel.pricesAsOf?.() === asOf) === true) return known;
    const rows = new Map<string, Row>();
    const asOf: [Channel, object | undefined][] = [];
    let enough = true;
    for (const { channel, targets } of candidates) {
      const row = targets[0] && at({ channel: channel.id, model: targets[0].model });
      if (channel.pricesAsOf !== undefined) asOf.push([channel, channel.pricesAsOf()]);
      if (row !== undefined) rows.set(JSON.stringify(row.shown), row);
      // One that has a pattern for it and knows nothing of it most likely does not have it; of what the config names there is no such doubt.
      else if (channel.models.includes(model)) enough = false;
    }
    const all = { rows: [...rows.values()], enough: enough && rows.size > 0, asOf };
    found.set(candidates, all);
    return all;
  };
  const ofOne = (model: string, usage: Usage, servedBy: ServedBy | undefined): Cost | undefined => {
    const row = configured(model) ?? (servedBy === undefined ? undefined : at(servedBy));
    if (row !== undefined) return row.cost(usage);
    const { rows, enough } = everywhere(model);
    let dearest: Cost | undefined;
    for (const one of enough || servedBy === undefined ? rows : []) {
      const cost = one.cost(usage);
      if (cost.microDollars >= (dearest?.microDollars ?? 0)) dearest = cost;
    }
    return dearest;
  };
  return { configured, at, everywhere, ofOne };
}

/** Finds the config's row for a public name. */
function tableOf(table: PriceTable): (model: string) => Row | undefined {
  const rows = new Map(Object.entries(table).map(([pattern, row]) => [pattern, new Row(pattern, row)]));
  const patterns = [...rows.keys()]
    .filter((name) => name.includes('*'))
    .toSorted((one, other) => other.length - one.length)
    .map((name) => [name] as const);
  return memory((model) => {
    const pattern = patterns.find((one) => matchesModel(one, model));
    return rows.get(model) ?? (pattern === undefined ? undefined : rows.get(pattern[0]));
  });
}

/** The rows of what one channel knows. */
class ChannelRows {
  readonly #channel: Channel;
  #found: ((model: string) => Row | undefined) | undefined;
  #asOf: object | undefined;

  constructor(channel: Channel) {
    this.#channel = channel;
  }

  /** Finds the row of a model by the provider's name of it. */
  find(model: string): Row | undefined {
    const channel = this.#channel;
    const asOf = channel.pricesAsOf?.();
    if (this.#found === undefined || asOf !== this.#asOf) {
      this.#asOf = asOf;
      this.#found = memory((name) => {
        const known = channel.priceOf?.(name);
        return known && new Row(known.name, known.row, known.source);
      });
    }
    return this.#found(model);
  }
}

/** Looks things up by name, and remembers so many of them. */
function memory<Found>(look: (name: string) => Found | undefined): (name: string) => Found | undefined {
  const known = new Map<string, Found | undefined>();
  return (name) => {
    let found = known.get(name);
    if (found !== undefined || known.has(name)) return found;
    found = look(name);
    if (known.size < remembered && name.length < 200) known.set(name, found);
    return found;
  };
}

/** The cost of a call with that of services. Their prices are shown beside that of the call's own. */
function addServices(
  { microDollars, price }: Cost,
  services: { readonly microDollars: number; readonly prices: Services },
): Cost {
  return {
    microDollars: microDollars + services.microDollars,
    price: Object.keys(services.prices).length === 0 ? price : { ...price, services: services.prices },
    services: services.microDollars,
  };
}

/** The cost of a call with that of further models. Their prices are shown beside that of the call's own. */
function sumOf(own: Cost | undefined, others: readonly Cost[]): Cost | undefined {
  const [first] = others;
  if (first === undefined) return own;
  return {
    microDollars: others.reduce((sum, { microDollars }) => sum + microDollars, own?.microDollars ?? 0),
    price: { ...own?.price, otherModels: others.map(({ price }) => price) },
  };
}

/** Cost of a call that no provider can mean: a stated cost above it is none. */
const mostDollars = 100_000;

/** Share of the calculated cost above which a difference is reported. */
const tolerance = 0.05;

/** Reports differences above 5 % of our price, each model once a day. Differences of a few micro-dollars are roundings. */
function daily(report: (difference: CostDifference) => void): (difference: CostDifference) => void {
  let day = -1;
  let reported = new Set<string>();
  return (difference) => {
    const { model, channel, stated, ours } = difference;
    if (Math.abs(stated - ours) <= Math.max(2, ours * tolerance)) return;
    const today = Math.floor(Date.now() / 86_400_000);
    if (today !== day) {
      day = today;
      reported = new Set();
    }
    const name = `${channel} ${model}`;
    if (reported.has(name) || reported.size >= remembered) return;
    reported.add(name);
    report(difference);
  };
}
