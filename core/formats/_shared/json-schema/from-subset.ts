import { isObject, type JsonObject, type JsonValue, type MutableObject } from '../../../model/json.ts';
import { setOf } from '../fields.ts';
import { admitNull } from './nullable.ts';

/** Deepest schema that is followed. */
const deepest = 64;

const camel: Readonly<Record<string, string>> = {
  any_of: 'anyOf',
  min_items: 'minItems',
  max_items: 'maxItems',
  min_properties: 'minProperties',
  max_properties: 'maxProperties',
  min_length: 'minLength',
  max_length: 'maxLength',
  property_ordering: 'propertyOrdering',
};

/** Counts that proto JSON may write as strings. */
const counts = setOf('minItems maxItems minProperties maxProperties minLength maxLength');

/** Returns a schema of generateContent's subset as plain JSON Schema, which every other format takes. */
export function fromSchemaSubset(schema: JsonObject, depth = 0): JsonObject {
  if (depth > deepest) return {};
  const written: MutableObject = {};
  let nullable = false;
  for (const [spelled, value] of Object.entries(schema)) {
    const key = Object.hasOwn(camel, spelled) ? (camel[spelled] ?? spelled) : spelled;
    if (value === undefined || value === null || key === 'propertyOrdering') continue;
    if (key === 'nullable') nullable = value === true;
    else if (key === 'example') written.examples = [value];
    else if (key === 'type') written.type = typeof value === 'string' ? value.toLowerCase() : value;
    else if (key === 'items' && isObject(value)) written.items = fromSchemaSubset(value, depth + 1);
    else if (key === 'anyOf' && Array.isArray(value))
      written.anyOf = value.map((branch) => fromBranch(branch, depth));
    else if (key === 'properties' && isObject(value))
      written.properties = fromProperties(value, schema, depth);
    else if (counts.has(key) && typeof value === 'string' && value !== '') written[key] = Number(value);
    else if (key !== 'format' || value !== 'enum') written[key] = value;
  }
  if (written.type === 'type_unspecified') delete written.type;
  return nullable ? admitNull(written) : written;
}

function fromBranch(branch: JsonValue, depth: number): JsonValue {
  return isObject(branch) ? fromSchemaSubset(branch, depth + 1) : branch;
}

/** Returns the properties in the order of `propertyOrdering`, because JSON Schema has no other way to express an order. */
function fromProperties(properties: JsonObject, schema: JsonObject, depth: number): JsonObject {
  const ordering = schema.propertyOrdering ?? schema.property_ordering;
  const first = Array.isArray(ordering)
    ? ordering.filter((name) => typeof name === 'string' && Object.hasOwn(properties, name))
    : [];
  const written: MutableObject = {};
  for (const name of [...first, ...Object.keys(properties)]) {
    const property = properties[name];
    if (property !== undefined) written[name] = fromBranch(property, depth);
  }
  return written;
}
