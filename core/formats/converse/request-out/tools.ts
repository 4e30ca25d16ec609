import type { Block, ChatRequest, Tool } from '../../../model/chat.ts';
import type { JsonObject, MutableObject } from '../../../model/json.ts';
import { defined } from '../../_shared/fields.ts';
import { reportForeign } from '../../_shared/foreign.ts';
import { refuseTool } from '../../_shared/refuse.ts';
import { putBack } from '../../_shared/extra.ts';
import { formatName, own } from '../wire.ts';
import {
  allowedTools,
  asFunction,
  freeTextTools,
  objectSchema,
  strictSchema,
} from '../../_shared/writing.ts';
import { cachePoint, type Writing } from './scope.ts';

/**
 * Writes `toolConfig`. Returns the client's names of the free-text tools that go as functions. Throws 400 for a tool that only another
 * format knows.
 */
export function encodeTools(body: MutableObject, request: ChatRequest, writing: Writing): readonly string[] {
  const allowed = callableTools(request, writing);
  const given = allowed.flatMap((tool) => encodeTool(tool, writing));
  const tools = given.length > 0 || writing.native ? given : namedInHistory(request, writing);
  const toolChoice = encodeChoice(request, tools.length > 0, writing);
  const kept = own(request.extra);
  if (tools.length > 0 || toolChoice !== undefined || (writing.native && kept.$toolConfig === 'empty')) {
    const written = tools.length > 0 || kept.$tools === 'empty' ? { tools } : {};
    body.toolConfig = { ...written, ...defined({ toolChoice }) };
  }
  return freeTextTools(allowed);
}

/** Returns the tools that may be called. Omits the others, because the format has no tool choice `none`. */
function callableTools(request: ChatRequest, writing: Writing): readonly Tool[] {
  const { tools, toolChoice, messages } = request;
  const { target } = writing;
  if (toolChoice?.type === 'none') {
    if (tools.length > 0) target.drop('tool_choice');
    // A history with calls is refused without the tools that were called.
    if (callsIn(messages).length > 0) return tools;
    for (const tool of tools) target.drop(tool.at ?? 'tools');
    return [];
  }
  return allowedTools(request, writing);
}

function encodeTool(tool: Tool, writing: Writing): readonly JsonObject[] {
  const at = tool.at ?? 'tools';
  reportForeign(tool.extra, formatName, at, writing.target.drop);
  const wire = toolWire(tool, at, writing);
  if (wire === undefined) return [];
  putBack(wire, own(tool.extra), ['toolSpec.inputSchema', 'toolSpec']);
  return [wire, ...cachePoint(tool.cache, at, writing)];
}

function toolWire(tool: Tool, at: string, writing: Writing): MutableObject | undefined {
  switch (tool.type) {
    case 'function':
    case 'custom': {
      const called = asFunction(tool, writing);
      const { name, description, schema, strict } = called;
      const whole = writing.native ? schema : objectSchema(schema, writing);
      const json = whole && strictSchema(called, whole, writing);
      // An empty description is refused.
      const described = description !== '' || writing.native ? { description } : {};
      // Models without structured output refuse the member.
      const isLost = strict !== undefined && writing.target.traits.jsonSchema === false;
      if (isLost) writing.target.drop(`${at}.strict`);
      return {
        toolSpec: {
          name: writing.toolName(name),
          ...defined(described),
          inputSchema: defined({ json }),
          ...(isLost ? {} : defined({ strict })),
        },
      };
    }
    case 'web-search':
    case 'code-execution':
      return refuseTool(tool, formatName, writing.target);
    case 'opaque':
      return tool.format === formatName ? { ...tool.value } : refuseTool(tool, formatName, writing.target);
  }
}

/** Returns the tools for the calls in the history, if the client sent none, because the API requires tools with such a history. */
function namedInHistory({ messages }: ChatRequest, writing: Writing): readonly JsonObject[] {
  return [...new Set(callsIn(messages))].map((name) => ({
    toolSpec: {
      name: writing.toolName(name),
      inputSchema: { json: { type: 'object', properties: {} } },
    },
  }));
}

function callsIn(messages: ChatRequest['messages']): readonly string[] {
  return messages.flatMap(({ content }) =>
    content.flatMap((block: Block) => (block.type === 'tool-call' ? [block.name] : [])),
  );
}

/** Encodes the tool choice. `auto` is omitted, because it is the default and some models support nothing else. */
function encodeChoice(
  { toolChoice, settings }: ChatRequest,
  some: boolean,
  { native, target, toolName }: Writing,
): JsonObject | undefined {
  if (settings.parallelTools !== undefined) target.drop('settings.parallelTools');
  if (toolChoice === undefined || toolChoice.type === 'none') return undefined;
  if (!some && !native) {
    target.drop('tool_choice');
    return undefined;
  }
  switch (toolChoice.type) {
    case 'required':
      return { any: {} };
    case 'tool':
      return { tool: { name: toolName(toolChoice.name) } };
    case 'allowed':
      if (toolChoice.mode === 'required') return { any: {} };
      return target.traits.forcedTools === 'never' ? undefined : { auto: {} };
    case 'auto':
      return target.traits.forcedTools === 'never' ? undefined : { auto: {} };
  }
}
