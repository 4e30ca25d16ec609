/** Encodes `tools` and `toolConfig` of a generateContent request. */
import { isDeepStrictEqual } from 'node:util';
import type { ChatRequest, Tool, ToolChoice } from '../../../model/chat.ts';
import { isObject, type JsonObject, type JsonValue, type MutableObject } from '../../../model/json.ts';
import { reportForeign } from '../../_shared/foreign.ts';
import { fromSchemaSubset } from '../../_shared/json-schema/from-subset.ts';
import { isEmptyObject, toSchemaSubset } from '../../_shared/json-schema/to-subset.ts';
import { putAt } from '../../_shared/settings.ts';
import { readCalling } from '../request-in/tools.ts';
import { asFunction, freeTextTools, type FunctionTool } from '../../_shared/writing.ts';
import type { Writing } from './scope.ts';
import { putBack } from '../../_shared/extra.ts';
import { takesJsonSchema } from '../response-format.ts';
import { formatName, own } from '../wire.ts';
import { refuseTool } from '../../_shared/refuse.ts';
import { defined, objectsOf } from '../../_shared/fields.ts';

/** Writes `tools`, grouped as the client had them; functions of other formats share one entry. */
export function encodeTools(body: MutableObject, request: ChatRequest, writing: Writing): void {
  const { drop } = writing.target;
  const { $tools: shells } = own(request.extra);
  const tools = keptTools(request, writing);
  for (const name of freeTextTools(tools)) writing.customTools.push(name);
  const entries = new Map<number, MutableObject>();
  const others = new Map<string, MutableObject>();
  for (const tool of tools) {
    reportForeign(tool.extra, formatName, tool.at, drop);
    if (tool.cache !== undefined) drop(`${tool.at ?? 'tools'}.cache`);
    const written = encodeTool(tool, writing);
    if (written === undefined) continue;
    const entry = own(tool.extra).$entry;
    if (typeof entry === 'number') addTo(entries, entry, written);
    else {
      const isFunction = written.functionDeclarations !== undefined;
      addTo(others, isFunction ? 'functions' : `alone ${others.size}`, written);
    }
  }
  for (const { entry, ...fields } of objectsOf(shells))
    if (typeof entry === 'number') entries.set(entry, { ...fields, ...entries.get(entry) });
  const ordered = [...entries].toSorted(([one], [other]) => one - other).map(([, entry]) => entry);
  if (ordered.length > 0 || others.size > 0 || shells !== undefined)
    body.tools = [...ordered, ...others.values()];
}

function addTo<Key>(entries: Map<Key, MutableObject>, key: Key, written: MutableObject): void {
  const entry = entries.get(key);
  if (entry === undefined) {
    entries.set(key, written);
    return;
  }
  const { functionDeclarations: before } = entry;
  const { functionDeclarations: more } = written;
  Object.assign(entry, written);
  if (!Array.isArray(before) || !Array.isArray(more)) return;
  // The list is that of an entry written here.
  for (const declaration of more as readonly JsonValue[]) (before as JsonValue[]).push(declaration);
  entry.functionDeclarations = before;
}

/** Returns the tools to send. The format has no `auto` choice among some tools, so that the others are left out. */
function keptTools(request: ChatRequest, { native, target }: Writing): readonly Tool[] {
  const choice = request.toolChoice;
  if (native || choice?.type !== 'allowed' || choice.mode !== 'auto') return request.tools;
  target.drop('tool_choice');
  return request.tools.filter((tool) => {
    const kept = (tool.type !== 'function' && tool.type !== 'custom') || choice.names.includes(tool.name);
    if (!kept) target.drop(tool.at ?? `tools.${tool.name}`);
    return kept;
  });
}

function encodeTool(tool: Tool, writing: Writing): MutableObject | undefined {
  switch (tool.type) {
    case 'function':
    case 'custom':
      return { functionDeclarations: [encodeFunction(asFunction(tool, writing), writing)] };
    case 'web-search':
    case 'code-execution': {
      const fields = own(tool.extra);
      const written: MutableObject = {};
      putBack(written, fields);
      const search = typeof fields.$key === 'string' ? fields.$key : 'googleSearch';
      return { [tool.type === 'web-search' ? search : 'codeExecution']: written };
    }
    case 'opaque':
      return tool.format === formatName ? { ...tool.value } : refuseTool(tool, formatName, writing.target);
  }
}

function encodeFunction(tool: FunctionTool, writing: Writing): MutableObject {
  const { name, description, strict } = tool;
  if (strict !== undefined) writing.target.drop(`${tool.at ?? 'tools'}.strict`);
  const declaration = {
    name: writing.toolName(name),
    ...defined({ description }),
    ...schemaOf(tool, writing),
  };
  putBack(declaration, own(tool.extra));
  return declaration;
}

/** Returns a function's schema: as the client wrote it in the format's own subset while it still means the same. */
function schemaOf(tool: FunctionTool, { native, target, inlined }: Writing): JsonObject {
  const { schema } = tool;
  const { $parameters, $both } = own(tool.extra);
  const both = $both === true;
  const subset = isObject($parameters) ? $parameters : undefined;
  const holds = subset !== undefined && (both || isDeepStrictEqual(fromSchemaSubset(subset), schema));
  if (holds && !both) return { parameters: subset };
  const written = holds ? { parameters: subset } : {};
  if (schema === undefined || (!native && isEmptyObject(schema))) return written;
  if (native || takesJsonSchema(target.traits)) return { ...written, parametersJsonSchema: schema };
  const drop = (path: string): void => target.drop(`${tool.at ?? 'tools'}.schema.${path}`);
  return { ...written, ...defined({ parameters: toSchemaSubset(schema, { drop, inlined }) }) };
}

/** Encodes `toolConfig`. */
export function encodeToolConfig(body: MutableObject, request: ChatRequest, writing: Writing): void {
  const { native, target } = writing;
  encodeToolChoice(body, request, writing);
  // Clients of this format request streamed arguments themselves. Without a stream the provider rejects the option.
  if (!native && target.stream && target.traits.streamsArguments === true && declares(body))
    putAt(body, 'toolConfig.functionCallingConfig.streamFunctionCallArguments', true);
}

/** Writes the tool choice, as the client wrote it if it still means the same. */
function encodeToolChoice(body: MutableObject, request: ChatRequest, writing: Writing): void {
  const written = own(request.extra).$toolConfig;
  if (isObject(written)) {
    const calling = written.functionCallingConfig;
    if (calling === undefined && request.toolChoice === undefined) body.toolConfig = {};
    if (isObject(calling) && isDeepStrictEqual(readCalling(calling), request.toolChoice)) {
      putAt(body, 'toolConfig.functionCallingConfig', { ...calling });
      return;
    }
  }
  const { toolChoice } = request;
  if (toolChoice === undefined) return;
  if (!writing.native && !declares(body)) {
    if (toolChoice.type !== 'auto' && toolChoice.type !== 'none') writing.target.drop('tool_choice');
    return;
  }
  const calling = writeCalling(toolChoice, request, writing);
  if (calling === undefined) writing.target.drop('tool_choice');
  else putAt(body, 'toolConfig.functionCallingConfig', calling);
}

/** Returns true when the body declares functions: the provider refuses a function choice without any. */
function declares(body: MutableObject): boolean {
  return (
    Array.isArray(body.tools) &&
    body.tools.some((entry) => isObject(entry) && entry.functionDeclarations !== undefined)
  );
}

/** Returns undefined when the choice names no function: hosted tools cannot be chosen here. */
function writeCalling(
  choice: ToolChoice,
  { tools }: ChatRequest,
  { toolName }: Writing,
): JsonObject | undefined {
  switch (choice.type) {
    case 'auto':
      return { mode: 'AUTO' };
    case 'none':
      return { mode: 'NONE' };
    case 'required':
      return { mode: 'ANY' };
    case 'tool':
    case 'allowed': {
      const functions = tools.filter(({ type }) => type === 'function' || type === 'custom');
      const known = new Set(functions.map((tool) => tool.name));
      const names = (choice.type === 'tool' ? [choice.name] : choice.names).filter((name) => known.has(name));
      if (names.length === 0) return undefined;
      if (choice.type === 'allowed' && choice.mode === 'auto') return { mode: 'AUTO' };
      return { mode: 'ANY', allowedFunctionNames: names.map(toolName) };
    }
  }
}
