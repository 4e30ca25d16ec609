/** Reads tools and the choice among them. */
import { setOf } from '../../_shared/fields.ts';
import { wrongType } from '../../../sdk/errors.ts';
import type { Tool, ToolChoice } from '../../../model/chat.ts';
import { isObject, type JsonObject, type JsonValue } from '../../../model/json.ts';
import {
  given,
  optionalArray,
  optionalObject,
  optionalString,
  requiredString,
  requiredObject,
  readObjects,
} from '../../_shared/check.ts';
import type { Leftovers } from '../../_shared/extra.ts';
import { formatName, leftovers } from '../wire.ts';
import { sameJson } from '../../../json/same-json.ts';
import { namedToolMembers, readNamedTool } from '../../_openai/tools.ts';

const members = {
  function: setOf(namedToolMembers.function),
  custom: setOf(namedToolMembers.custom),
};
const outerMembers = { function: setOf('type function'), custom: setOf('type custom') };
const none: ReadonlySet<string> = new Set();

/** Returns every tool of the request: `tools`, the deprecated `functions`, and `web_search_options`. */
export function decodeTools(body: JsonObject): Tool[] {
  const tools = [
    ...readObjects(body.tools, 'tools', decodeTool),
    ...readObjects(body.functions, 'functions', (value, at) =>
      namedTool('function', value, at, at, leftovers()),
    ),
  ];
  const search = optionalObject(body.web_search_options, 'web_search_options');
  if (search !== undefined)
    tools.push({
      type: 'web-search',
      at: 'web_search_options',
      ...leftovers().take(search, none).extra(),
    });
  return tools;
}

function decodeTool(tool: JsonObject, at: string): Tool {
  const type = requiredString(tool.type, `${at}.type`);
  if (type !== 'function' && type !== 'custom')
    return { type: 'opaque', name: type, format: formatName, value: tool, at };
  const path = `${at}.${type}`;
  const inner = requiredObject(tool[type], path);
  return namedTool(type, inner, at, path, leftovers().take(tool, outerMembers[type]));
}

function namedTool(
  type: 'function' | 'custom',
  inner: JsonObject,
  at: string,
  path: string,
  left: Leftovers,
): Tool {
  const tool = readNamedTool(type, inner, at, path);
  return { ...tool, ...left.take(inner, members[type], `${type}.`).extra() };
}

/** Returns the tool choice, from `tool_choice` or the deprecated `function_call`. An unknown one is kept as an unknown field. */
export function decodeToolChoice(body: JsonObject, left: Leftovers): ToolChoice | undefined {
  const value = body.tool_choice;
  if (!given(value)) return legacyChoice(body.function_call);
  const choice = readChoice(value, 'tool_choice');
  if (choice === undefined) left.put('tool_choice', value);
  else if (!sameJson(writeChoice(choice, false), value)) left.put('$tool_choice', value);
  return choice;
}

function legacyChoice(value: JsonValue | undefined): ToolChoice | undefined {
  if (!given(value)) return undefined;
  if (isObject(value)) return { type: 'tool', name: requiredString(value.name, 'function_call.name') };
  if (typeof value !== 'string') throw wrongType('function_call', 'a string or an object');
  return value === 'none' ? { type: 'none' } : { type: 'auto' };
}

/** Reads a tool choice; undefined for words that this format does not have. Throws 400 with the path. */
export function readChoice(value: JsonValue, path: string): ToolChoice | undefined {
  if (typeof value === 'string') {
    if (value === 'auto' || value === 'none' || value === 'required') return { type: value };
    return value === 'any' ? { type: 'required' } : undefined;
  }
  if (!isObject(value)) throw wrongType(path, 'a string or an object');
  const type = requiredString(value.type, `${path}.type`);
  if (type === 'function' || type === 'custom') {
    const inner = requiredObject(value[type], `${path}.${type}`);
    return { type: 'tool', name: requiredString(inner.name, `${path}.${type}.name`) };
  }
  return type === 'allowed_tools' ? allowedChoice(value, `${path}.allowed_tools`) : undefined;
}

function allowedChoice(value: JsonObject, path: string): ToolChoice {
  const inner = requiredObject(value.allowed_tools, path);
  const mode = optionalString(inner.mode, `${path}.mode`) === 'required' ? 'required' : 'auto';
  const names: string[] = [];
  for (const tool of optionalArray(inner.tools, `${path}.tools`) ?? []) {
    if (!isObject(tool)) continue;
    const holder = isObject(tool.function) ? tool.function : isObject(tool.custom) ? tool.custom : tool;
    if (typeof holder.name === 'string') names.push(holder.name);
  }
  return { type: 'allowed', mode, names };
}

/** Returns a tool choice in this format. `custom`: the named tool takes free text. `spell` turns a tool's name into the provider's spelling. */
export function writeChoice(
  choice: ToolChoice,
  custom: boolean,
  spell: (name: string) => string = (name) => name,
): JsonValue {
  if (choice.type === 'tool') {
    const name = spell(choice.name);
    return custom ? { type: 'custom', custom: { name } } : { type: 'function', function: { name } };
  }
  if (choice.type !== 'allowed') return choice.type;
  const tools = choice.names.map((name) => ({ type: 'function', function: { name: spell(name) } }));
  return { type: 'allowed_tools', allowed_tools: { mode: choice.mode, tools } };
}
