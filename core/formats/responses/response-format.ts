import type { ResponseFormat } from '../../model/chat.ts';
import type { JsonObject } from '../../model/json.ts';
import { responseFormatReader, schemaFields, schemaMembers } from '../_openai/response-format.ts';

/** Fields of `text.format` that the neutral model has words for. */
export const formatFields: ReadonlySet<string> = new Set(['type', ...schemaFields]);

/** `text.format` in neutral words. Throws 400 with the path. */
export const readResponseFormat = responseFormatReader();

/** `text.format` of a neutral one. A name is required: one is given where the client had none. */
export function writeResponseFormat(value: ResponseFormat): JsonObject {
  if (value.type !== 'json-schema') return { type: value.type === 'json' ? 'json_object' : 'text' };
  return { type: 'json_schema', ...schemaMembers(value, true) };
}
