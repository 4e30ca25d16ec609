import type { ChatRequest, Tool, ToolChoice } from '../../../model/chat.ts';
import type { JsonObject, MutableObject } from '../../../model/json.ts';
import { reportForeign } from '../../_shared/foreign.ts';
import { formatName, own } from '../wire.ts';
import { defined } from '../../_shared/fields.ts';
import {
  allowedTools,
  asFunction,
  freeTextTools,
  objectSchema,
  strictSchema,
} from '../../_shared/writing.ts';
import { addCache, type Writing } from './scope.ts';
import { putBack } from '../../_shared/extra.ts';
import { refuseTool } from '../../_shared/refuse.ts';

/**
 * Writes `tools` and `tool_choice`. Returns the client's names of the free-text tools that go as functions. Throws 400 for a tool that only
 * another format knows.
 */
export function encodeTools(body: MutableObject, request: ChatRequest, writing: Writing): readonly string[] {
  const allowed = allowedTools(request, writing);
  const tools = allowed.map((tool) => encodeTool(tool, writing)).filter((wire) => wire !== undefined);
  const choice = encodeChoice(request, tools.length > 0, writing);
  if (tools.length > 0 || own(request.extra).$tools === 'empty') body.tools = tools;
  if (choice !== undefined) body.tool_choice = choice;
  return freeTextTools(allowed);
}

function encodeTool(tool: Tool, writing: Writing): JsonObject | undefined {
  const at = tool.at ?? 'tools';
  reportForeign(tool.extra, formatName, at, writing.target.drop);
  const wire = toolWire(tool, writing);
  if (wire === undefined || tool.type === 'opaque') return wire;
  if (writing.target.traits.marksTools !== false) addCache(wire, tool, writing, at);
  else if (tool.cache !== undefined) writing.target.drop(`${at}.cache`);
  putBack(wire, own(tool.extra), ['cache_control']);
  return wire;
}

function toolWire(tool: Tool, writing: Writing): MutableObject | undefined {
  const { $type } = own(tool.extra);
  switch (tool.type) {
    case 'function':
    case 'custom': {
      const called = asFunction(tool, writing);
      const { name, description, schema, strict } = called;
      return {
        ...(writing.target.traits.toolTypes === false ? {} : defined({ type: $type })),
        name: writing.toolName(name),
        ...defined({ description }),
        input_schema: strictSchema(called, objectSchema(schema, writing), writing),
        ...defined({ strict }),
      };
    }
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

/** Returns `tool_choice`, which providers refuse if there are no tools. */
function encodeChoice(request: ChatRequest, some: boolean, writing: Writing): JsonObject | undefined {
  const { toolChoice, settings } = request;
  const parallel = settings.parallelTools;
  const { drop } = writing.target;
  if (!some && !writing.native) {
    if (toolChoice !== undefined) drop('tool_choice');
    if (parallel !== undefined) drop('settings.parallelTools');
    return undefined;
  }
  if (parallel !== undefined && toolChoice?.type === 'none' && !writing.native) {
    drop('settings.parallelTools');
    return { type: 'none' };
  }
  // An unknown tool choice of the client is restored from `extra`.
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
