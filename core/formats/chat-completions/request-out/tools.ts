import type { ChatRequest, Tool } from '../../../model/chat.ts';
import { isObject, type JsonObject, type MutableObject } from '../../../model/json.ts';
import { readChoice, writeChoice } from '../request-in/tools.ts';
import { putBack } from '../../_shared/extra.ts';
import { formatName, own } from '../wire.ts';
import { sameJson } from '../../../json/same-json.ts';
import { dropBeside, withCache, type Scope } from '../../_openai/scope.ts';
import { writeNamedTool } from '../../_openai/tools.ts';
import { refuseTool } from '../../_shared/refuse.ts';

/** Writes `tools`, `web_search_options` and `tool_choice`. Throws 400 `unsupported_tool` for a tool that this format has not. */
export function writeTools(request: ChatRequest, body: MutableObject, scope: Scope): void {
  const tools: JsonObject[] = [];
  for (const tool of request.tools) {
    const isMarked = tool.cache !== undefined && takesMark(tool, scope);
    dropBeside(isMarked ? unmarked(tool) : tool, scope);
    if (tool.type === 'web-search') writeSearch(tool, body, scope);
    else {
      const wire = writeTool(tool, scope);
      if (wire !== undefined) tools.push(isMarked ? withCache({ ...wire }, tool, scope) : wire);
    }
  }
  if (tools.length > 0 || own(request.extra).$tools === 'empty') body.tools = tools;
  writeToolChoice(request, body, scope);
}

/** Returns true for a definition that may end a cached part of the input. */
function takesMark({ type }: Tool, { target }: Scope): boolean {
  const { marksTools, cacheMark } = target.traits;
  return marksTools === true && cacheMark === 'cache_control' && (type === 'function' || type === 'custom');
}

function unmarked(tool: Tool): Tool {
  const { cache: _, ...rest } = tool;
  return rest;
}

function writeTool(tool: Tool, scope: Scope): JsonObject | undefined {
  switch (tool.type) {
    case 'function':
    case 'custom':
      return writeNamedTool(tool, scope, {
        buildTool: (kind, members) => ({ type: kind, [kind]: members }),
        nested: ['function', 'custom'],
      });
    case 'opaque':
      return tool.format === formatName ? tool.value : refuseTool(tool, formatName, scope.target);
    case 'web-search':
    case 'code-execution':
      return refuseTool(tool, formatName, scope.target);
  }
}

/** Writes the provider's own search, which is a setting here, not a tool. */
function writeSearch(tool: Tool, body: MutableObject, scope: Scope): void {
  if (body.web_search_options !== undefined) {
    scope.target.drop(tool.at ?? 'tools');
    return;
  }
  const options: MutableObject = {};
  putBack(options, own(tool.extra));
  body.web_search_options = options;
}

function writeToolChoice(request: ChatRequest, body: MutableObject, scope: Scope): void {
  const { toolChoice } = request;
  if (toolChoice === undefined) return;
  const spelled = own(request.extra).$tool_choice;
  if (
    spelled !== undefined &&
    scope.names === undefined &&
    sameJson(asJson(readChoice(spelled, 'tool_choice')), asJson(toolChoice))
  ) {
    body.tool_choice = spelled;
    return;
  }
  // Providers refuse a choice where there is nothing to choose from.
  if (scope.foreign && !Array.isArray(body.tools)) {
    if (toolChoice.type !== 'auto' && toolChoice.type !== 'none') scope.target.drop('tool_choice');
    return;
  }
  const named = toolChoice.type === 'tool' ? toolChoice.name : undefined;
  const custom = request.tools.some(
    (tool) => tool.type === 'custom' && tool.name === named && !scope.wrapped.has(tool.name),
  );
  body.tool_choice = writeChoice(toolChoice, custom, (name) => scope.names?.there(name) ?? name);
}

function asJson(choice: ReturnType<typeof readChoice>): JsonObject | null {
  return isObject(choice) ? choice : null;
}
