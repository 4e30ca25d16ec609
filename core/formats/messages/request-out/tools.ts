import type { ChatRequest, Tool, ToolChoice } from '../../../model/chat.ts';
import type { JsonObject, MutableObject } from '../../../model/json.ts';
import { loseForeign } from '../../_shared/foreign.ts';
import { formatName, own } from '../wire.ts';
import { freeTextSchema } from '../../_shared/free-text.ts';
import { allowedTools, freeTextTools, objectSchema } from '../../_shared/writing.ts';
import { addCache, type Writing } from './scope.ts';
import { putBack } from '../../_shared/extra.ts';
import { refuseTool } from '../../_shared/refuse.ts';

/** `tools` and `tool_choice` of the wire, and what the reply must undo. */
export interface EncodedTools {
  readonly tools: readonly JsonObject[];
  readonly choice?: JsonObject;
  /** Free-text tools that were wrapped as functions, by the client's names. */
  readonly customTools: readonly string[];
}

/** The request's tools and its choice among them. Throws 400 for a tool that only another format knows. */
export function encodeTools(request: ChatRequest, writing: Writing): EncodedTools {
  const allowed = allowedTools(request, writing);
  const tools: JsonObject[] = [];
  for (const tool of allowed) {
    const wire = encodeTool(tool, writing);
    if (wire !== undefined) tools.push(wire);
  }
  const choice = encodeChoice(request, tools.length > 0, writing);
  return {
    tools,
    ...(choice === undefined ? {} : { choice }),
    customTools: freeTextTools(allowed),
  };
}

function encodeTool(tool: Tool, writing: Writing): JsonObject | undefined {
  const at = tool.at ?? 'tools';
  loseForeign(tool.extra, formatName, at, writing.target.lose);
  const wire = toolWire(tool, at, writing);
  if (wire === undefined || tool.type === 'opaque') return wire;
  addCache(wire, tool, writing, at);
  putBack(wire, own(tool.extra), ['cache_control']);
  return wire;
}

function toolWire(tool: Tool, at: string, writing: Writing): MutableObject | undefined {
  const { $type } = own(tool.extra);
  const { lose } = writing.target;
  switch (tool.type) {
    case 'function':
      return {
        ...($type === undefined ? {} : { type: $type }),
        name: writing.toolName(tool.name),
        ...(tool.description === undefined ? {} : { description: tool.description }),
        input_schema: objectSchema(tool.schema, writing),
        ...(tool.strict === undefined ? {} : { strict: tool.strict }),
      };
    case 'custom':
      if (tool.format !== undefined && tool.format.type !== 'text') lose(`${at}.format`);
      return {
        name: writing.toolName(tool.name),
        ...(tool.description === undefined ? {} : { description: tool.description }),
        input_schema: freeTextSchema,
      };
    case 'web-search':
      return hosted($type ?? 'web_search_20250305', tool.name, 'web_search', writing);
    case 'code-execution':
      return hosted($type ?? 'code_execution_20250825', tool.name, 'code_execution', writing);
    case 'opaque':
      return tool.format === formatName ? { ...tool.value } : refuseTool(tool, formatName, writing.target);
  }
}

function hosted(
  type: NonNullable<JsonObject[string]>,
  given: string | undefined,
  official: string,
  { native }: Writing,
): MutableObject {
  if (!native) return { type, name: official };
  return { type, ...(given === undefined ? {} : { name: given }) };
}

/** `tool_choice`, which providers refuse where there are no tools. */
function encodeChoice(request: ChatRequest, some: boolean, writing: Writing): JsonObject | undefined {
  const { toolChoice, settings } = request;
  const parallel = settings.parallelTools;
  const { lose } = writing.target;
  if (!some && !writing.native) {
    if (toolChoice !== undefined) lose('tool_choice');
    if (parallel !== undefined) lose('settings.parallelTools');
    return undefined;
  }
  if (parallel !== undefined && toolChoice?.type === 'none' && !writing.native) {
    lose('settings.parallelTools');
    return { type: 'none' };
  }
  // Where the client's word for the choice is unknown here it comes back from `extra`.
  const fallback: ToolChoice | undefined = parallel === undefined ? undefined : { type: 'auto' };
  const chosen = toolChoice ?? fallback;
  if (chosen === undefined) return undefined;
  return {
    ...choiceWire(chosen, writing),
    ...(parallel === undefined ? {} : { disable_parallel_tool_use: !parallel }),
  };
}

function choiceWire(choice: ToolChoice, writing: Writing): JsonObject {
  switch (choice.type) {
    case 'required':
      return { type: 'any' };
    case 'tool':
      return { type: 'tool', name: writing.toolName(choice.name) };
    case 'allowed':
      return { type: choice.mode === 'required' ? 'any' : 'auto' };
    default:
      return { type: choice.type };
  }
}
