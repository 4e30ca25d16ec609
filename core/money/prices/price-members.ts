/** Converts one entry of a price list in LiteLLM's format to a row of the price table. */
import { isObject, type JsonObject } from '../../model/json.ts';
import { rowSchema, type PriceRow, type TokenPrices } from '../../settings/prices.ts';

/** Row of one entry, or the reason why there is none. */
export interface ReadPrice {
  readonly row: PriceRow | undefined;
  /** Why there is no row: the end of a sentence that begins with the entry's name. */
  readonly problem: string;
  /** Members that look like a price and have no equivalent in a row. */
  readonly strange: readonly string[];
}

type Prices = { -readonly [Member in keyof TokenPrices]: number };

const tokenMembers: Readonly<Record<string, keyof TokenPrices>> = {
  input_cost_per_token: 'input',
  output_cost_per_token: 'output',
  cache_read_input_token_cost: 'cacheRead',
  // DeepSeek's name for it.
  input_cost_per_token_cache_hit: 'cacheRead',
  cache_creation_input_token_cost: 'cacheWrite',
  cache_creation_input_token_cost_above_1hr: 'cacheWriteLong',
  cache_creation_input_token_cost_above_12hr: 'cacheWriteLong',
  output_cost_per_reasoning_token: 'reasoning',
  input_cost_per_audio_token: 'inputAudio',
  input_cost_per_image_token: 'inputImage',
  input_cost_per_video_token: 'inputVideo',
  cache_read_input_audio_token_cost: 'cacheReadAudio',
  cache_read_input_image_token_cost: 'cacheReadImage',
  output_cost_per_audio_token: 'outputAudio',
  output_cost_per_image_token: 'outputImage',
  output_cost_per_video_token: 'outputVideo',
};

type UnitPrice = 'perImage' | 'perSecond' | 'perCharacter' | 'perCall' | 'perPage' | 'perAnnotatedPage';

/** Prices by unit. Of several members for one unit, as for input and output, the highest counts. */
const unitMembers: Readonly<Record<string, UnitPrice>> = {
  input_cost_per_image: 'perImage',
  output_cost_per_image: 'perImage',
  input_cost_per_second: 'perSecond',
  output_cost_per_second: 'perSecond',
  input_cost_per_audio_per_second: 'perSecond',
  input_cost_per_video_per_second: 'perSecond',
  output_cost_per_video_per_second: 'perSecond',
  input_cost_per_character: 'perCharacter',
  output_cost_per_character: 'perCharacter',
  input_cost_per_request: 'perCall',
  input_cost_per_query: 'perCall',
  input_cost_per_text_message: 'perCall',
  ocr_cost_per_page: 'perPage',
  annotation_cost_per_page: 'perAnnotatedPage',
};

/** Splits the name of a member into the price, the context length in thousands of tokens and the service tier. */
const grammar = /^(.+?)(?:_above_(\d+)k_tokens)?(?:_(priority|flex|ultrafast))?$/;
const secondAt = /^output_cost_per_second_(\d+(?:p|k))$/;
const imageAt = /^output_cost_per_image_([\d.]+k)$/i;

/** Kinds of models without output tokens, whose entries often have no output price. */
const withoutOutput = new Set(['embedding', 'rerank', 'moderation', 'audio_transcription', 'audio_speech']);

/** Kinds of models whose input or output is mostly audio or images. */
const beyondText = new Set([
  'audio_transcription',
  'audio_speech',
  'image_generation',
  'image_edit',
  'realtime',
]);

const suffixes = ['Audio', 'Image', 'Video'] as const;

/** The prices of one service tier, or those without one: its own, and those for long contexts. */
class Table {
  readonly own: Prices = {};
  readonly tiers = new Map<number, Prices>();

  at(above: number): Prices {
    if (above === 0) return this.own;
    let prices = this.tiers.get(above);
    if (prices === undefined) this.tiers.set(above, (prices = {}));
    return prices;
  }
}

/** Parsed members of an entry. */
class Members {
  readonly plain = new Table();
  readonly byTier = new Map<string, Table>();
  readonly units: { [Unit in UnitPrice]?: number } = {};
  readonly secondsAt: Record<string, number> = {};
  readonly imagesAt: Record<string, number> = {};
  readonly callsAt: Record<string, number> = {};
  readonly strange: string[] = [];
  readonly #inclusive: number;

  constructor(entry: JsonObject) {
    // Long contexts begin at the number itself there: https://docs.x.ai/developers/pricing
    this.#inclusive = entry['litellm_provider'] === 'xai' ? 1 : 0;
    for (const [name, value] of Object.entries(entry)) {
      if (typeof value === 'number') this.#readNumber(name, value);
      else if (name === 'tiered_pricing') this.#readTiers(value);
      else if (name === contexts && isObject(value) && isBySearchContext(entry)) this.#readContexts(value);
      else if (/cost/.test(name) && value !== null) this.strange.push(name);
    }
    const factor = isObject(entry['provider_specific_entry']) ? entry['provider_specific_entry']['fast'] : 0;
    if (typeof factor === 'number' && factor > 0) this.byTier.set('fast', multiplied(this.plain, factor));
  }

  #readNumber(name: string, value: number): void {
    const [, base = name, thousands, serviceTier] = grammar.exec(name) ?? [];
    const tokens = tokenMembers[base];
    const unit = unitMembers[name];
    const [, resolution] = secondAt.exec(name) ?? [];
    const [, size] = imageAt.exec(name) ?? [];
    const above = thousands === undefined ? 0 : Number(thousands) * 1000 - this.#inclusive;
    if (tokens !== undefined) this.#table(serviceTier).at(above)[tokens] ??= perMillion(value);
    else if (unit !== undefined) this.units[unit] = Math.max(this.units[unit] ?? 0, value);
    else if (resolution !== undefined) this.secondsAt[resolution] = value;
    else if (size !== undefined) this.imagesAt[size.toLowerCase()] = value;
    else if (/cost/.test(name)) this.strange.push(name);
  }

  #table(serviceTier: string | undefined): Table {
    if (serviceTier === undefined) return this.plain;
    let table = this.byTier.get(serviceTier);
    if (table === undefined) this.byTier.set(serviceTier, (table = new Table()));
    return table;
  }

  /** Prices by ranges of context length: the first range holds the row's own. */
  #readTiers(value: unknown): void {
    for (const step of Array.isArray(value) ? value : []) {
      if (!isObject(step) || !Array.isArray(step['range'])) continue;
      const [from] = step['range'] as readonly unknown[];
      if (typeof from !== 'number') continue;
      const prices = this.plain.at(from);
      for (const [name, member] of Object.entries(tokenMembers)) {
        const price = step[name];
        if (typeof price === 'number') prices[member] ??= perMillion(price);
      }
    }
  }

  #readContexts(value: JsonObject): void {
    for (const [name, price] of Object.entries(value))
      if (typeof price === 'number') this.callsAt[name.replace('search_context_size_', '')] = price;
    // Calls without a size have the price of `low`: https://docs.perplexity.ai/getting-started/pricing
    if (this.callsAt['low'] !== undefined) this.units.perCall = this.callsAt['low'];
  }
}

const contexts = 'search_context_cost_per_query';

/**
 * True where each call is charged by the size of its search context. Perplexity's models that research are charged by the search, which is a
 * service, as are the searches of other providers.
 */
function isBySearchContext(entry: JsonObject): boolean {
  return entry['litellm_provider'] === 'perplexity' && entry['citation_cost_per_token'] === undefined;
}

/** Reads the price of one entry. */
export function readPrice(entry: JsonObject): ReadPrice {
  const members = new Members(entry);
  const { strange } = members;
  const row = rowOf(members, String(entry['mode']));
  if (Object.keys(row).length === 0)
    return { row: undefined, problem: ' has no price that is supported', strange };
  const checked = rowSchema.safeParse(row);
  if (checked.success) return { row: checked.data, problem: '', strange };
  const [issue] = checked.error.issues;
  const problem = `: ${[issue?.path.join('.'), issue?.message].filter(Boolean).join(' ')}`;
  return { row: undefined, problem, strange };
}

function rowOf({ plain, byTier, units, secondsAt, imagesAt, callsAt }: Members, mode: string): object {
  const { own, tiers } = plain;
  const isBeyond = beyondText.has(mode) || suffixes.some((one) => own[`output${one}`] !== undefined);
  const shaped = (prices: Prices, base: Prices): Prices =>
    isBeyond ? dearestFirst({ ...base, ...prices }, prices) : plainFirst(prices, base);
  const steps = (table: Table, base: Prices): object[] =>
    [...table.tiers]
      .map(([above, prices]) => ({ above, ...shaped(prices, base) }))
      .filter((step) => Object.keys(step).length > 1);
  const tierRows: [string, object][] = [];
  for (const [name, table] of byTier) {
    const filled = withRatios(table.own, own);
    const ofTier = steps(table, { ...own, ...filled });
    // Skips entries with a tier for long contexts alone, because its price for short ones is not known.
    if ([own, table.own].every(({ input, output }) => input !== undefined && output !== undefined))
      tierRows.push([name, { ...shaped(filled, own), ...(ofTier.length === 0 ? {} : { tiers: ofTier }) }]);
  }
  const tokens = shaped(own, {});
  if (isBeyond && isCharged(own)) {
    // The list has prices by the token and by the unit for the same usage: charging both would charge twice.
    delete units[mode.startsWith('image') ? 'perImage' : 'perSecond'];
  }
  if (tokens.input !== undefined && withoutOutput.has(mode)) tokens.output ??= 0;
  // Leaves out token prices of zero where a unit has a price.
  const charged = Object.values(units).some((price) => price > 0);
  const free = charged && !isCharged(own) && tiers.size === 0;
  const lengths = steps(plain, own);
  return {
    ...(free ? {} : tokens),
    ...units,
    ...unlessEmpty({ perSecondAt: secondsAt, perImageAt: imagesAt, perCallAt: callsAt }),
    ...(free ? {} : unlessEmpty({ serviceTiers: Object.fromEntries(tierRows) })),
    ...(lengths.length === 0 ? {} : { tiers: lengths }),
  };
}

/** Returns the prices of models whose tokens are mostly no text: tokens without a modality have the highest price. */
function dearestFirst(all: Prices, given: Prices): Prices {
  const result: Prices = {};
  for (const name of ['cacheWrite', 'cacheWriteLong', 'reasoning'] as const)
    if (given[name] !== undefined) result[name] = given[name];
  for (const part of ['input', 'cacheRead', 'output'] as const) {
    const kinds = suffixes.flatMap((one) => {
      const name: keyof TokenPrices = `${part}${one}`;
      return all[name] === undefined ? [] : [[name, all[name]] as const];
    });
    const plain = all[part];
    if (plain === undefined && kinds.length === 0) continue;
    const most = Math.max(plain ?? 0, ...kinds.map(([, price]) => price));
    result[part] = most;
    if (plain !== undefined && plain < most) result[`${part}Text`] = plain;
    for (const [name, price] of kinds) if (price < most) result[name] = price;
  }
  return result;
}

/** Returns the prices of models whose tokens are mostly text, without prices of modalities that equal that of text. */
function plainFirst(prices: Prices, base: Prices): Prices {
  const all = { ...base, ...prices };
  const result: Prices = { ...prices };
  for (const part of ['input', 'cacheRead'] as const)
    for (const one of suffixes) {
      const name: keyof TokenPrices = `${part}${one}`;
      const needed = part === 'cacheRead' && all[`input${one}`] !== undefined;
      if (!needed && all[name] === all[part]) delete result[name];
    }
  return result;
}

/**
 * The prices of a service tier with those that the list leaves out: reasoning as output, where they cost the same without the tier; and in a
 * dearer tier the others by the same factor as the input, because no provider charges them without it.
 */
function withRatios(tier: Prices, own: Prices): Prices {
  const filled: Prices = { ...tier };
  if (own.reasoning !== undefined && tier.output !== undefined)
    filled.reasoning ??= scaled(own.reasoning, tier.output, own.output);
  if (tier.input === undefined || own.input === undefined || tier.input <= own.input) return filled;
  for (const name of Object.keys(own) as (keyof TokenPrices)[])
    if (own[name] !== undefined) filled[name] ??= scaled(own[name], tier.input, own.input);
  return filled;
}

function scaled(price: number, tier: number, own = 0): number {
  return own === 0 ? price : Number(((price * tier) / own).toPrecision(12));
}

function multiplied(plain: Table, factor: number): Table {
  const table = new Table();
  for (const [above, prices] of [[0, plain.own] as const, ...plain.tiers])
    for (const [name, price] of Object.entries(prices) as [keyof TokenPrices, number][])
      table.at(above)[name] = Number((price * factor).toPrecision(12));
  return table;
}

function isCharged(prices: Prices): boolean {
  return Object.values(prices).some((price) => price > 0);
}

function unlessEmpty(tables: Readonly<Record<string, object>>): object {
  return Object.fromEntries(Object.entries(tables).filter(([, table]) => Object.keys(table).length > 0));
}

/** Converts dollars per token to dollars per million tokens, rounded to 12 digits because of floating-point errors. */
function perMillion(dollars: number): number {
  return Number((dollars * 1e6).toPrecision(12));
}
