import type { JsonObject, JsonValue } from '../../../model/json.ts';

/** Returns a schema that takes `null` besides. Returns the schema itself where it does already. */
export function admitNull(schema: JsonObject): JsonObject {
  const { type, anyOf } = schema;
  const values = Array.isArray(schema.enum) ? (schema.enum as readonly JsonValue[]) : undefined;
  const withNull = values === undefined || values.includes(null) ? {} : { enum: [...values, null] };
  if (type === 'null' && values === undefined) return schema;
  if (schema.$ref === undefined && schema.const === undefined && schema.oneOf === undefined) {
    if (anyOf === undefined && typeof type === 'string')
      return { ...schema, type: [type, 'null'], ...withNull };
    if (anyOf === undefined && Array.isArray(type))
      return {
        ...schema,
        type: type.includes('null') ? type : [...(type as readonly JsonValue[]), 'null'],
        ...withNull,
      };
    if (anyOf === undefined && values !== undefined) return { ...schema, ...withNull };
    if (Array.isArray(anyOf) && type === undefined && values === undefined)
      return anyOf.some(isNull)
        ? schema
        : { ...schema, anyOf: [...(anyOf as readonly JsonValue[]), nothing] };
    if (anyOf === undefined && type === undefined) return schema;
  }
  return { anyOf: [schema, nothing] };
}

const nothing: JsonObject = { type: 'null' };

function isNull(branch: JsonValue): boolean {
  return typeof branch === 'object' && branch !== null && 'type' in branch && branch.type === 'null';
}
