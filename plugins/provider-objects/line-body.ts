import { isObject, type JsonObject } from 'sluice';
import type { ObjectFormat } from './collections.ts';
import { refersToTurns } from './references.ts';

/** Returns the request in a line; undefined where the line has none that may be sent. Where a format names no model in it, the batch does. */
export function bodyOfLine(line: JsonObject, format: ObjectFormat): JsonObject | undefined {
  if (format === 'generate-content') return isObject(line['request']) ? line['request'] : undefined;
  const { body } = line;
  // Turns that a provider remembers by themselves are nobody's here: no line may go on from them.
  if (isObject(body) && refersToTurns(body)) return undefined;
  // The batch may name the model where lines do not.
  const { model = '' } = isObject(body) ? body : {};
  return isObject(body) && typeof model === 'string' && typeof line['custom_id'] === 'string'
    ? body
    : undefined;
}
