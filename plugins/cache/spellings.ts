/** Requests that mean the same though they are written differently. */
import type { JsonObject, JsonValue } from 'sluice';

/*
 * Names in `extra` that begin with `$` tell how a client spelled something that the neutral request has as well. Those below do not
 * change what a model answers, so that requests which differ in them alone are equal. Every other name counts.
 */

/** Returns true for a value that has no effect. */
type Says = (value: JsonValue | undefined) => boolean;

const always: Says = () => true;
const isWord: Says = (value) => typeof value === 'string';
const isEmpty: Says = (value) => value === 'empty' || (Array.isArray(value) && value.length === 0);

const spellings: Readonly<Record<string, ReadonlyMap<string, Says>>> = {
  'chat-completions': new Map<string, Says>([
    ['$limit', always],
    ['$stream', always],
    ['$stream_options', always],
    ['$tools', isEmpty],
    ['$stop', isWord],
    ['$modalities', isWord],
  ]),
  responses: new Map<string, Says>([
    ['$instructions', always],
    ['$message', always],
    ['$part', isWord],
    ['$annotations', isEmpty],
    ['$item', isPlainItem],
    // References to earlier turns make a request uncacheable: see cacheable.ts.
    ['$kept', always],
    ['$tool_choice', isWord],
    ['$wish', always],
    ['$format', always],
    ['$text', always],
    ['$include', always],
    ['$input', isWord],
    ['$truncation', always],
    ['$stream', always],
    ['$stream_options', always],
  ]),
  messages: new Map<string, Says>([
    ['$stream', always],
    ['$tools', isEmpty],
  ]),
  'generate-content': new Map<string, Says>([
    // Instructions have no other role, and a turn without one is the user's.
    ['$role', (value) => value === null || value === 'user' || value === 'system'],
    ['$noId', always],
    ['$key', isWord],
    ['$entry', always],
  ]),
};

/** Items that are compared by content, not by id. */
const plainItems: ReadonlySet<unknown> = new Set(['message', 'function_call', 'function_call_output']);

/** Returns true for an item without own content, whose id is generated for each response. */
function isPlainItem(value: JsonValue | undefined): boolean {
  if (!isObject(value) || !plainItems.has(value['type'] ?? 'message')) return false;
  return Object.entries(value).every(
    ([name, member]) => name === 'type' || name === 'id' || (name === 'status' && member === 'completed'),
  );
}

/** Returns true for a member of `extra` of a format that only records a spelling. */
export function isSpelling(format: string, name: string, value: JsonValue | undefined): boolean {
  return spellings[format]?.get(name)?.(value) === true;
}

/** Returns true when a schema in generateContent's own form equals the JSON Schema except for the case of its types. */
export function saysTheSame(written: JsonValue | undefined, schema: JsonValue | undefined): boolean {
  return schema !== undefined && JSON.stringify(withSmallTypes(written)) === JSON.stringify(schema);
}

function withSmallTypes(value: JsonValue | undefined): JsonValue | undefined {
  if (Array.isArray(value)) return (value as readonly JsonValue[]).map((one) => withSmallTypes(one) ?? null);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name,
      name === 'type' && typeof member === 'string' ? member.toLowerCase() : withSmallTypes(member),
    ]),
  );
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
