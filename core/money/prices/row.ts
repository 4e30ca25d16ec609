/** Calculates cost and maximum cost of calls from one row of the price table, with its context lengths and service tiers. */
import type { JsonObject } from '../../model/json.ts';
import type { Units, Usage } from '../../model/usage.ts';
import type { PriceRow, ServiceTierPrices, TokenPrices } from '../../settings/prices.ts';
import { count, largest, micro, pico } from './amounts.ts';
import { ModalityPrices, type PossibleMedia } from './modalities.ts';
import { UnitPrices } from './unit-prices.ts';

/** Several calls whose tokens were added up: how many they are, and the most input tokens that one of them has. */
export interface Many {
  readonly calls: number;
  readonly longest: number;
}

/** Facts about a call besides its amounts that bound its cost. */
export interface CallBounds extends Partial<Many> {
  /** The service tier that it asks for. */
  readonly serviceTier?: string | undefined;
  /** Modalities that its tokens may have. Absent: any. */
  readonly media?: PossibleMedia | undefined;
}

/** Maximum amounts of a call. */
export type Amount = readonly [input: number, output: number, units: Units];

/** The prices of one row at one length of context and one service tier, as whole numbers of 1e-12 dollars, so that no sum is off by a rounding. */
class Tariff {
  readonly #input: bigint;
  readonly #cacheRead: bigint;
  readonly #cacheWrite: bigint;
  readonly #cacheWriteLong: bigint;
  readonly #output: bigint;
  readonly #reasoning: bigint;
  readonly #byModality: ModalityPrices | undefined;
  readonly #units: UnitPrices;
  /** Highest prices of an input and an output token without a modality of its own. */
  readonly #highestInput: bigint;
  readonly #highestOutput: bigint;
  /** Cost of a call beside its tokens where its usage has no units. */
  readonly #fee: bigint;
  /** Applies to calls with more input tokens than this. */
  readonly above: number;
  /** Prices as the record of a call shows them. */
  readonly shown: JsonObject;

  constructor(prices: TokenPrices, above: number, units: UnitPrices, { first, last }: Shown) {
    const { input = 0, output = 0 } = prices;
    const { cacheRead = input, cacheWrite = input, reasoning = output } = prices;
    const { cacheWriteLong = cacheWrite } = prices;
    this.#input = pico(input, 6);
    this.#cacheRead = pico(cacheRead, 6);
    this.#cacheWrite = pico(cacheWrite, 6);
    this.#cacheWriteLong = pico(cacheWriteLong, 6);
    this.#output = pico(output, 6);
    this.#reasoning = pico(reasoning, 6);
    this.#highestInput = largest(this.#input, this.#cacheRead, this.#cacheWrite, this.#cacheWriteLong);
    this.#highestOutput = largest(this.#output, this.#reasoning);
    this.#byModality = ModalityPrices.of(prices, cacheRead);
    this.#units = units;
    this.#fee = units.cost({});
    this.above = above;
    const step = above === 0 ? {} : { above };
    this.shown = Object.freeze({ ...first, ...step, ...defined(prices), ...last }) as JsonObject;
  }

  /** Returns micro-dollars, rounded up. Parts that exceed their whole (some providers count so) are charged as they are reported. */
  cost(usage: Usage): number {
    const { input, output, cacheRead, cacheWrite, cacheWriteLong = 0, reasoning, byModality } = usage;
    const long = Math.min(count(cacheWriteLong), count(cacheWrite));
    const plain = {
      input: Math.max(0, count(input) - count(cacheRead) - count(cacheWrite)),
      cacheRead: count(cacheRead),
      cacheWrite: count(cacheWrite),
      output: Math.max(0, count(output) - count(reasoning)),
    };
    return micro(
      (byModality !== undefined && this.#byModality !== undefined
        ? this.#byModality.cost(byModality, plain)
        : times(plain.input, this.#input) +
          times(plain.cacheRead, this.#cacheRead) +
          times(plain.output, this.#output)) +
        times(plain.cacheWrite - long, this.#cacheWrite) +
        times(long, this.#cacheWriteLong) +
        times(count(reasoning), this.#reasoning) +
        (usage.units === undefined ? this.#fee : this.#units.cost(usage.units)),
    );
  }

  /** Returns the maximum cost in micro-dollars of so many tokens of so many calls, each rounded up by itself. */
  most([input, output, units]: Amount, calls: number, media: PossibleMedia = {}): number {
    const others = count(calls) - 1;
    const other = this.#byModality?.highest(media);
    const inputPrice = other === undefined ? this.#highestInput : largest(this.#highestInput, other.input);
    const outputPrice =
      other === undefined ? this.#highestOutput : largest(this.#highestOutput, other.output);
    return micro(
      times(count(input), inputPrice) +
        times(count(output), outputPrice) +
        (isEmpty(units) ? this.#fee : this.#units.most(units)) +
        (others > 0 ? BigInt(others) * this.#units.furtherCall : 0n),
    );
  }
}

function isEmpty(units: Units): boolean {
  return Object.keys(units).length === 0;
}

/** Multiplies, with a fast path for zero because most calls have only two kinds of tokens. */
function times(tokens: number, price: bigint): bigint {
  return tokens === 0 ? 0n : BigInt(tokens) * price;
}

/** Members that the record of a call shows before and after the token prices of a row. */
interface Shown {
  readonly first: JsonObject;
  readonly last: JsonObject;
}

/** By context length, the shortest first. */
type Lengths = readonly [Tariff, ...Tariff[]];

/** A row of the price table, ready to calculate. */
export class Row {
  readonly shown: JsonObject;
  readonly services: PriceRow['services'];
  /** True where the cost that the provider states counts. */
  readonly takesProviderCost: boolean;
  readonly #plain: Lengths;
  readonly #byTier: ReadonlyMap<string, Lengths>;

  /** `source`: where the row comes from, when it is not the config. */
  constructor(model: string, row: PriceRow, source?: string) {
    const { tiers = [], serviceTiers = {}, services, providerCost = true, ...prices } = row;
    const units = new UnitPrices(row);
    const [tokens, others] = tokensAndOthers(prices);
    const named: Shown = {
      first: { model, ...defined({ source }) },
      last: { ...others, ...defined({ services }) },
    };
    this.services = services;
    this.takesProviderCost = providerCost;
    this.#plain = lengths(tokens, tiers, units, named);
    this.#byTier = new Map(
      Object.entries(serviceTiers).map(([serviceTier, own]) => {
        const steps = own.tiers ?? tiers.map((tier) => higher(tier, own));
        return [
          serviceTier,
          lengths({ ...tokens, ...withoutTiers(own) }, steps, units, {
            ...named,
            first: { ...named.first, serviceTier },
          }),
        ];
      }),
    );
    this.shown = {
      ...this.#plain[0].shown,
      ...defined({ tiers: row.tiers, serviceTiers: row.serviceTiers, providerCost: row.providerCost }),
    } as JsonObject;
  }

  /** True for a service tier with a price of its own. */
  hasTier(serviceTier: string): boolean {
    return this.#tier(serviceTier) !== undefined;
  }

  /** Returns the cost of a call, and the prices for its record. */
  cost(usage: Usage): { readonly microDollars: number; readonly price: JsonObject } {
    const { serviceTier } = usage;
    const all = (serviceTier === undefined ? undefined : this.#tier(serviceTier)) ?? this.#plain;
    const tariff = all.findLast(({ above }) => above === 0 || usage.input > above) ?? all[0];
    return { microDollars: tariff.cost(usage), price: tariff.shown };
  }

  /** Returns the maximum cost of a call, or of several together. Includes the prices without a tier, because a provider may ignore the tier. */
  most(amount: Amount, { calls = 1, longest = amount[0], serviceTier, media }: CallBounds): number {
    const tier = serviceTier === undefined ? undefined : this.#tier(serviceTier);
    if (tier === undefined && this.#plain.length === 1) return this.#plain[0].most(amount, calls, media);
    const reachable = [...this.#plain, ...(tier ?? [])].filter(({ above }) => above === 0 || longest > above);
    const dearest = (of: Amount): number => Math.max(...reachable.map((one) => one.most(of, calls, media)));
    if (calls === 1 || reachable.length === 1) return dearest(amount);
    // Some of the calls may be long and others not: the dearest input and the dearest output need not be those of one length.
    const [input, output, units] = amount;
    return dearest([input, 0, {}]) + dearest([0, output, units]);
  }

  #tier(serviceTier: string): Lengths | undefined {
    // Requests may call OpenAI's priority tier `fast`: https://developers.openai.com/api/docs/guides/fast-mode
    return (
      this.#byTier.get(serviceTier) ?? (serviceTier === 'fast' ? this.#byTier.get('priority') : undefined)
    );
  }
}

function lengths(
  tokens: TokenPrices,
  tiers: readonly (TokenPrices & { readonly above: number })[],
  units: UnitPrices,
  named: Shown,
): Lengths {
  const steps = tiers.toSorted((one, other) => one.above - other.above);
  return [
    new Tariff(tokens, 0, units, named),
    ...steps.map(({ above, ...own }) => new Tariff({ ...tokens, ...defined(own) }, above, units, named)),
  ];
}

/** Returns the prices of a context length for a service tier without prices for lengths: the higher of each pair. */
function higher(
  { above, ...prices }: TokenPrices & { readonly above: number },
  tier: TokenPrices,
): TokenPrices & { readonly above: number } {
  const own = Object.entries(defined(prices)) as [keyof TokenPrices, number][];
  return {
    above,
    ...Object.fromEntries(own.map(([name, price]) => [name, Math.max(price, tier[name] ?? 0)])),
  };
}

function withoutTiers(prices: ServiceTierPrices): TokenPrices {
  return defined({ ...prices, tiers: undefined });
}

function tokensAndOthers(
  prices: Omit<PriceRow, 'tiers' | 'serviceTiers' | 'services' | 'providerCost'>,
): readonly [TokenPrices, JsonObject] {
  const { perImage, perImageAt, perSecond, perSecondAt, perCharacter, perCall, perCallAt, ...rest } = prices;
  const { perPage, perAnnotatedPage, ...tokens } = rest;
  const media = { perImage, perImageAt, perSecond, perSecondAt, perCharacter, perPage, perAnnotatedPage };
  const others = { ...media, perCall, perCallAt };
  return [defined(tokens), defined(others) as JsonObject];
}

function defined<T extends object>(members: T): T {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as T;
}
