/** Imports the catalogue of models from LiteLLM's price list, and writes it as a file. */
import type { Operation } from '../sdk/format.ts';
import { isObject, type JsonObject } from '../model/json.ts';
import { nameAt, providerOf, sample } from '../money/prices/import-list.ts';
import { readPrice } from '../money/prices/price-members.ts';
import { abilities, media, type Ability, type KnownModel, type Medium } from '../sdk/channel.ts';
import type { ModelList } from './catalogue.ts';
import { readKnownTraits } from './known-traits.ts';
import type { PriceRow } from '../settings/prices.ts';
import { SizedPrices } from './sized-prices.ts';
import { lookupTable } from '../model/lookup-table.ts';

/** Options of an import. */
export interface KnownOptions extends Pick<ModelList, 'source' | 'date' | 'licence'> {
  /** As the price list names them. */
  readonly providers: readonly string[];
  /** Entries of the price list that are no models, by name. */
  readonly without?: (name: string) => boolean;
}

/** Operations by the `mode` of an entry. Entries with other modes are left out. */
const operations = lookupTable<Operation>({
  chat: 'chat',
  completion: 'chat',
  responses: 'chat',
  embedding: 'embed',
  rerank: 'rerank',
  moderation: 'moderate',
  ocr: 'ocr',
  audio_transcription: 'transcribe',
  audio_speech: 'speak',
  image_generation: 'generate-image',
  image_edit: 'edit-image',
  realtime: 'realtime',
  video_generation: 'create-video',
});

/**
 * Reads models with their prices and limits from the form of LiteLLM's `model_prices_and_context_window.json`. The same entries make the
 * same list, in whatever order they stand. Throws an Error when it is no object.
 */
export function importKnownModels(list: unknown, options: KnownOptions): ModelList {
  if (!isObject(list)) throw new Error('The price list is not a JSON object of models.');
  const { source, date, licence, providers, without } = options;
  const byProvider = new Map<string, Map<string, KnownModel>>();
  const sizes = new SizedPrices();
  // Of two entries for one model the one with the name of the provider is used.
  const entries = Object.entries(list).toSorted(([one], [other]) => order(one, other));
  for (const full of [true, false]) {
    for (const [name, entry] of entries) {
      if (name === sample || !isObject(entry)) continue;
      const provider = providerOf(entry);
      const model = nameAt(provider, name);
      if (!providers.includes(provider) || (model !== name) !== full) continue;
      if (sizes.take(provider, model, entry, full) || without?.(name) === true) continue;
      const operation = operations[String(entry['mode'])];
      if (operation === undefined) continue;
      const models = byProvider.get(provider) ?? new Map<string, KnownModel>();
      byProvider.set(provider, models);
      if (!models.has(model)) models.set(model, knownModel(entry, operation, date));
    }
  }
  for (const [provider, models] of byProvider) sizes.addTo(provider, models);
  return {
    source,
    date,
    licence,
    models: sorted(new Map([...byProvider].map(([name, models]) => [name, sorted(models)]))),
  };
}

function knownModel(entry: JsonObject, operation: Operation, date: string): KnownModel {
  const { row } = readPrice(entry);
  const inputLimit = limitOf(entry['max_input_tokens']);
  const outputLimit = operation === 'chat' ? limitOf(entry['max_output_tokens']) : undefined;
  const traits = operation === 'chat' ? readKnownTraits(entry) : undefined;
  const end = entry['deprecation_date'];
  return {
    ...(operation === 'chat' ? {} : { operation }),
    ...(inputLimit === undefined ? {} : { inputLimit }),
    ...(outputLimit === undefined ? {} : { outputLimit }),
    ...unlessEmpty({
      takes: media.filter((medium) => takes(entry, medium)),
      can: abilities.filter((ability) => can(entry, ability) === true),
      cannot: abilities.filter((ability) => can(entry, ability) === false),
    }),
    ...(traits === undefined ? {} : { traits }),
    ...(typeof end === 'string' && /^\d{4}-\d\d-\d\d$/.test(end) && end < date ? { retired: true } : {}),
    ...(row === undefined || (isFree(row) && operation !== 'moderate') ? {} : { price: row }),
  };
}

/** The members of the price list that tell what a model takes besides text, and what it can do. */
const takenBy: Readonly<Record<Medium, string>> = {
  image: 'supports_vision',
  document: 'supports_pdf_input',
  audio: 'supports_audio_input',
  video: 'supports_video_input',
};
const doneBy: Readonly<Record<Ability, string>> = {
  tools: 'supports_function_calling',
  'parallel-tools': 'supports_parallel_function_calling',
  'structured-output': 'supports_response_schema',
  reasoning: 'supports_reasoning',
  'prompt-cache': 'supports_prompt_caching',
  'web-search': 'supports_web_search',
};

function takes(entry: JsonObject, medium: Medium): boolean {
  const modalities = entry['supported_modalities'];
  return entry[takenBy[medium]] === true || (Array.isArray(modalities) && modalities.includes(medium));
}

/** Returns undefined if the list does not have it. */
function can(entry: JsonObject, ability: Ability): boolean | undefined {
  const stated = entry[doneBy[ability]];
  return typeof stated === 'boolean' ? stated : undefined;
}

function unlessEmpty<Lists extends Readonly<Record<string, readonly string[]>>>(
  lists: Lists,
): Partial<Lists> {
  return Object.fromEntries(Object.entries(lists).filter(([, list]) => list.length > 0)) as Partial<Lists>;
}

function limitOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : undefined;
}

/** Returns true if all prices are 0. Such lists also write 0 for unknown prices, which must not count in a budget. */
function isFree({ tiers, ...prices }: PriceRow): boolean {
  return tiers === undefined && Object.values(prices).every((price) => price === undefined || price === 0);
}

/** Returns the text of a list for a file: one model a line, so that two of them can be compared. */
export function writeKnownModels({ models, ...rest }: ModelList): string {
  const providers = Object.entries(models).map(([provider, known]) => {
    const lines = Object.entries(known).map(
      ([name, model]) => `      ${JSON.stringify(name)}: ${JSON.stringify(model)}`,
    );
    return `    ${JSON.stringify(provider)}: {\n${lines.join(',\n')}\n    }`;
  });
  const head = Object.entries(rest).map(
    ([name, value]) => `  ${JSON.stringify(name)}: ${JSON.stringify(value)}`,
  );
  return `{\n${head.join(',\n')},\n  "models": {\n${providers.join(',\n')}\n  }\n}\n`;
}

function sorted<Value>(members: ReadonlyMap<string, Value>): Readonly<Record<string, Value>> {
  return Object.fromEntries([...members].toSorted(([one], [other]) => order(one, other)));
}

function order(one: string, other: string): number {
  return one < other ? -1 : 1;
}
