import { wrongValue } from '../../sdk/errors.ts';
import type { ResponseFormat } from '../../model/chat.ts';
import type { JsonObject, JsonValue } from '../../model/json.ts';
import { given, optionalBoolean, optionalObject, optionalString, requiredString } from '../_shared/check.ts';
import type { MutableObject } from '../_shared/settings.ts';

/** Fields of `text.format` that the neutral model has words for. */
export const formatFields: ReadonlySet<string> = new Set(['type', 'name', 'description', 'schema', 'strict']);

/** `text.format` in neutral words. Throws 400 with the path. */
export function readResponseFormat(value: JsonValue, path: string): MutableObject {
  const format = optionalObject(value, path) ?? {};
  const type = requiredString(format.type, `${path}.type`);
  if (type === 'text') return { type };
  if (type === 'json_object') return { type: 'json' };
  if (type !== 'json_schema') throw wrongValue(`${path}.type`, 'text, json_object or json_schema');
  const read: MutableObject = { type: 'json-schema' };
  if (given(format.name)) read.name = optionalString(format.name, `${path}.name`);
  if (given(format.description)) read.description = optionalString(format.description, `${path}.description`);
  if (given(format.schema)) read.schema = optionalObject(format.schema, `${path}.schema`);
  if (given(format.strict)) read.strict = optionalBoolean(format.strict, `${path}.strict`);
  return read;
}

/** `text.format` of a neutral one. A name is required: one is given where the client had none. */
export function writeResponseFormat(value: ResponseFormat): JsonObject {
  if (value.type === 'text') return { type: 'text' };
  if (value.type === 'json') return { type: 'json_object' };
  const format: MutableObject = { type: 'json_schema', name: legalName(value.name ?? 'response') };
  if (value.description !== undefined) format.description = value.description;
  if (value.schema !== undefined) format.schema = value.schema;
  if (value.strict !== undefined) format.strict = value.strict;
  return format;
}

function legalName(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, 64) || 'response';
}
