/** Decodes `tools` and `tool_choice` of a Messages request. */
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
import { defined, setOf } from '../../_shared/fields.ts';

/** Decodes the request's tools. Throws 400 with the path. */
export function decodeTools(value: JsonValue | undefined): Tool[] {
  return readObjects(value, 'tools', (tool, at) => {
    const type = optionalString(tool.type, `${at}.type`) ?? 'custom';
    const left = leftovers();
    const neutral = type === 'custom' ? readFunction(tool, at, left) : readHosted(type, tool, at, left);
    if (neutral !== undefined) return { ...neutral, ...cacheOf(tool, at, left), ...left.extra(), at };
    const name = optionalString(tool.name, `${at}.name`) ?? type;
    return { type: 'opaque', name, format: formatName, value: tool, at };
  });
}

const functionFields = setOf('type name description input_schema strict cache_control');

function readFunction(tool: JsonObject, at: string, left: Leftovers): Tool {
  left.take(tool, functionFields);
  if (given(tool.type)) left.put('$type', tool.type);
  const name = requiredString(tool.name, `${at}.name`);
  if (!/^[a-zA-Z0-9_-]{1,128}$/.test(name))
    throw wrongValue(`${at}.name`, '1 to 128 letters, digits, underscores or hyphens');
  const description = optionalString(tool.description, `${at}.description`);
  const schema = requiredObject(tool.input_schema, `${at}.input_schema`);
  if (schema.type !== 'object') throw wrongValue(`${at}.input_schema.type`, '"object"');
  const strict = optionalBoolean(tool.strict, `${at}.strict`);
  return { type: 'function', name, schema, ...defined({ description, strict }) };
}

/** Hosted tools that other formats have too, by the prefix of their types; a version follows it. */
const hosted = [
  ['web_search_', 'web-search'],
  ['code_execution_', 'code-execution'],
] as const;
const hostedFields = setOf('type name cache_control');

/** Decodes a hosted tool. Its version and limits are kept for channels of this format. */
function readHosted(version: string, tool: JsonObject, at: string, left: Leftovers): Tool | undefined {
  const type = hosted.find(([start]) => version.startsWith(start))?.[1];
  if (type === undefined) return undefined;
  left.take(tool, hostedFields).put('$type', version);
  return { type, ...defined({ name: optionalString(tool.name, `${at}.name`) }) };
}

const choiceFields = setOf('type name disable_parallel_tool_use');
const bareChoiceFields = setOf('type disable_parallel_tool_use');

/** Decodes `tool_choice`; fields that only this format knows go to `left`. */
export function decodeToolChoice(
  value: JsonValue | undefined,
  left: Leftovers,
): { readonly toolChoice?: ToolChoice; readonly parallelTools?: boolean } {
  const wire = optionalObject(value, 'tool_choice');
  if (wire === undefined) return {};
  const type = requiredString(wire.type, 'tool_choice.type');
  const disabled = optionalBoolean(wire.disable_parallel_tool_use, 'tool_choice.disable_parallel_tool_use');
  const toolChoice: ToolChoice | undefined =
    type === 'tool'
      ? { type: 'tool', name: requiredString(wire.name, 'tool_choice.name') }
      : choices.get(type);
  left.take(wire, type === 'tool' ? choiceFields : bareChoiceFields, 'tool_choice.');
  if (toolChoice === undefined) left.put('tool_choice.type', type);
  return defined({ toolChoice, parallelTools: disabled === undefined ? undefined : !disabled });
}

const choices: ReadonlyMap<string, ToolChoice> = new Map([
  ['auto', { type: 'auto' }],
  ['none', { type: 'none' }],
  ['any', { type: 'required' }],
]);
