/** Decodes `tools` and `toolConfig` of a generateContent request. */
import { wrongType, wrongValue } from '../../../sdk/errors.ts';
import type { Tool, ToolChoice } from '../../../model/chat.ts';
import { isObject, type JsonObject, type JsonValue } from '../../../model/json.ts';
import {
  given,
  optionalArray,
  optionalObject,
  optionalString,
  readObjects,
  requiredString,
} from '../../_shared/check.ts';
import { fromSchemaSubset } from '../../_shared/json-schema/from-subset.ts';
import type { Leftovers } from '../../_shared/extra.ts';
import { formatName, official, pick, leftovers } from '../wire.ts';
import { defined, setOf } from '../../_shared/fields.ts';

/** Hosted tools that other formats have too. */
export const hosted = {
  googleSearch: 'web-search',
  googleSearchRetrieval: 'web-search',
  codeExecution: 'code-execution',
} as const;

/**
 * Returns the tools of all entries, in order. `$entry` remembers how they were grouped; entries with nothing in them are remembered in the request's
 * `$tools`. Throws 400 with the path.
 */
export function decodeTools(value: JsonValue | undefined, request: Leftovers): readonly Tool[] {
  const tools: Tool[] = [];
  const shells: JsonObject[] = [];
  const entries = readObjects(value, 'tools', (raw, at, index) => {
    const before = tools.length;
    const shell = decodeEntry(official(raw, 'tools'), at, index, tools);
    if (shell !== undefined || tools.length === before) shells.push({ entry: index, ...shell });
  });
  if (shells.length > 0 || (given(value) && entries.length === 0)) request.put('$tools', shells);
  return tools;
}

/** Adds the tools of one entry. Returns an object for an entry with an empty list of declarations, so that the list can be written back. */
function decodeEntry(entry: JsonObject, at: string, index: number, tools: Tool[]): JsonObject | undefined {
  let shell: JsonObject | undefined;
  for (const key of Object.keys(entry)) {
    const value = entry[key];
    if (!given(value)) continue;
    if (key === 'functionDeclarations') {
      const list = readObjects(value, `${at}.${key}`, (raw, path) => decodeDeclaration(raw, path, index));
      if (list.length === 0) shell = { functionDeclarations: [] };
      for (const declaration of list) tools.push(declaration);
    } else tools.push(decodeHosted(key, value, `${at}.${key}`, index));
  }
  return shell;
}

function decodeHosted(key: string, value: JsonValue, at: string, entry: number): Tool {
  const extras = leftovers().put('$entry', entry);
  const type = Object.hasOwn(hosted, key) ? hosted[key as keyof typeof hosted] : undefined;
  if (type === undefined || !isObject(value)) {
    return { type: 'opaque', name: key, format: formatName, value: { [key]: value }, at, ...extras.extra() };
  }
  if (key === 'googleSearchRetrieval') extras.put('$key', key);
  extras.take(value, new Set());
  return { type, at, ...extras.extra() };
}

const readFields = setOf('name description parameters parametersJsonSchema');

function decodeDeclaration(raw: JsonObject, at: string, entry: number): Tool {
  const declaration = official(raw, 'functionDeclaration');
  const extras = leftovers().put('$entry', entry).take(declaration, readFields);
  const description = optionalString(declaration.description, `${at}.description`);
  const subset = optionalObject(declaration.parameters, `${at}.parameters`);
  const full = optionalObject(declaration.parametersJsonSchema, `${at}.parametersJsonSchema`);
  if (subset !== undefined) extras.put('$parameters', subset);
  if (full !== undefined && subset !== undefined) extras.put('$both', true);
  const schema = full ?? (subset === undefined ? undefined : fromSchemaSubset(subset));
  return {
    type: 'function',
    name: requiredString(declaration.name, `${at}.name`),
    ...defined({ description, schema }),
    at,
    ...extras.extra(),
  };
}

/** Decodes `toolConfig` as a tool choice; its other fields and its spelling go to the request's extras. */
export function decodeToolConfig(value: JsonValue | undefined, request: Leftovers): ToolChoice | undefined {
  const raw = optionalObject(value, 'toolConfig');
  if (raw === undefined) return undefined;
  const config = official(raw, 'toolConfig');
  const rawCalling = optionalObject(config.functionCallingConfig, 'toolConfig.functionCallingConfig');
  const calling = rawCalling === undefined ? undefined : official(rawCalling, 'functionCallingConfig');
  request.take(config, new Set(['functionCallingConfig']), 'toolConfig.');
  if (calling === undefined) {
    if (Object.keys(pick(config, Object.keys(config))).length === 0) request.put('$toolConfig', {});
    return undefined;
  }
  request.take(calling, new Set(['mode', 'allowedFunctionNames']), 'toolConfig.functionCallingConfig.');
  const written = pick(calling, ['mode', 'allowedFunctionNames']);
  request.put('$toolConfig', { functionCallingConfig: written });
  return readCalling(written);
}

const modes = setOf('MODE_UNSPECIFIED AUTO ANY NONE VALIDATED');

/** Returns the tool choice that `functionCallingConfig` means; undefined when it states none. */
export function readCalling(calling: JsonObject): ToolChoice | undefined {
  const base = 'toolConfig.functionCallingConfig';
  const mode = optionalString(calling.mode, `${base}.mode`)?.toUpperCase();
  const names = optionalArray(calling.allowedFunctionNames, `${base}.allowedFunctionNames`)?.map(
    (name, index) => {
      if (typeof name !== 'string') throw wrongType(`${base}.allowedFunctionNames[${index}]`, 'a string');
      return name;
    },
  );
  if (mode !== undefined && !modes.has(mode))
    throw wrongValue(`${base}.mode`, 'AUTO, ANY, NONE or VALIDATED');
  if (mode === 'NONE') return { type: 'none' };
  const [only] = names ?? [];
  if (names === undefined || only === undefined) {
    if (mode === 'ANY') return { type: 'required' };
    return mode === 'AUTO' || mode === 'VALIDATED' ? { type: 'auto' } : undefined;
  }
  if (mode === 'ANY')
    return names.length === 1 ? { type: 'tool', name: only } : { type: 'allowed', mode: 'required', names };
  return { type: 'allowed', mode: 'auto', names };
}
