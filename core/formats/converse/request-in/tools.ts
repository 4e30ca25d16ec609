/** Decodes `toolConfig` of a Converse request: tools and tool choice. */
import type { Tool, ToolChoice } from '../../../model/chat.ts';
import { isObject, type JsonObject, type JsonValue } from '../../../model/json.ts';
import {
  readObjects,
  optionalBoolean,
  optionalObject,
  optionalString,
  requiredString,
  requiredObject,
} from '../../_shared/check.ts';
import { formatName, leftovers } from '../wire.ts';
import { cacheOf } from './parts.ts';
import { defined, setOf } from '../../_shared/fields.ts';
import type { Leftovers } from '../../_shared/extra.ts';

/** Returns the request's tools. A cache point marks the tool before it. Throws 400 with the path. */
export function decodeTools(value: JsonValue | undefined): Tool[] {
  const tools: Tool[] = [];
  readObjects(value, 'toolConfig.tools', (wire, at) => {
    const last = tools.at(-1);
    const cache = cacheOf(wire, at);
    if (cache !== undefined && last !== undefined && last.cache === undefined)
      tools[tools.length - 1] = { ...last, cache };
    else tools.push(decodeTool(wire, at));
  });
  return tools;
}

const outerFields = setOf('toolSpec');
const specFields = setOf('name description inputSchema strict');
const schemaFields = setOf('json');

function decodeTool(wire: JsonObject, at: string): Tool {
  const spec = optionalObject(wire.toolSpec, `${at}.toolSpec`);
  if (spec === undefined) {
    const system = isObject(wire.systemTool) ? wire.systemTool.name : undefined;
    const tool = typeof system === 'string' ? system : (Object.keys(wire)[0] ?? '');
    return { type: 'opaque', name: tool, format: formatName, value: wire, at };
  }
  const input = requiredObject(spec.inputSchema, `${at}.toolSpec.inputSchema`);
  const left = leftovers()
    .take(wire, outerFields)
    .take(spec, specFields, 'toolSpec.')
    .take(input, schemaFields, 'toolSpec.inputSchema.');
  const description = optionalString(spec.description, `${at}.toolSpec.description`);
  const schema = optionalObject(input.json, `${at}.toolSpec.inputSchema.json`);
  const strict = optionalBoolean(spec.strict, `${at}.toolSpec.strict`);
  return {
    type: 'function',
    name: requiredString(spec.name, `${at}.toolSpec.name`),
    ...defined({ description, schema, strict }),
    ...left.extra(),
    at,
  };
}

/** Decodes `toolConfig.toolChoice`; a choice that only this format knows goes to `left`. */
export function decodeToolChoice(value: JsonValue | undefined, left: Leftovers): ToolChoice | undefined {
  const path = 'toolConfig.toolChoice';
  const wire = optionalObject(value, path);
  if (wire === undefined) return undefined;
  if (isObject(wire.auto)) return { type: 'auto' };
  if (isObject(wire.any)) return { type: 'required' };
  if (isObject(wire.tool)) return { type: 'tool', name: requiredString(wire.tool.name, `${path}.tool.name`) };
  left.put(path, wire);
  return undefined;
}
