/** Reads tools and the choice among them. */
import { wrongType } from '../../../sdk/errors.ts';
import type { Tool, ToolChoice } from '../../../model/chat.ts';
import { isObject, type JsonObject, type JsonValue } from '../../../model/json.ts';
import { given, optionalArray, optionalString, requiredString } from '../../_shared/check.ts';
import { clientTools, isClientTool } from '../tools/client.ts';
import type { Leftovers } from '../../_shared/extra.ts';
import { sameJson } from '../../../json/same-json.ts';
import { neutralName } from '../tools/spelling.ts';
import { formatName, leftovers } from '../wire.ts';
import { namedToolMembers, readNamedTool } from '../../_openai/tools.ts';
import { setOf } from '../../_shared/fields.ts';

const members = {
  function: setOf(`type ${namedToolMembers.function}`),
  custom: setOf(`type ${namedToolMembers.custom}`),
};
const namespaceFields = setOf('type name tools');
const typeOnly = setOf('type');
const containerFields = setOf('type container');
const grammarFields = setOf('type syntax definition');

/** Returns the tools of a list, those in namespaces each for itself. Throws 400 with the path. */
export function decodeToolList(value: JsonValue | undefined, path: string, left: Leftovers): readonly Tool[] {
  return (optionalArray(value, path) ?? []).flatMap((tool, index) =>
    decodeTool(tool, `${path}[${index}]`, left),
  );
}

function decodeTool(tool: JsonValue, at: string, left: Leftovers): readonly Tool[] {
  if (!isObject(tool)) throw wrongType(at, 'an object');
  const type = requiredString(tool.type, `${at}.type`);
  if (type !== 'namespace') return [plainTool(tool, type, at, undefined)];
  const namespace = requiredString(tool.name, `${at}.name`);
  left.take(tool, namespaceFields, `${at}.`);
  return (optionalArray(tool.tools, `${at}.tools`) ?? []).map((inner, index) => {
    const path = `${at}.tools[${index}]`;
    if (!isObject(inner)) throw wrongType(path, 'an object');
    return plainTool(inner, requiredString(inner.type, `${path}.type`), path, namespace);
  });
}

function plainTool(tool: JsonObject, type: string, at: string, namespace: string | undefined): Tool {
  if (type === 'function' || type === 'custom') return namedTool(type, tool, at, namespace);
  if (type.startsWith('web_search'))
    return { type: 'web-search', at, ...leftovers().take(tool, typeOnly).put('$type', type).extra() };
  if (type === 'code_interpreter') {
    // A container that the provider creates automatically is like every other sandbox.
    const known = sameJson(tool.container, { type: 'auto' }) ? containerFields : typeOnly;
    return { type: 'code-execution', at, ...leftovers().take(tool, known).extra() };
  }
  if (isClientTool(type, tool)) {
    const { description, schema } = clientTools[type] ?? {};
    return {
      type: 'function',
      name: type,
      at,
      ...(schema && description ? { description, schema } : {}),
      ...leftovers().put('$tool', tool).extra(),
    };
  }
  return { type: 'opaque', name: type, format: formatName, value: tool, at };
}

function namedTool(
  type: 'function' | 'custom',
  object: JsonObject,
  at: string,
  namespace: string | undefined,
): Tool {
  const read = readNamedTool(type, object, at, at);
  const left = leftovers().take(object, members[type]);
  const tool = { ...read, name: neutralName(read.name, namespace) };
  if (tool.type === 'function' || tool.format?.type !== 'grammar') return { ...tool, ...left.extra() };
  left.take(tool.format, grammarFields, 'format.');
  const { syntax, definition } = tool.format;
  // The neutral model spells a grammar as chat completions does, one level deeper.
  return { ...tool, format: { type: 'grammar', grammar: { syntax, definition } }, ...left.extra() };
}

/** Returns the tool choice. One that only this format knows is kept, wholly or in part, as an unknown field. Throws 400 with the path. */
export function decodeToolChoice(value: JsonValue | undefined, left: Leftovers): ToolChoice | undefined {
  if (!given(value)) return undefined;
  left.put('$tool_choice', value);
  const choice = readChoice(value, left);
  if (choice === undefined) left.put('tool_choice', value);
  return choice;
}

function readChoice(value: Exclude<JsonValue, null>, left: Leftovers): ToolChoice | undefined {
  if (typeof value === 'string') {
    if (value === 'auto' || value === 'none' || value === 'required') return { type: value };
    return value === 'any' ? { type: 'required' } : undefined;
  }
  if (!isObject(value)) throw wrongType('tool_choice', 'a string or an object');
  const type = requiredString(value.type, 'tool_choice.type');
  if (type === 'auto' || type === 'none' || type === 'required') return { type };
  if (type === 'allowed_tools') return allowedChoice(value, left);
  const name = chosenName(value, type);
  if (name !== undefined) return { type: 'tool', name };
  if (type === 'function' || type === 'custom') requiredString(undefined, 'tool_choice.name');
  return undefined;
}

/** Returns the neutral name of a tool that a choice names; undefined for a hosted one. The nested spelling of chat completions is accepted. */
function chosenName(choice: JsonObject, type: string): string | undefined {
  if (Object.hasOwn(clientTools, type)) return type;
  if (type !== 'function' && type !== 'custom') return undefined;
  const nested = choice[type];
  const { name, namespace } = isObject(nested) ? nested : choice;
  if (typeof name !== 'string') return undefined;
  return neutralName(name, typeof namespace === 'string' ? namespace : undefined);
}

function allowedChoice(value: JsonObject, left: Leftovers): ToolChoice {
  const nested = value.allowed_tools;
  const holder = isObject(nested) ? nested : value;
  const path = isObject(nested) ? 'tool_choice.allowed_tools' : 'tool_choice';
  const mode = optionalString(holder.mode, `${path}.mode`) === 'required' ? 'required' : 'auto';
  const names: string[] = [];
  (optionalArray(holder.tools, `${path}.tools`) ?? []).forEach((tool, index) => {
    if (!isObject(tool)) throw wrongType(`${path}.tools[${index}]`, 'an object');
    const name = chosenName(tool, requiredString(tool.type, `${path}.tools[${index}].type`));
    if (name === undefined) left.put(`${path}.tools[${index}]`, tool);
    else names.push(name);
  });
  return { type: 'allowed', mode, names };
}
