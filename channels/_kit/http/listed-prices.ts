/** Prices that a provider's own list of models states: OpenRouter and Hugging Face. */
import { isObject, type JsonObject, type JsonValue, type PricedModel } from 'sluice';

type Name = (typeof tokenMembers)[number][1];

/** Members of a price in OpenRouter's list, in dollars for a token. https://openrouter.ai/docs/client-sdks/typescript/models/pricing */
const tokenMembers = [
  ['prompt', 'input'],
  ['completion', 'output'],
  ['input_cache_read', 'cacheRead'],
  ['input_cache_write', 'cacheWrite'],
  ['input_cache_write_1h', 'cacheWriteLong'],
  ['internal_reasoning', 'reasoning'],
  ['audio', 'inputAudio'],
  ['audio_output', 'outputAudio'],
  ['input_audio_cache', 'cacheReadAudio'],
  ['image_token', 'inputImage'],
] as const;

/** Maximum number of conditional prices that are read of a model. */
const maxOverrides = 20;

/**
 * Prices in OpenRouter's list of models: dollars, written as texts. -1 is the price of a router, which is that of the model it chooses. Prices
 * for long prompts become tiers; of those for times of the day the highest counts at all times. Discounts are left out: what a call cost is
 * told in its reply.
 */
export function openrouterPrices({ pricing }: JsonObject, name: string): readonly PricedModel[] {
  if (!isObject(pricing)) return [];
  const own = rowIn(pricing);
  if (own.input === undefined || own.output === undefined) return [];
  const request = dollars(pricing['request']) ?? 0;
  const tiers = new Map<number, Partial<Record<Name, number>>>();
  const overrides: readonly JsonValue[] = Array.isArray(pricing['overrides']) ? pricing['overrides'] : [];
  for (const one of overrides.slice(0, maxOverrides)) {
    if (!isObject(one)) continue;
    const { min_prompt_tokens: above = 0 } = one;
    if (typeof above !== 'number') continue;
    const prices = above > 0 ? (tiers.get(above) ?? {}) : own;
    for (const [member, price] of Object.entries(rowIn(one)) as [Name, number][])
      prices[member] = Math.max(prices[member] ?? 0, price);
    if (above > 0 && Object.keys(prices).length > 0) tiers.set(above, prices);
  }
  return [
    {
      name,
      price: {
        ...own,
        ...(request > 0 ? { perCall: request } : {}),
        ...(tiers.size === 0
          ? {}
          : { tiers: [...tiers].map(([above, prices]) => ({ above: Math.trunc(above), ...prices })) }),
      },
    },
  ];
}

function rowIn(prices: JsonObject): Partial<Record<Name, number>> {
  const row: Partial<Record<Name, number>> = {};
  for (const [theirs, ours] of tokenMembers) {
    const price = dollars(prices[theirs]);
    // Zero stands for "no price of its own" everywhere but in the two that each model has.
    if (price !== undefined && (price > 0 || ours === 'input' || ours === 'output'))
      row[ours] = Number((price * 1e6).toPrecision(12));
  }
  return row;
}

function dollars(value: JsonValue | undefined): number | undefined {
  const number = typeof value === 'string' && value !== '' ? Number(value) : value;
  return typeof number === 'number' && number >= 0 && Number.isFinite(number) ? number : undefined;
}

/**
 * Prices in the list of Hugging Face's router: each model with its hosts and their prices in dollars per million tokens. A model whose host
 * the router chooses costs what the dearest charges; `owner/model:host` is charged by that host.
 */
export function huggingfacePrices({ providers }: JsonObject, name: string): readonly PricedModel[] {
  const hosts: readonly JsonValue[] = Array.isArray(providers) ? providers : [];
  const priced: PricedModel[] = [];
  let highest = { input: 0, output: 0 };
  let isComplete = true;
  for (const host of hosts) {
    if (!isObject(host) || host['status'] === 'error') continue;
    const pricing = isObject(host['pricing']) ? host['pricing'] : {};
    const [input, output] = [dollars(pricing['input']), dollars(pricing['output'])];
    if (input === undefined || output === undefined) {
      isComplete = false;
      continue;
    }
    highest = { input: Math.max(highest.input, input), output: Math.max(highest.output, output) };
    if (typeof host['provider'] === 'string')
      priced.push({ name: `${name}:${host['provider']}`, price: { input, output }, isVariant: true });
  }
  return priced.length > 0 && isComplete ? [{ name, price: highest }, ...priced] : priced;
}
