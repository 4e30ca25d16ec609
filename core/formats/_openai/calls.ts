/**
 * Tool calls and tool results as chat completions and Responses spell them: arguments as text, failed results, and results that answer no
 * call.
 */
import { wrongType } from '../../sdk/errors.ts';
import type { ToolCallBlock } from '../../model/chat.ts';
import { isObject, type JsonValue } from '../../model/json.ts';
import { given, jsonText } from '../_shared/check.ts';
import { listOf } from '../_shared/fields.ts';

/** Returns the arguments of a call as text. An object is tolerated. Throws 400. */
export function readArguments(value: JsonValue | undefined, path: string): string {
  if (!given(value)) return '';
  if (typeof value === 'string') return value;
  if (!isObject(value)) throw wrongType(path, 'a string');
  return jsonText(value, path);
}

/** Returns the arguments of a call to a function. Other formats write none at all where this family expects an object's text. */
export function writeArguments({ custom, input }: ToolCallBlock, foreign: boolean): string {
  if (custom) return JSON.stringify({ input });
  return foreign && input === '' ? '{}' : input;
}

/** Returns the parts of a content with a text before them; `type` is that of a text part. */
function after(text: string, content: JsonValue | undefined, type: string): JsonValue {
  return [{ type, text }, ...listOf(content)];
}

/** Marks a result as failed by a text that begins with "Error", because these formats have no field for it. `type` is that of a text part. */
export function markFailed(content: JsonValue, type: string): JsonValue {
  if (typeof content === 'string') return /^error\b/i.test(content) ? content : `Error: ${content}`;
  return after('Error:', content, type);
}

/** Returns the text of a user message that holds a result without a call. */
export function labelledOutput(
  id: JsonValue | undefined,
  content: JsonValue | undefined,
  type: string,
): JsonValue {
  const label = `Output of ${String(id)}:`;
  return typeof content === 'string' ? `${label}\n${content}` : after(label, content, type);
}
