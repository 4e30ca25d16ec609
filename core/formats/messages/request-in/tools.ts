import { wrongValue } from '../../../sdk/errors.ts';
import type { Tool, ToolChoice } from '../../../model/chat.ts';
import type { JsonObject, JsonValue } from '../../../model/json.ts';
import {
  given,
  readObjects,
  optionalBoolean,
  optionalObject,
  optionalString,
  requiredString,
  requiredObject,
} from '../../_shared/check.ts';
import { cacheOf } from './parts.ts';
import { formatName, leftovers } from '../wire.ts';
import type { Leftovers } from '../../_shared/extra.ts';
import { setOf } from '../../_shared/fields.ts';

/** The request's tools. Throws 400 with the path. */
export function decodeTools(value: JsonValue | undefined): Tool[] {
  return readObjects(value, 'tools', (tool, at) => {
    const type = optionalString(tool.type, `${at}.type`) ?? 'custom';
    if (type === 'custom') return decodeFunction(tool, at);
    if (type.startsWith('web_search_')) return decodeHosted('web-search', tool, at);
    if (type.startsWith('code_execution_')) return decodeHosted('code-execution', tool, at);
    return {
      type: 'opaque',
      name: optionalString(tool.name, `${at}.name`) ?? type,
      format: formatName,
      value: tool,
      at,
    };
  });
}

const functionFields = setOf('type name description input_schema strict cache_control');

function decodeFunction(tool: JsonObject, at: string): Tool {
  const left = leftovers().take(tool, functionFields);
  if (given(tool.type)) left.put('$type', tool.type);
  const name = requiredString(tool.name, `${at}.name`);
  if (!/^[a-zA-Z0-9_-]{1,128}$/.test(name)) {
    throw wrongValue(`${at}.name`, '1 to 128 letters, digits, underscores or hyphens');
  }
  const description = optionalString(tool.description, `${at}.description`);
  const schema = requiredObject(tool.input_schema, `${at}.input_schema`);
  if (schema.type !== 'object') throw wrongValue(`${at}.input_schema.type`, '"object"');
  const strict = optionalBoolean(tool.strict, `${at}.strict`);
  return {
    type: 'function',
    name,
    ...(description === undefined ? {} : { description }),
    schema,
    ...(strict === undefined ? {} : { strict }),
    ...cacheOf(tool, at, left),
    ...left.extra(),
    at,
  };
}

const hostedFields = setOf('type name cache_control');

/** A tool that the provider runs: its version is a spelling, its limits are details that only this format knows. */
function decodeHosted(type: 'web-search' | 'code-execution', tool: JsonObject, at: string): Tool {
  const left = leftovers()
    .take(tool, hostedFields)
    .put('$type', tool.type ?? null);
  const name = optionalString(tool.name, `${at}.name`);
  return {
    type,
    ...(name === undefined ? {} : { name }),
    ...cacheOf(tool, at, left),
    ...left.extra(),
    at,
  };
}

const choiceFields = setOf('type name disable_parallel_tool_use');
const bareChoiceFields = setOf('type disable_parallel_tool_use');

/** What `tool_choice` says; fields that only this format knows go to `left`. */
export function decodeToolChoice(
  value: JsonValue | undefined,
  left: Leftovers,
): { readonly toolChoice?: ToolChoice; readonly parallelTools?: boolean } {
  const wire = optionalObject(value, 'tool_choice');
  if (wire === undefined) return {};
  const type = requiredString(wire.type, 'tool_choice.type');
  const disabled = optionalBoolean(wire.disable_parallel_tool_use, 'tool_choice.disable_parallel_tool_use');
  const toolChoice = choiceOf(type, wire);
  left.take(wire, toolChoice?.type === 'tool' ? choiceFields : bareChoiceFields, 'tool_choice.');
  if (toolChoice === undefined) left.put('tool_choice.type', type);
  return {
    ...(toolChoice === undefined ? {} : { toolChoice }),
    ...(disabled === undefined ? {} : { parallelTools: !disabled }),
  };
}

function choiceOf(type: string, wire: JsonObject): ToolChoice | undefined {
  switch (type) {
    case 'auto':
    case 'none':
      return { type };
    case 'any':
      return { type: 'required' };
    case 'tool':
      return { type: 'tool', name: requiredString(wire.name, 'tool_choice.name') };
    default:
      return undefined;
  }
}
