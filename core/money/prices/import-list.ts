import { isObject, type JsonObject } from '../../model/json.ts';
import { rowSchema, type PriceRow } from '../../settings/prices.ts';

/** What came of a price list. */
export interface ImportedPrices {
  readonly rows: Readonly<Record<string, PriceRow>>;
  /** Entries that gave no row, with the reason as half a sentence: `"x" has no price that is known here`. */
  readonly leftOut: readonly string[];
  /** Members of entries that were taken which name a price but have no place here, and how many entries had each. */
  readonly unknown: ReadonlyMap<string, number>;
}

/** Which entries are wanted. */
export interface ImportFilter {
  /** Providers as the list names them; their name and a slash are taken off the beginning of models. Default: all, as they stand. */
  readonly providers?: readonly string[];
  readonly wants?: (model: string) => boolean;
}

const tokenMembers = {
  input_cost_per_token: 'input',
  output_cost_per_token: 'output',
  cache_read_input_token_cost: 'cacheRead',
  cache_creation_input_token_cost: 'cacheWrite',
  cache_creation_input_token_cost_above_1hr: 'cacheWriteLong',
  output_cost_per_reasoning_token: 'reasoning',
} as const;

/** Of several that name the same thing for what comes in and goes out the dearest counts. */
const unitMembers = {
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
} as const;

/** Tokens of sound, images and films. Usage does not tell them from those of text. */
const otherTokens = {
  input_cost_per_audio_token: 'input',
  input_cost_per_image_token: 'input',
  input_cost_per_video_token: 'input',
  cache_read_input_audio_token_cost: 'cacheRead',
  cache_read_input_image_token_cost: 'cacheRead',
  output_cost_per_audio_token: 'output',
  output_cost_per_image_token: 'output',
  output_cost_per_video_token: 'output',
} as const;

type TokenMember = (typeof tokenMembers)[keyof typeof tokenMembers];
type TokenPrices = { [Member in TokenMember]?: number };

/** Kinds of models that give no tokens, whose entries often leave the output out. */
const withoutOutput = new Set(['embedding', 'rerank', 'moderation', 'audio_transcription', 'audio_speech']);

/** Kinds of models that mostly take or give sound or images. */
const beyondText = new Set([
  'audio_transcription',
  'audio_speech',
  'image_generation',
  'image_edit',
  'realtime',
]);

/**
 * Reads the form of LiteLLM's `model_prices_and_context_window.json`: an object of entries by model name. Throws an Error when it is
 * none; single entries that make no sense are left out.
 */
export function importPriceList(list: unknown, { providers, wants }: ImportFilter = {}): ImportedPrices {
  if (!isObject(list)) throw new Error('The price list is no JSON object of models.');
  const rows = new Map<string, PriceRow>();
  const leftOut: string[] = [];
  const unknown = new Map<string, number>();
  for (const [name, entry] of Object.entries(list)) {
    if (name === sample) continue;
    if (!isObject(entry)) {
      leftOut.push(`"${name}" is no object`);
      continue;
    }
    const provider = providerOf(entry);
    if (providers !== undefined && !providers.includes(provider)) continue;
    const model = providers === undefined ? name : nameAt(provider, name);
    if (wants !== undefined && !wants(model)) continue;
    if (rows.has(model)) {
      leftOut.push(`"${name}" is a second entry for "${model}"`);
      continue;
    }
    const { row, problem, strange } = readPrice(entry);
    if (row === undefined) leftOut.push(`"${name}"${problem}`);
    else {
      rows.set(model, row);
      for (const member of strange) unknown.set(member, (unknown.get(member) ?? 0) + 1);
    }
  }
  return { rows: Object.fromEntries(rows), leftOut, unknown };
}

/** The entry of the list that only explains it. */
export const sample = 'sample_spec';

/** The provider of an entry, as the list names it. */
export function providerOf(entry: JsonObject): string {
  return String(entry['litellm_provider'] ?? '');
}

/**
 * The name of a model at its provider, whose own name stands before it in some entries. Where a provider has a name for each kind of its
 * models (`x-chat_models`, `x-video-models`), that is what these names have in common.
 */
export function nameAt(provider: string, name: string): string {
  const [family = provider] = provider.split('-');
  const prefix = [provider, family].find((one) => name.startsWith(`${one}/`));
  return prefix === undefined ? name : name.slice(prefix.length + 1);
}

/** The price of an entry. */
export interface ReadPrice {
  readonly row: PriceRow | undefined;
  /** Why there is no row: the end of a sentence that begins with the entry's name. */
  readonly problem: string;
  /** Members that name a price and have no place in a row. */
  readonly strange: readonly string[];
}

/** Reads the price of one entry. */
export function readPrice(entry: JsonObject): ReadPrice {
  const { row, strange } = readMembers(entry);
  if (Object.keys(row).length === 0)
    return { row: undefined, problem: ' has no price that is known here', strange };
  const checked = rowSchema.safeParse(row);
  if (checked.success) return { row: checked.data, problem: '', strange };
  const [issue] = checked.error.issues;
  const problem = `: ${[issue?.path.join('.'), issue?.message].filter(Boolean).join(' ')}`;
  return { row: undefined, problem, strange };
}

function readMembers(entry: JsonObject): { readonly row: object; readonly strange: readonly string[] } {
  const own: TokenPrices = {};
  const units: Record<string, number> = {};
  const others: TokenPrices = {};
  const otherNames: string[] = [];
  const tiers = new Map<number, TokenPrices>();
  const strange: string[] = [];
  for (const [name, value] of Object.entries(entry)) {
    if (typeof value !== 'number') {
      if (name === 'tiered_pricing') readTiers(value, own, tiers);
      else if (/cost/.test(name) && value !== null) strange.push(name);
      continue;
    }
    const [, base = name, thousands] = /^(.+)_above_(\d+)k_tokens$/.exec(name) ?? [];
    const tokens = tokenMembers[base as keyof typeof tokenMembers];
    const unit = unitMembers[name as keyof typeof unitMembers];
    if (tokens !== undefined && thousands !== undefined)
      tierAt(tiers, Number(thousands) * 1000)[tokens] = perMillion(value);
    else if (tokens !== undefined) own[tokens] = perMillion(value);
    else if (Object.hasOwn(otherTokens, name)) {
      const member = otherTokens[name as keyof typeof otherTokens];
      others[member] = Math.max(others[member] ?? 0, perMillion(value));
      otherNames.push(name);
    } else if (unit !== undefined) units[unit] = Math.max(units[unit] ?? 0, value);
    else if (/cost/.test(name)) strange.push(name);
  }
  const mode = String(entry['mode']);
  if (beyondText.has(mode) || others.output !== undefined) {
    // Whatever its tokens turn out to be: the dearest counts.
    for (const member of ['input', 'cacheRead', 'output'] as const) {
      const price = others[member];
      if (price !== undefined) own[member] = Math.max(own[member] ?? 0, price);
    }
    // The list tells the same twice, by the token and by what is made of them: charging for both would be twice.
    if (isCharged(own)) delete units[mode.startsWith('image') ? 'perImage' : 'perSecond'];
  } else strange.push(...otherNames);
  if (own.input !== undefined && withoutOutput.has(mode)) own.output ??= 0;
  // What costs nothing by its tokens is no token price where something else is charged for, and would only get in the way.
  const charged = Object.values(units).some((price) => price > 0);
  const free = charged && !isCharged(own) && tiers.size === 0;
  const steps = [...tiers].map(([above, prices]) => ({ above, ...prices }));
  return {
    row: { ...(free ? {} : own), ...units, ...(steps.length === 0 ? {} : { tiers: steps }) },
    strange,
  };
}

function isCharged(prices: TokenPrices): boolean {
  return Object.values(prices).some((price) => price > 0);
}

/** Prices by ranges of context length: the first range holds the row's own. */
function readTiers(value: unknown, own: TokenPrices, tiers: Map<number, TokenPrices>): void {
  for (const step of Array.isArray(value) ? value : []) {
    if (!isObject(step) || !Array.isArray(step['range'])) continue;
    const [from] = step['range'] as readonly unknown[];
    if (typeof from !== 'number') continue;
    const prices = from === 0 ? own : tierAt(tiers, from);
    for (const [name, member] of Object.entries(tokenMembers)) {
      const price = step[name];
      if (typeof price === 'number') prices[member] ??= perMillion(price);
    }
  }
}

function tierAt(tiers: Map<number, TokenPrices>, above: number): TokenPrices {
  let prices = tiers.get(above);
  if (prices === undefined) tiers.set(above, (prices = {}));
  return prices;
}

/** Dollars per token in dollars per million, without the dust of binary fractions. */
function perMillion(dollars: number): number {
  return Number((dollars * 1e6).toPrecision(12));
}
