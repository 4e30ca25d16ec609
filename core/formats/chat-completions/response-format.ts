import { missing, wrongValue } from '../../sdk/errors.ts';
import type { ResponseFormat } from '../../model/chat.ts';
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import { given, optionalBoolean, optionalObject, optionalString, requiredString } from '../_shared/check.ts';
import type { MutableObject } from '../_shared/settings.ts';
import type { Leftovers } from '../_shared/extra.ts';

const outerFields = new Set(['type']);
const outerSchemaFields = new Set(['type', 'json_schema']);
const schemaFields = new Set(['name', 'description', 'schema', 'strict']);

/** `response_format` in neutral words. Throws 400 with the path. */
export function readResponseFormat(value: JsonValue, path: string): MutableObject {
  const object = optionalObject(value, path) ?? {};
  const type = requiredString(object.type, `${path}.type`);
  if (type === 'text') return { type };
  if (type === 'json_object') return { type: 'json' };
  if (type !== 'json_schema') throw wrongValue(`${path}.type`, 'text, json_object or json_schema');
  const schema = optionalObject(object.json_schema, `${path}.json_schema`);
  if (schema === undefined) throw missing(`${path}.json_schema`);
  const read: MutableObject = { type: 'json-schema' };
  if (given(schema.name)) read.name = optionalString(schema.name, `${path}.json_schema.name`);
  if (given(schema.description))
    read.description = optionalString(schema.description, `${path}.json_schema.description`);
  if (given(schema.schema)) read.schema = optionalObject(schema.schema, `${path}.json_schema.schema`);
  if (given(schema.strict)) read.strict = optionalBoolean(schema.strict, `${path}.json_schema.strict`);
  return read;
}

/** Keeps the unknown fields of `response_format`. */
export function keepResponseFormat(value: JsonValue | undefined, left: Leftovers): void {
  if (!isObject(value)) return;
  const hasSchema = value.type === 'json_schema' && isObject(value.json_schema);
  left.take(value, hasSchema ? outerSchemaFields : outerFields, 'response_format.');
  if (hasSchema && isObject(value.json_schema))
    left.take(value.json_schema, schemaFields, 'response_format.json_schema.');
}

/** `response_format` of a neutral one. `named`: the official API insists on a name, so one is given where the client had none. */
export function writeResponseFormat(value: ResponseFormat, named: boolean): JsonObject {
  if (value.type === 'text') return { type: 'text' };
  if (value.type === 'json') return { type: 'json_object' };
  const schema: MutableObject = {};
  if (value.name !== undefined) schema.name = named ? legalName(value.name) : value.name;
  else if (named) schema.name = 'response';
  if (value.description !== undefined) schema.description = value.description;
  if (value.schema !== undefined) schema.schema = value.schema;
  if (value.strict !== undefined) schema.strict = value.strict;
  return { type: 'json_schema', json_schema: schema };
}

function legalName(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, 64) || 'response';
}
