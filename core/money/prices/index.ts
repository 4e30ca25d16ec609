import type { Channel } from '../../sdk/call.ts';
import { GatewayError } from '../../sdk/errors.ts';
import type { JsonObject } from '../../model/json.ts';
import { ownTokens, type Units, type Usage } from '../../model/usage.ts';
import type { PricedChannels, ServedBy } from './channels.ts';
import { Tariff } from './row.ts';
import { ServiceTable, type Services } from './services.ts';
import { type PriceRow, type PriceTable } from '../../settings/prices.ts';
import { matchesModel } from '../../state/api-keys/index.ts';

export type { PricedChannels, ServedBy } from './channels.ts';

/** What a call cost. */
export interface Cost {
  readonly microDollars: number;
  /** The row that was used, with its model pattern, and its `source` where that is not the config. */
  readonly price: JsonObject;
  /** The part of `microDollars` that services cost. Batches have no discount for it. */
  readonly services?: number;
}

/** Several calls whose tokens were added up: how many they are, and the most input tokens that one of them has. */
export interface Many {
  readonly calls: number;
  readonly longest: number;
}

/**
 * What models cost. The config's table comes first: by the public name, an exact one before the longest pattern that fits. Where it says
 * nothing each channel that serves the model has a price of its own, as far as it is known.
 */
export interface Prices {
  /**
   * What a call cost at `servedBy`, each model of the usage at its own price; at the dearest channel that serves the model where that is not
   * told, or serves it by a pattern alone and has no price for it. Undefined when there is none. Rounds up to whole micro-dollars.
   */
  cost(model: string, usage: Usage, servedBy?: ServedBy): Cost | undefined;
  /**
   * The most that a call may cost with so many tokens, or `many` calls together, whichever channel serves it: what is reserved before it.
   * Undefined when the model has no price, or none at a channel that names it exactly.
   */
  most(model: string, input: number, output: number, units?: Units, many?: Many): number | undefined;
  /** True for a model of which `most` is not known, so that keys with a budget in dollars cannot use it. */
  unpriced(model: string): boolean;
  /** The first of the services that has no price with this model, so that keys with a budget in dollars cannot use it. */
  unpricedService(model: string, services: Services): string | undefined;
  /** The row of a model, for people: that at `servedBy`, or at the first channel that has one. */
  row(model: string, servedBy?: ServedBy): JsonObject | undefined;
}

/** A row, ready to calculate. */
interface Row {
  readonly shown: JsonObject;
  readonly services: PriceRow['services'];
  /** By context length, the shortest first: the row's own prices, then its tiers. */
  readonly tariffs: readonly [Tariff, ...Tariff[]];
}

/** How many names are remembered: a stranger's flood of new ones is looked up each time and fills no memory. */
const remembered = 1000;

/**
 * Builds the table from what the settings accepted, and the prices that the channels of `catalog` know of. `unknown` is told once
 * of each model that was to be charged for and has no price.
 */
export function createPrices(
  table: PriceTable,
  unknown: (model: string) => void = () => {},
  catalog?: PricedChannels,
): Prices {
  const configured = tableOf(table);
  const channels = new Map(catalog?.channels.map((channel) => [channel.id, new ChannelRows(channel)]));
  const told = new Set<string>();
  const tell = (model: string): undefined => {
    if (told.has(model) || told.size >= remembered) return;
    told.add(model);
    unknown(model);
  };

  const at = ({ channel, model }: ServedBy): Row | undefined => channels.get(channel)?.find(model);
  /** The rows of the channels that serve the model, and whether they are enough to charge for it. */
  const everywhere = (model: string): { readonly rows: readonly Row[]; readonly enough: boolean } => {
    const rows: Row[] = [];
    let enough = true;
    for (const { channel, targets } of catalog?.candidates(model) ?? []) {
      const row = targets[0] && at({ channel: channel.id, model: targets[0].model });
      if (row !== undefined) rows.push(row);
      // One that has a pattern for it and knows nothing of it most likely does not have it; of what the config names there is no such doubt.
      else if (channel.models.includes(model)) enough = false;
    }
    return { rows, enough: enough && rows.length > 0 };
  };

  const ofOne = (model: string, usage: Usage, servedBy: ServedBy | undefined): Cost | undefined => {
    const row = configured(model) ?? (servedBy === undefined ? undefined : at(servedBy));
    if (row !== undefined) return costBy(row, usage);
    const { rows, enough } = everywhere(model);
    let dearest: Cost | undefined;
    for (const one of enough || servedBy === undefined ? rows : []) {
      const cost = costBy(one, usage);
      if (cost.microDollars >= (dearest?.microDollars ?? 0)) dearest = cost;
    }
    return dearest ?? tell(model);
  };

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

  return {
    cost(model, usage, servedBy) {
      const cost = ofTokens(model, usage, servedBy);
      const used = usage.units?.services;
      return cost && used ? withServices(cost, services.cost(model, used, servedBy)) : cost;
    },
    most(model, input, output, units = {}, many = { calls: 1, longest: input }) {
      const extra = units.services === undefined ? 0 : services.cost(model, units.services).microDollars;
      const of = (row: Row): number => extra + mostBy(row, [input, output, units], many);
      const own = configured(model);
      if (own !== undefined) return of(own);
      const { rows, enough } = everywhere(model);
      return enough ? Math.max(...rows.map(of)) : tell(model);
    },
    unpriced: (model) => configured(model) === undefined && !everywhere(model).enough,
    unpricedService: (model, wanted) => services.unpriced(model, wanted),
    row: (model, servedBy) =>
      (configured(model) ?? (servedBy === undefined ? everywhere(model).rows[0] : at(servedBy)))?.shown,
  };
}

/** Finds the config's row for a public name. */
function tableOf(table: PriceTable): (model: string) => Row | undefined {
  const rows = new Map(Object.entries(table).map(([pattern, row]) => [pattern, rowOf(pattern, row)]));
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
  /** By the provider's name of a model. */
  readonly find: (model: string) => Row | undefined;

  constructor(channel: Channel) {
    this.find = memory((model) => {
      const known = channel.priceOf?.(model);
      return known && rowOf(known.name, known.row, known.source);
    });
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

function costBy({ tariffs }: Row, usage: Usage): Cost {
  const tariff = tariffs.findLast(({ above }) => above === 0 || usage.input > above) ?? tariffs[0];
  return { microDollars: tariff.cost(usage, usage.units ?? {}), price: tariff.shown };
}

/** The cost of a call with that of services. Their prices are shown beside that of the call's own. */
function withServices(
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

type Amount = readonly [input: number, output: number, units: Units];

function mostBy({ tariffs }: Row, amount: Amount, { calls, longest }: Many): number {
  const reachable = tariffs.filter(({ above }) => above === 0 || longest > above);
  const dearest = (...of: Amount): number => Math.max(...reachable.map((one) => one.most(...of, calls)));
  if (calls === 1 || reachable.length === 1) return dearest(...amount);
  // Some of the calls may be long and others not: the dearest input and the dearest output need not be those of one length.
  const [input, output, units] = amount;
  return dearest(input, 0, {}) + dearest(0, output, units);
}

function rowOf(pattern: string, row: PriceRow, source?: string): Row {
  const tiers = (row.tiers ?? []).toSorted((one, other) => one.above - other.above);
  const own = new Tariff(pattern, row, undefined, source);
  return {
    services: row.services,
    shown: row.tiers === undefined ? own.shown : { ...own.shown, tiers: tiers as unknown as JsonObject[] },
    tariffs: [own, ...tiers.map((tier) => new Tariff(pattern, row, tier, source))],
  };
}

/** The refusal of a call that a budget in dollars cannot be kept with, because nobody knows what its model costs. */
export function noPriceError(model: string): GatewayError {
  const name = model.slice(0, 200);
  return new GatewayError(
    'model_not_allowed',
    `The model ${name} has no price here, and this API key has a budget in dollars. The operator must give it one in gateway.config.ts, in dollars per million tokens: prices: { ${JSON.stringify(name)}: { input: 1, output: 5 } }. "sluice prices import FILE" takes rows from a price list.`,
    { param: 'model' },
  );
}
