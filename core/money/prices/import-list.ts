import { isObject, type JsonObject } from '../../model/json.ts';
import type { PriceRow } from '../../settings/prices.ts';
import { readPrice } from './price-members.ts';

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
