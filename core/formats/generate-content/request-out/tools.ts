import { isDeepStrictEqual } from 'node:util';
import type { ChatRequest, Tool, ToolChoice } from '../../../model/chat.ts';
import { isObject, type JsonObject, type JsonValue, type MutableObject } from '../../../model/json.ts';
import { loseForeign } from '../../_shared/foreign.ts';
import { fromSchemaSubset } from '../../_shared/json-schema/from-subset.ts';
import { isEmptyObject, toSchemaSubset } from '../../_shared/json-schema/to-subset.ts';
import { putAt } from '../../_shared/settings.ts';
import { readCalling } from '../request-in/tools.ts';
import type { Encoding } from './scope.ts';
import { putBack } from '../../_shared/extra.ts';
import { takesJsonSchema } from '../response-format.ts';
import { formatName, own } from '../wire.ts';
import { refuseTool } from '../../_shared/refuse.ts';
import { objectsOf } from '../../_shared/fields.ts';

type FunctionTool = Extract<Tool, { type: 'function' }>;
type CustomTool = Extract<Tool, { type: 'custom' }>;

/** Writes `tools`, grouped as the client had them; tools of other formats share one entry of declarations. */
export function encodeTools(body: MutableObject, request: ChatRequest, encoding: Encoding): void {
  const entries = new Map<number, MutableObject>();
  const loose: MutableObject[] = [];
  /** The entry that declarations of other formats share. */
  let shared: MutableObject | undefined;
  for (const tool of keptTools(request, encoding)) {
    loseForeign(tool.extra, formatName, tool.at, encoding.target.lose);
    if (tool.cache !== undefined) encoding.target.lose(`${tool.at}.cache`);
    const written = encodeTool(tool, encoding);
    if (written === undefined) continue;
    const entry = own(tool.extra).$entry;
    if (typeof entry === 'number') addTo(entries, entry, written);
    else if (shared !== undefined && written.functionDeclarations !== undefined) merge(shared, written);
    else {
      if (written.functionDeclarations !== undefined) shared = written;
      loose.push(written);
    }
  }
  for (const shell of shellsOf(request)) {
    const { entry, ...fields } = shell;
    if (typeof entry === 'number') entries.set(entry, { ...fields, ...entries.get(entry) });
  }
  const tools = [...[...entries].toSorted(([a], [b]) => a - b).map(([, entry]) => entry), ...loose];
  if (tools.length > 0 || own(request.extra).$tools !== undefined) body.tools = tools;
}

function shellsOf(request: ChatRequest): readonly JsonObject[] {
  const shells = own(request.extra).$tools;
  return objectsOf(shells);
}

function addTo(entries: Map<number, MutableObject>, entry: number, written: MutableObject): void {
  const there = entries.get(entry) ?? {};
  merge(there, written);
  entries.set(entry, there);
}

function merge(there: MutableObject, written: MutableObject): void {
  const { functionDeclarations: before } = there;
  const { functionDeclarations: more } = written;
  Object.assign(there, written);
  if (!Array.isArray(before) || !Array.isArray(more)) return;
  // The list is that of an entry written here.
  for (const declaration of more as readonly JsonValue[]) (before as JsonValue[]).push(declaration);
  there.functionDeclarations = before;
}

/** An `auto` choice among some tools has no word here: the others are left out. */
function keptTools(request: ChatRequest, { native, target }: Encoding): readonly Tool[] {
  const choice = request.toolChoice;
  if (native || choice?.type !== 'allowed' || choice.mode !== 'auto') return request.tools;
  target.lose('tool_choice');
  return request.tools.filter((tool) => {
    const kept = (tool.type !== 'function' && tool.type !== 'custom') || choice.names.includes(tool.name);
    if (!kept) target.lose(tool.at ?? `tools.${tool.name}`);
    return kept;
  });
}

function encodeTool(tool: Tool, encoding: Encoding): MutableObject | undefined {
  const fields = own(tool.extra);
  switch (tool.type) {
    case 'function':
      return { functionDeclarations: [encodeFunction(tool, encoding)] };
    case 'custom':
      return { functionDeclarations: [encodeCustom(tool, encoding)] };
    case 'web-search':
    case 'code-execution': {
      const written: MutableObject = {};
      putBack(written, fields);
      const search = typeof fields.$key === 'string' ? fields.$key : 'googleSearch';
      return { [tool.type === 'web-search' ? search : 'codeExecution']: written };
    }
    case 'opaque':
      return tool.format === formatName ? { ...tool.value } : refuseTool(tool, formatName, encoding.target);
  }
}

function encodeFunction(tool: FunctionTool, encoding: Encoding): MutableObject {
  const { target } = encoding;
  const declaration: MutableObject = { name: encoding.toolName(tool.name) };
  if (tool.description !== undefined) declaration.description = tool.description;
  if (tool.strict !== undefined) target.lose(`${tool.at}.strict`);
  encodeSchema(declaration, tool, encoding);
  putBack(declaration, own(tool.extra));
  return declaration;
}

function encodeSchema(declaration: MutableObject, tool: FunctionTool, encoding: Encoding): void {
  const { native, target, inlined } = encoding;
  const fields = own(tool.extra);
  const subset = isObject(fields.$parameters) ? fields.$parameters : undefined;
  if (
    subset !== undefined &&
    (fields.$both === true || isDeepStrictEqual(fromSchemaSubset(subset), tool.schema))
  ) {
    declaration.parameters = subset;
    if (fields.$both !== true) return;
  }
  if (tool.schema === undefined || (!native && isEmptyObject(tool.schema))) return;
  if (native || takesJsonSchema(target.traits)) {
    declaration.parametersJsonSchema = tool.schema;
    return;
  }
  const parameters = toSchemaSubset(tool.schema, {
    drop: (path) => target.lose(`${tool.at}.schema.${path}`),
    inlined,
  });
  if (parameters !== undefined) declaration.parameters = parameters;
}

/** A tool that takes free text becomes a function with one string. */
function encodeCustom(tool: CustomTool, encoding: Encoding): MutableObject {
  encoding.customTools.push(tool.name);
  if (tool.format !== undefined && tool.format.type !== 'text') encoding.target.lose(`${tool.at}.format`);
  const schema = { type: 'object', properties: { input: { type: 'string' } }, required: ['input'] };
  return {
    name: encoding.toolName(tool.name),
    ...(tool.description === undefined ? {} : { description: tool.description }),
    ...(takesJsonSchema(encoding.target.traits)
      ? { parametersJsonSchema: schema }
      : { parameters: toSchemaSubset(schema, { drop: () => {} }) }),
  };
}

/** Writes how functions may be called. */
export function encodeToolConfig(body: MutableObject, request: ChatRequest, encoding: Encoding): void {
  const { native, target } = encoding;
  encodeToolChoice(body, request, encoding);
  // Clients of this format say themselves whether they can put arguments together. Without a stream the provider refuses to be asked.
  if (!native && target.stream && target.traits.streamsArguments === true && declares(body))
    putAt(body, 'toolConfig.functionCallingConfig.streamFunctionCallArguments', true);
}

/** The tool choice: as the client wrote it while it still means the same. */
function encodeToolChoice(body: MutableObject, request: ChatRequest, encoding: Encoding): void {
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
  if (!encoding.native && !declares(body)) {
    if (toolChoice.type !== 'auto' && toolChoice.type !== 'none') encoding.target.lose('tool_choice');
    return;
  }
  const calling = writeCalling(toolChoice, functionNames(request), encoding);
  if (calling === undefined) encoding.target.lose('tool_choice');
  else putAt(body, 'toolConfig.functionCallingConfig', calling);
}

function functionNames(request: ChatRequest): ReadonlySet<string> {
  return new Set(
    request.tools.flatMap((tool) => (tool.type === 'function' || tool.type === 'custom' ? [tool.name] : [])),
  );
}

/** A function choice without functions is refused by the provider. */
function declares(body: MutableObject): boolean {
  return (
    Array.isArray(body.tools) &&
    body.tools.some((entry) => isObject(entry) && entry.functionDeclarations !== undefined)
  );
}

/** Undefined when the choice names no function: hosted tools cannot be chosen here. */
function writeCalling(
  choice: ToolChoice,
  known: ReadonlySet<string>,
  encoding: Encoding,
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
      const names = (choice.type === 'tool' ? [choice.name] : choice.names).filter((tool) => known.has(tool));
      if (names.length === 0) return undefined;
      if (choice.type === 'allowed' && choice.mode === 'auto') return { mode: 'AUTO' };
      return { mode: 'ANY', allowedFunctionNames: names.map((tool) => encoding.toolName(tool)) };
    }
  }
}
