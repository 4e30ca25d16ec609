/**
 * Settings of generateContent: the path, type and range of each, and the ones that go back as the client spelled them while their meaning
 * is unchanged.
 */
import { isDeepStrictEqual } from 'node:util';
import { wrongType } from '../../sdk/errors.ts';
import type { ChatSettings } from '../../model/chat.ts';
import { isObject, type JsonObject, type JsonValue, type MutableObject } from '../../model/json.ts';
import { effortFrom } from '../../model/reasoning.ts';
import { given, optionalArray, optionalObject, optionalString } from '../_shared/check.ts';
import {
  pathsOf,
  settingPlaces,
  putAt,
  readSettings,
  valueAt,
  type SettingRow,
} from '../_shared/settings.ts';
import type { Leftovers } from '../_shared/extra.ts';
import { defined } from '../_shared/fields.ts';
import { readReasoning } from './reasoning.ts';
import { readResponseFormat } from './response-format.ts';
import { official, structures } from './wire.ts';
import { lookupTable } from '../../model/lookup-table.ts';

/** Settings that have the same values here and in the neutral request. Ranges that are absent here are checked by the provider. */
export const rows: readonly SettingRow[] = [
  { name: 'maxOutput', path: 'generationConfig.maxOutputTokens', kind: 'integer', min: 1 },
  { name: 'temperature', path: 'generationConfig.temperature', kind: 'number' },
  { name: 'topP', path: 'generationConfig.topP', kind: 'number', min: 0, max: 1 },
  { name: 'topK', path: 'generationConfig.topK', kind: 'number' },
  { name: 'stop', path: 'generationConfig.stopSequences', kind: 'strings' },
  { name: 'choices', path: 'generationConfig.candidateCount', kind: 'integer', min: 1 },
  { name: 'seed', path: 'generationConfig.seed', kind: 'integer' },
  { name: 'frequencyPenalty', path: 'generationConfig.frequencyPenalty', kind: 'number' },
  { name: 'presencePenalty', path: 'generationConfig.presencePenalty', kind: 'number' },
  { name: 'logprobs', path: 'generationConfig.responseLogprobs', kind: 'boolean' },
  { name: 'topLogprobs', path: 'generationConfig.logprobs', kind: 'integer', min: 0, max: 20 },
];

/** A setting with a form of its own. The client's spelling is kept beside the neutral value, and is sent while the value is unchanged. */
interface Respelled {
  readonly name: 'reasoning' | 'responseFormat' | 'modalities' | 'serviceTier';
  readonly paths: readonly string[];
  /** Returns the neutral value; undefined if there is none. Throws 400 with the path. */
  readonly read: (body: JsonObject) => JsonValue | undefined;
  readonly write?: (value: JsonValue) => JsonValue | undefined;
}

/** The settings of {@link rows}' kind that are not plain copies. Only the last two can be written without knowing the model. */
export const respelled: readonly Respelled[] = [
  {
    name: 'reasoning',
    paths: [
      'generationConfig.thinkingConfig.includeThoughts',
      'generationConfig.thinkingConfig.thinkingBudget',
      'generationConfig.thinkingConfig.thinkingLevel',
    ],
    read: (body) => readReasoning(body) as JsonObject | undefined,
  },
  {
    name: 'responseFormat',
    paths: [
      'generationConfig.responseMimeType',
      'generationConfig.responseSchema',
      'generationConfig.responseJsonSchema',
    ],
    read: (body) => readResponseFormat(body) as JsonObject | undefined,
  },
  {
    name: 'modalities',
    paths: ['generationConfig.responseModalities'],
    read: readModalities,
    write: (value) => (Array.isArray(value) ? value.map((word) => String(word).toUpperCase()) : undefined),
  },
  {
    name: 'serviceTier',
    paths: ['serviceTier'],
    read: readTier,
    write: (value) => (typeof value === 'string' ? tiers[value] : undefined),
  },
];

/** Words for neutral service tiers. `auto` has none: it is the default. */
const tiers = lookupTable<string>({ default: 'standard', flex: 'flex', priority: 'priority' });

function readTier(body: JsonObject): JsonValue | undefined {
  const tier = optionalString(body.serviceTier, 'serviceTier')?.toLowerCase();
  if (tier === 'unspecified') return undefined;
  return tier === 'standard' ? 'default' : tier;
}

function readModalities(body: JsonObject): JsonValue | undefined {
  const path = 'generationConfig.responseModalities';
  return optionalArray(valueAt(body, path), path)?.map((word, index) => {
    if (typeof word !== 'string') throw wrongType(`${path}[${index}]`, 'a string');
    return word.toLowerCase();
  });
}

/** The members of `generationConfig` that are read. */
const read: ReadonlySet<string> = new Set(
  [...rows.map(({ path }) => path), ...respelled.flatMap(({ paths }) => paths)].map(memberOf),
);

function memberOf(path: string): string {
  return path.split('.')[1] ?? '';
}

const numeric: ReadonlySet<string> = new Set([
  ...rows.filter(({ kind }) => kind === 'number' || kind === 'integer').map(({ path }) => memberOf(path)),
  'thinkingBudget',
]);

/** Returns `generationConfig` and its `thinkingConfig` with official names. Proto JSON may write numbers as strings; these are converted. */
function officialConfig(body: JsonObject): { readonly config?: JsonObject; readonly thinking?: JsonObject } {
  const wire = optionalObject(body.generationConfig, 'generationConfig');
  if (wire === undefined) return {};
  const config = numbers(official(withSchema(wire), 'generationConfig'));
  const thought = optionalObject(config.thinkingConfig, 'generationConfig.thinkingConfig');
  return { config, ...defined({ thinking: thought && numbers(official(thought, 'thinkingConfig')) }) };
}

/** Renames the older `_responseJsonSchema` to `responseJsonSchema`. */
function withSchema(config: JsonObject): JsonObject {
  if (!Object.hasOwn(config, '_responseJsonSchema')) return config;
  const { _responseJsonSchema: responseJsonSchema, ...rest } = config;
  return { ...rest, responseJsonSchema };
}

function numbers(object: JsonObject): JsonObject {
  let changed: MutableObject | undefined;
  for (const key of Object.keys(object)) {
    const value = object[key];
    if (typeof value !== 'string' || !numeric.has(key) || value.trim() === '' || Number.isNaN(Number(value)))
      continue;
    changed ??= { ...object };
    changed[key] = Number(value);
  }
  return changed ?? object;
}

/** Reads every setting, and leaves in `extras` what only this format knows. Throws 400 with the path. */
export function decodeSettings(body: JsonObject, extras: Leftovers): ChatSettings {
  const { config, thinking } = officialConfig(body);
  const generationConfig = thinking === undefined ? config : { ...config, thinkingConfig: thinking };
  const view: JsonObject = config === undefined ? body : { ...body, generationConfig };
  const settings: { [name: string]: unknown } = { ...readSettings(view, rows) };
  const written: MutableObject = {};
  for (const row of respelled) {
    const value = row.read(view);
    const raw = rawOf(view, row.paths);
    if (value !== undefined) settings[row.name] = value;
    if (raw !== undefined) written[row.name] = raw;
  }
  if (Object.keys(written).length > 0) extras.put('$written', written);
  if (config !== undefined) keepConfig(config, thinking, extras);
  return settings as ChatSettings;
}

function rawOf(body: JsonObject, paths: readonly string[]): JsonObject | undefined {
  const raw = paths.map((path) => [path, valueAt(body, path)] as const).filter(([, value]) => given(value));
  return raw.length === 0 ? undefined : Object.fromEntries(raw);
}

/** Keeps unknown fields of both objects, the presence of an empty object, and values that have no neutral meaning. */
function keepConfig(config: JsonObject, thinking: JsonObject | undefined, extras: Leftovers): void {
  extras.takeInner('generationConfig', config, read);
  extras.takeInner('generationConfig.thinkingConfig', thinking, structures.thinkingConfig.known);
  const level = thinking?.thinkingLevel;
  if (typeof level === 'string' && effortFrom(level) === undefined && !/unspecified$/i.test(level)) {
    extras.put('generationConfig.thinkingConfig.thinkingLevel', level);
  }
  const { responseMimeType } = config;
  if (
    typeof responseMimeType === 'string' &&
    readResponseFormat({ generationConfig: config }) === undefined
  ) {
    extras.put('generationConfig.responseMimeType', responseMimeType);
    if (isObject(config.responseSchema)) extras.put('generationConfig.responseSchema', config.responseSchema);
  }
}

/** Puts a respelled setting back as the client wrote it. False when it was never written so, or means something else by now. */
export function writeAsWritten(
  body: MutableObject,
  settings: ChatSettings,
  fields: JsonObject,
  row: Respelled,
): boolean {
  const raw = isObject(fields.$written) ? fields.$written[row.name] : undefined;
  if (!isObject(raw)) return false;
  const view: MutableObject = {};
  for (const [path, value] of Object.entries(raw)) if (value !== undefined) putAt(view, path, value);
  if (!isDeepStrictEqual(row.read(view), settings[row.name])) return false;
  for (const [path, value] of Object.entries(raw)) if (value !== undefined) putAt(body, path, value);
  return true;
}

/** The client's path of a setting. */
export const settingPath = pathsOf(rows, {
  reasoning: 'generationConfig.thinkingConfig',
  responseFormat: 'generationConfig.responseSchema',
  modalities: 'generationConfig.responseModalities',
});

const config = ['generationConfig', 'generation_config'];
const toolConfig = ['toolConfig', 'tool_config'];

/** The members in which a setting stands, and the tools, in both spellings. */
export const places = settingPlaces(rows.map((row) => ({ ...row, path: 'generation_config' })).concat(rows), {
  reasoning: config,
  responseFormat: config,
  modalities: config,
  serviceTier: ['serviceTier', 'service_tier'],
  toolChoice: toolConfig,
  tools: ['tools', ...toolConfig],
});
