import { isJson, objects, valueAt, type Check, type Json } from './checks.ts';

/** Parts of JSON Schema that a provider accepts. */
export interface Taken {
  /** Every object must say `additionalProperties: false`. */
  readonly closed?: true;
  /** Every property must be required. */
  readonly all?: true;
  /** An object that names properties must require one. */
  readonly one?: true;
  /** Parts of patterns that are refused. */
  readonly patterns?: readonly string[];
  /** Keywords that are refused. */
  readonly refuses?: readonly string[];
  /** The only keywords that are known. */
  readonly only?: readonly string[];
  /** Formats of strings that are known. */
  readonly formats?: readonly string[];
}

const maps = ['properties', '$defs', 'definitions', 'patternProperties'];
const lists = ['anyOf', 'oneOf', 'allOf', 'prefixItems'];

/** Returns the first place of a schema that is not taken. */
function wrongIn(schema: unknown, taken: Taken, path: string): string | undefined {
  if (!isJson(schema)) return undefined;
  const properties = isJson(schema['properties']) ? Object.keys(schema['properties']) : [];
  const isObject = [schema['type']].flat().includes('object') || properties.length > 0;
  if (taken.closed === true && isObject && schema['additionalProperties'] !== false)
    return `${path}.additionalProperties`;
  const required: unknown = schema['required'];
  if (taken.all === true && properties.some((name) => !Array.isArray(required) || !required.includes(name)))
    return `${path}.required`;
  if (taken.one === true && properties.length > 0 && [required ?? []].flat().length === 0)
    return `${path}.required`;
  if (taken.patterns?.some((part) => String(schema['pattern'] ?? '').includes(part)) === true)
    return `${path}.pattern`;
  for (const key of Object.keys(schema))
    if (taken.refuses?.includes(key) === true || taken.only?.includes(key) === false) return `${path}.${key}`;
  const { format, minItems } = schema;
  if (taken.formats !== undefined && typeof format === 'string' && !taken.formats.includes(format))
    return `${path}.format`;
  if (taken.closed === true && taken.refuses?.includes('maxItems') === true && Number(minItems ?? 0) > 1)
    return `${path}.minItems`;
  for (const map of maps)
    if (isJson(schema[map]))
      for (const [name, one] of Object.entries(schema[map])) {
        const wrong = wrongIn(one, taken, `${path}.${map}.${name}`);
        if (wrong !== undefined) return wrong;
      }
  for (const [index, one] of lists.flatMap((list) => objects(schema[list])).entries()) {
    const wrong = wrongIn(one, taken, `${path}[${index}]`);
    if (wrong !== undefined) return wrong;
  }
  return wrongIn(schema['items'], taken, `${path}.items`);
}

/** The schema at a path, which may be JSON in a string, is not taken. `when`: a condition on the object that holds it. */
export const schemaAt =
  (path: string, taken: Taken): Check =>
  ({ body }) => {
    const value = valueAt(body, path);
    return wrongIn(typeof value === 'string' ? (JSON.parse(value) as Json) : value, taken, path);
  };

/** The schema of an answer that must be kept strictly, in chat completions (`response_format`) or Responses (`text.format`). */
export const strictSchema =
  (taken: Taken): Check =>
  ({ body }) => {
    const chat = valueAt(body, 'response_format.json_schema');
    const responses = valueAt(body, 'text.format');
    const format = isJson(chat) ? chat : responses;
    return isJson(format) && format['strict'] === true
      ? wrongIn(format['schema'], taken, 'schema')
      : undefined;
  };

/** The schema of a tool that must be kept strictly; that of every tool where it need not be said. */
export const toolSchema =
  (taken: Taken, always = false): Check =>
  ({ body }) => {
    for (const tool of objects(body['tools'])) {
      const own = isJson(tool['function']) ? tool['function'] : tool;
      const schema = own['parameters'] ?? own['input_schema'];
      const wrong =
        always || own['strict'] === true ? wrongIn(schema, taken, `tools.${String(own['name'])}`) : undefined;
      if (wrong !== undefined) return wrong;
    }
    return undefined;
  };

/** The schemas of functions in generateContent. */
export const functionSchema =
  (taken: Taken): Check =>
  ({ body }) => {
    for (const { functionDeclarations: declared } of objects(body['tools']))
      for (const { name, parameters } of objects(declared)) {
        const wrong = wrongIn(parameters, taken, `functionDeclarations.${String(name)}`);
        if (wrong !== undefined) return wrong;
      }
    return undefined;
  };

/** https://platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations; @anthropic-ai/sdk 1.14.0, src/lib/transform-json-schema.ts; @ai-sdk/anthropic 3.0.140, src/sanitize-json-schema.ts */
export const claudeTakes: Taken = {
  closed: true,
  refuses: [
    'minimum',
    'maximum',
    'exclusiveMinimum',
    'exclusiveMaximum',
    'multipleOf',
    'minLength',
    'maxLength',
    'maxItems',
    'uniqueItems',
    'minProperties',
    'maxProperties',
    'not',
    'if',
    'patternProperties',
  ],
  formats: ['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'uri', 'ipv4', 'ipv6', 'uuid'],
};

/** https://developers.openai.com/api/docs/guides/structured-outputs#supported-schemas */
export const openaiTakes: Taken = {
  closed: true,
  all: true,
  refuses: [
    'allOf',
    'not',
    'dependentRequired',
    'dependentSchemas',
    'if',
    'then',
    'else',
    'patternProperties',
    'oneOf',
  ],
};

/** https://docs.cohere.com/v2/docs/structured-outputs#unsupported-schema-features; github:cohere-ai/cohere-developer-experience */
export const cohereTakes: Taken = {
  one: true,
  refuses: [
    'allOf',
    'oneOf',
    'not',
    'minimum',
    'maximum',
    'minItems',
    'maxItems',
    'minLength',
    'maxLength',
    'uniqueItems',
  ],
  formats: ['date-time', 'uuid', 'date', 'time'],
  patterns: ['^', '$', '?=', '?!'],
};

/** https://ai.google.dev/api/caching#Schema; @google/genai 2.x, `interface Schema` */
export const geminiTakes: Taken = {
  only: [
    'type',
    'format',
    'title',
    'description',
    'nullable',
    'enum',
    'maxItems',
    'minItems',
    'properties',
    'required',
    'minProperties',
    'maxProperties',
    'minLength',
    'maxLength',
    'pattern',
    'example',
    'anyOf',
    'propertyOrdering',
    'default',
    'items',
    'minimum',
    'maximum',
  ],
};
