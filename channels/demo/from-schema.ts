/** Makes a value that satisfies a JSON Schema, for answers and tool calls of the demo. */
import { isObject, type JsonObject, type JsonValue } from 'sluice';
import { lookupTable } from 'sluice/channel-kit';

const deepest = 12;
const mostItems = 100;

/**
 * Returns a value that satisfies a JSON Schema, the same one every time: required properties only (all when none is required), first of each
 * choice, smallest of each range. Understands both dialects of type names (`string`, `STRING`); patterns it does not.
 */
export function fromSchema(schema: JsonValue | undefined, name = 'demo'): JsonValue {
  return isObject(schema) ? build(schema, schema, name, 0) : {};
}

function build(given: JsonObject, root: JsonObject, name: string, depth: number): JsonValue {
  if (depth > deepest) return null;
  const schema = resolve(given, root, depth);
  if (schema.const !== undefined) return schema.const;
  const [first] = list(schema.enum);
  if (first !== undefined) return first;
  if (schema.default !== undefined) return schema.default;
  const choice = firstChoice(schema);
  if (choice !== undefined) return build({ ...withoutChoices(schema), ...choice }, root, name, depth + 1);
  switch (typeOf(schema)) {
    case 'object':
      return object(schema, root, depth);
    case 'array':
      return array(schema, root, name, depth);
    case 'integer':
      return Math.ceil(number(schema));
    case 'number':
      return number(schema);
    case 'boolean':
      return true;
    case 'null':
      return null;
    default:
      return text(schema, name);
  }
}

/** Follows `$ref` within the document and merges `allOf`. */
function resolve(schema: JsonObject, root: JsonObject, depth: number): JsonObject {
  let found = schema;
  for (let step = depth; typeof found.$ref === 'string' && step <= deepest; step += 1) {
    const { $ref, ...beside } = found;
    found = { ...pointed(root, String($ref)), ...beside };
  }
  if (!Array.isArray(found.allOf)) return found;
  const { allOf, ...own } = found;
  return list(allOf)
    .filter(isObject)
    .reduce((merged, part) => both(merged, resolve(part, root, depth + 1)), own);
}

function both(one: JsonObject, other: JsonObject): JsonObject {
  const properties = { ...record(other.properties), ...record(one.properties) };
  const required = [...list(one.required), ...list(other.required)];
  return {
    ...other,
    ...one,
    ...(Object.keys(properties).length > 0 ? { properties } : {}),
    ...(required.length > 0 ? { required } : {}),
  };
}

function record(value: JsonValue | undefined): JsonObject {
  return isObject(value) ? value : {};
}

function pointed(root: JsonObject, pointer: string): JsonObject {
  let found: JsonValue | undefined = root;
  for (const step of pointer.split('/').slice(1)) {
    const key = decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~');
    found = isObject(found) ? found[key] : undefined;
  }
  return isObject(found) ? found : {};
}

function firstChoice(schema: JsonObject): JsonObject | undefined {
  const choices = [...list(schema.anyOf), ...list(schema.oneOf)].filter(isObject);
  return choices.find((choice) => typeOf(choice) !== 'null') ?? choices[0];
}

function withoutChoices({ anyOf: _any, oneOf: _one, ...rest }: JsonObject): JsonObject {
  return rest;
}

function typeOf(schema: JsonObject): string {
  const types = Array.isArray(schema.type) ? list(schema.type) : [schema.type];
  const type = types.find((one) => typeof one === 'string' && one.toLowerCase() !== 'null') ?? types[0];
  if (typeof type === 'string') return type.toLowerCase();
  if (schema.properties !== undefined) return 'object';
  return schema.items === undefined ? 'string' : 'array';
}

function object(schema: JsonObject, root: JsonObject, depth: number): JsonObject {
  const properties = record(schema.properties);
  const required = list(schema.required).filter((name) => typeof name === 'string');
  const made: { [name: string]: JsonValue } = {};
  for (const name of required.length > 0 ? required : Object.keys(properties)) {
    made[name] = build(record(properties[name]), root, name, depth + 1);
  }
  return made;
}

function array(schema: JsonObject, root: JsonObject, name: string, depth: number): readonly JsonValue[] {
  const first = list(schema.prefixItems);
  const items = record(schema.items);
  const least = typeof schema.minItems === 'number' ? schema.minItems : Math.max(1, first.length);
  const length = Math.min(least, mostItems);
  return Array.from({ length }, (_, index) => {
    const item = first[index];
    return build(isObject(item) ? item : items, root, name, depth + 1);
  });
}

function number(schema: JsonObject): number {
  const above = typeof schema.exclusiveMinimum === 'number' ? schema.exclusiveMinimum + 1 : undefined;
  const least = typeof schema.minimum === 'number' ? schema.minimum : above;
  const below = typeof schema.exclusiveMaximum === 'number' ? schema.exclusiveMaximum - 1 : undefined;
  const most = typeof schema.maximum === 'number' ? schema.maximum : below;
  const step = typeof schema.multipleOf === 'number' && schema.multipleOf > 0 ? schema.multipleOf : undefined;
  const start = Math.min(least ?? 1, typeof most === 'number' ? most : Infinity);
  return step === undefined ? start : Math.ceil(start / step) * step;
}

const formats = lookupTable<string>({
  date: '2025-01-01',
  'date-time': '2025-01-01T00:00:00Z',
  time: '00:00:00Z',
  duration: 'P1D',
  email: 'demo@example.com',
  hostname: 'example.com',
  ipv4: '192.0.2.1',
  ipv6: '2001:db8::1',
  uri: 'https://example.com/',
  url: 'https://example.com/',
  uuid: '00000000-0000-4000-8000-000000000000',
});

function text(schema: JsonObject, name: string): string {
  const made = formats[String(schema.format)] ?? (name === 'demo' ? 'demo' : `demo ${name}`);
  const least = typeof schema.minLength === 'number' ? Math.min(schema.minLength, 10_000) : 0;
  const most = typeof schema.maxLength === 'number' ? schema.maxLength : Infinity;
  return made.padEnd(least, '.').slice(0, Math.max(most, 0));
}

function list(value: JsonValue | undefined): readonly JsonValue[] {
  return Array.isArray(value) ? value : [];
}
