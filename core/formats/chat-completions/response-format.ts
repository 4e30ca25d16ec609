/** `response_format`, in both directions. */
import { isObject, type JsonValue } from '../../model/json.ts';
import { responseFormatReader, schemaFields } from '../_openai/response-format.ts';
import type { Leftovers } from '../_shared/extra.ts';
import { setOf } from '../_shared/fields.ts';

const outerFields = setOf('type');
const outerSchemaFields = setOf('type json_schema');

/** `response_format` in neutral words. Throws 400 with the path. */
export const readResponseFormat = responseFormatReader('json_schema');

/** Keeps the unknown fields of `response_format`. */
export function keepResponseFormat(value: JsonValue | undefined, left: Leftovers): void {
  if (!isObject(value)) return;
  const schema = value.type === 'json_schema' ? value.json_schema : undefined;
  left.take(value, isObject(schema) ? outerSchemaFields : outerFields, 'response_format.');
  if (isObject(schema)) left.take(schema, schemaFields, 'response_format.json_schema.');
}
