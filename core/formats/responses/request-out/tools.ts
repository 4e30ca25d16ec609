/** Writes tools and the choice among them. */
import type { ChatRequest, Tool, ToolChoice } from '../../../model/chat.ts';
import { isObject, type JsonObject, type JsonValue, type MutableObject } from '../../../model/json.ts';
import { putBack } from '../../_shared/extra.ts';
import { formatName, own } from '../wire.ts';
import { dropBeside, type Scope } from '../../_openai/scope.ts';
import { writeNamedTool } from '../../_openai/tools.ts';
import { refuseTool } from '../../_shared/refuse.ts';

const noArguments: JsonObject = { type: 'object', properties: {} };

/** Returns true when tools go as the client of this format wrote them: in their namespaces, and in the items that hold some. */
export function toolsAsWritten({ foreign, names, wrapped }: Scope): boolean {
  return !foreign && names === undefined && wrapped.size === 0;
}

/** Writes `tools` and `tool_choice`. Throws 400 `unsupported_tool` for a tool that this format has not. */
export function writeTools(request: ChatRequest, body: MutableObject, scope: Scope): void {
  const { $tools, $tool_choice } = own(request.extra);
  for (const tool of request.tools) dropBeside(tool, scope);
  if (toolsAsWritten(scope)) {
    if ($tools !== undefined) body.tools = $tools;
    if ($tool_choice !== undefined) body.tool_choice = $tool_choice;
    return;
  }
  const tools: JsonObject[] = [];
  for (const tool of request.tools) {
    const wire = writeTool(tool, scope);
    if (wire !== undefined) tools.push(wire);
  }
  if (tools.length > 0 || $tools !== undefined) body.tools = tools;
  writeToolChoice(request, body, scope);
}

function writeTool(tool: Tool, scope: Scope): JsonObject | undefined {
  const { $tool, $type } = own(tool.extra);
  if (isObject($tool)) return $tool;
  switch (tool.type) {
    case 'function':
    case 'custom':
      return writeNamedTool(tool, scope, {
        buildTool: (kind, members) => ({ type: kind, ...members }),
        // Left out, `strict` would be taken for true and the schema be changed.
        usual: ({ foreign }, wrapped) =>
          wrapped ? { strict: false } : foreign ? { parameters: noArguments, strict: false } : {},
        grammar: flatGrammar,
      });
    case 'web-search':
      return withOwn({ type: $type ?? 'web_search' }, tool);
    case 'code-execution':
      return withOwn({ type: 'code_interpreter', container: { type: 'auto' } }, tool);
    case 'opaque':
      return tool.format === formatName ? tool.value : refuseTool(tool, formatName, scope.target);
  }
}

/** Flattens a grammar, because the neutral model has it one level deeper, as chat completions do. */
function flatGrammar(format: JsonObject): JsonObject {
  return isObject(format.grammar) ? { type: 'grammar', ...format.grammar } : format;
}

function withOwn(wire: MutableObject, tool: Tool): JsonObject {
  putBack(wire, own(tool.extra));
  return wire;
}

function writeToolChoice(request: ChatRequest, body: MutableObject, scope: Scope): void {
  const { toolChoice } = request;
  const { $tool_choice } = own(request.extra);
  if (toolChoice === undefined) {
    if ($tool_choice !== undefined) body.tool_choice = $tool_choice;
    return;
  }
  // Providers refuse a choice where there is nothing to choose from.
  if (!Array.isArray(body.tools)) {
    if (toolChoice.type !== 'auto' && toolChoice.type !== 'none') scope.target.drop('tool_choice');
    return;
  }
  body.tool_choice = writeChoice(toolChoice, request, scope);
}

function writeChoice(choice: ToolChoice, request: ChatRequest, scope: Scope): JsonValue {
  const spelled = (name: string): JsonObject => {
    const tool = request.tools.find((candidate) => candidate.name === name);
    if (isObject(own(tool?.extra).$tool)) return { type: name };
    const custom = tool?.type === 'custom' && !scope.wrapped.has(name);
    return { type: custom ? 'custom' : 'function', name: scope.names?.there(name) ?? name };
  };
  if (choice.type === 'tool') return spelled(choice.name);
  if (choice.type !== 'allowed') return choice.type;
  return { type: 'allowed_tools', mode: choice.mode, tools: choice.names.map(spelled) };
}
