import type { ChatRequest, JsonObject, JsonValue, Tool } from 'sluice';
import { mapItems, mapMembers, mapStrings, mapWords, type MapText } from './json.ts';

/** Definitions that a model reads beside the turns: tools, and the shape that the answer must have. */
type Definitions = Pick<ChatRequest, 'tools' | 'settings'>;

/** Calls `map` with each text of the definitions of a request, in order, and with its place. Nothing is changed. */
export function visitDefinitions(
  { tools, settings }: Definitions,
  visit: (text: string, at: string) => void,
): void {
  const map: MapText = (text, at) => {
    visit(text, at);
    return text;
  };
  for (const [index, tool] of tools.entries()) visitTool(tool, tool.at ?? `tools[${index}]`, map);
  const { schema } = settings.responseFormat ?? {};
  if (schema !== undefined) mapSchema(schema, 'response_format', map);
}

function visitTool(tool: Tool, at: string, map: MapText): void {
  if (tool.type === 'opaque') {
    mapWords(tool.value, at, map);
    return;
  }
  if (tool.type !== 'function' && tool.type !== 'custom') return;
  if (tool.description !== undefined) map(tool.description, at);
  if (tool.type === 'custom' && tool.format !== undefined) mapWords(tool.format, at, map);
  if (tool.type === 'function' && tool.schema !== undefined) mapSchema(tool.schema, at, map);
}

/** Keywords of JSON Schema whose strings are words for a reader. */
const words: ReadonlySet<string> = new Set(['title', 'description', '$comment']);
/** Keywords whose value is a value of the schema's own kind. */
const values: ReadonlySet<string> = new Set(['default', 'const', 'enum', 'examples', 'example']);
/** Keywords whose members are schemas, under names that the client chose. */
const named: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  'dependentSchemas',
  '$defs',
  'definitions',
]);

function mapSchema(schema: JsonValue, at: string, map: MapText): JsonValue {
  if (typeof schema !== 'object' || schema === null) return schema;
  if (Array.isArray(schema)) return mapItems(schema, (item) => mapSchema(item, at, map));
  return mapMembers(schema as JsonObject, (member, name) => {
    if (values.has(name)) return mapStrings(member, at, map);
    if (typeof member === 'string') return words.has(name) ? map(member, at) : member;
    if (!named.has(name) || typeof member !== 'object' || member === null || Array.isArray(member))
      return mapSchema(member, at, map);
    return mapMembers(member as JsonObject, (one) => mapSchema(one, at, map));
  });
}
