/** Imports a price list in LiteLLM's format (`model_prices_and_context_window.json`) as rows of the price table. */
import { isObject, type JsonObject } from '../../model/json.ts';
import type { PriceRow } from '../../settings/prices.ts';
import { readPrice } from './price-members.ts';

/** Result of an import. */
export interface ImportedPrices {
  readonly rows: Readonly<Record<string, PriceRow>>;
  /** Entries without a row, with the reason: `"x" has no price that is supported`. */
  readonly leftOut: readonly string[];
  /** Members of imported entries that look like a price and have no equivalent here, with the number of entries that have each. */
  readonly unknown: ReadonlyMap<string, number>;
}

/** Selects entries. */
export interface ImportFilter {
  /** Providers as the list names them; their name and a slash are taken off the beginning of models. Default: all, as they stand. */
  readonly providers?: readonly string[];
  readonly wants?: (model: string) => boolean;
}

/** Imports an object of entries by model name. Throws an Error when it is no object; invalid entries are left out. */
export function importPriceList(list: unknown, { providers, wants }: ImportFilter = {}): ImportedPrices {
  if (!isObject(list)) throw new Error('The price list is not a JSON object of models.');
  const rows = new Map<string, PriceRow>();
  const leftOut: string[] = [];
  const unknown = new Map<string, number>();
  for (const [name, entry] of Object.entries(list)) {
    if (name === sample) continue;
    if (!isObject(entry)) {
      leftOut.push(`"${name}" is not an object`);
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

/** Name of the entry that documents the list's members. */
export const sample = 'sample_spec';

/** Returns the provider of an entry, as the list names it. */
export function providerOf(entry: JsonObject): string {
  return String(entry['litellm_provider'] ?? '');
}

/**
 * Returns the name of a model at its provider, without the provider's prefix that some entries have. Where a provider has a name for each kind
 * of its models (`x-chat_models`, `x-video-models`), the prefix is the part before the first hyphen.
 */
export function nameAt(provider: string, name: string): string {
  const [family = provider] = provider.split('-');
  const prefix = [provider, family].find((one) => name.startsWith(`${one}/`));
  return prefix === undefined ? name : name.slice(prefix.length + 1);
}
