/** Converts JSON Schema to the OpenAPI subset that generateContent's `Schema` accepts, and reports the keywords that it drops. */
import { isObject, type JsonObject, type JsonValue, type MutableObject } from '../../../model/json.ts';
import { setOf } from '../fields.ts';
import { mergeAll } from './merge.ts';
import { join } from './path.ts';
import { References, type Inlined } from './references.ts';
import { lookupTable } from '../../../model/lookup-table.ts';

/** Deepest schema that is followed, and most schemas one inlining may make: `$ref` can multiply a small schema without end. */
const limits = { depth: 64, schemas: 5000 };

/** The keywords that generateContent's Schema object knows. */
const subsetKeywords = setOf(`
  type format title description nullable enum items minItems maxItems properties required propertyOrdering minProperties
  maxProperties minimum maximum minLength maxLength pattern anyOf default example
`);

/** Keywords that are taken up into others, or only name the schema: leaving them out changes nothing. */
const absorbed = setOf('$defs definitions $schema $id $anchor $comment examples');

/** Formats that generateContent takes, by type; other words are refused there. */
const subsetFormats = lookupTable<readonly string[]>({
  string: ['enum', 'date-time'],
  number: ['float', 'double'],
  integer: ['int32', 'int64'],
});

/** Options for converting a schema. */
export interface SubsetOptions {
  /** Called with the path of every keyword that was left out: `properties.when.format`. */
  readonly drop: (path: string) => void;
  /** Number of characters that inlined references have added to all schemas of the request. References beyond the limit are dropped. */
  readonly inlined?: Inlined;
}

/** Returns true for an object schema that names no property: generateContent refuses it, so that no schema at all is sent. */
export function isEmptyObject(schema: JsonObject): boolean {
  const type = typeof schema.type === 'string' ? schema.type.toLowerCase() : undefined;
  if (type !== 'object' && !(type === undefined && Object.keys(schema).length === 0)) return false;
  // Some languages write an empty object as an empty list; anything else in this place is the provider's to judge.
  if (Object.keys(schema.properties ?? {}).length > 0 || isPlain(schema.properties)) return false;
  return (
    !['anyOf', 'oneOf', 'allOf', '$ref', 'patternProperties'].some((key) => schema[key] !== undefined) &&
    !isObject(schema.additionalProperties)
  );
}

/** Returns true for a number, a word or a boolean. */
function isPlain(value: JsonValue | undefined): boolean {
  return value !== undefined && value !== null && typeof value !== 'object';
}

/**
 * Returns a JSON Schema in generateContent's Schema subset: references inlined, `oneOf` → `anyOf`, `const` → `enum`, `null` types → `nullable`,
 * everything else that the subset lacks left out and reported. Undefined for an object schema with no properties.
 */
export function toSchemaSubset(schema: JsonObject, options: SubsetOptions): JsonObject | undefined {
  const converted = new SubsetWriter(schema, options).write(schema, '', []);
  return isEmptyObject(converted) ? undefined : converted;
}

class SubsetWriter {
  readonly #references: References;
  readonly #drop: (path: string) => void;
  #schemas = 0;

  constructor(root: JsonObject, options: SubsetOptions) {
    this.#references = new References(root, options.inlined ?? { characters: 0 });
    this.#drop = options.drop;
  }

  /** `inside` holds the references being followed, innermost last: one that comes again is a cycle. */
  write(schema: JsonObject, path: string, inside: readonly string[]): JsonObject {
    this.#schemas += 1;
    if (this.#schemas > limits.schemas || depthOf(path) > limits.depth) {
      this.#drop(path);
      return { type: 'OBJECT' };
    }
    if (typeof schema.$ref === 'string') return this.#follow(schema, schema.$ref, path, inside);
    if (Array.isArray(schema.allOf)) {
      // Nested `allOf` is merged when the whole is written.
      const resolved = (part: JsonObject): JsonObject =>
        typeof part.$ref === 'string' ? (this.#references.find(part.$ref, inside) ?? part) : part;
      const merged = mergeAll(schema, resolved, (at) => this.#drop(join(path, `allOf${at}`)));
      return this.write(merged, path, inside);
    }
    const written: MutableObject = {};
    for (const key of Object.keys(schema)) this.#keyword(written, schema, key, path, inside);
    this.#finish(written, schema, path);
    return written;
  }

  #follow(schema: JsonObject, reference: string, path: string, inside: readonly string[]): JsonObject {
    const found = this.#references.find(reference, inside);
    const { $ref: _, ...beside } = schema;
    if (found === undefined) {
      this.#drop(join(path, '$ref'));
      return { type: 'OBJECT', ...this.write(beside, path, inside) };
    }
    return this.write({ ...found, ...beside }, path, [...inside, reference]);
  }

  #keyword(
    written: MutableObject,
    schema: JsonObject,
    key: string,
    path: string,
    inside: readonly string[],
  ): void {
    const value = schema[key];
    if (value === undefined || absorbed.has(key)) return;
    switch (key) {
      case 'type':
        return this.#types(written, value, path);
      case 'const':
        return this.#values(written, [value], join(path, key));
      case 'enum':
        return Array.isArray(value)
          ? this.#values(written, value, join(path, key))
          : this.#drop(join(path, key));
      case 'anyOf':
      case 'oneOf':
        return this.#branches(written, value, join(path, key), inside);
      case 'properties':
        return this.#properties(written, value, join(path, key), inside);
      case 'items':
      case 'prefixItems':
        return this.#items(written, value, join(path, key), inside);
      case 'format':
        return this.#format(written, schema, path);
      default:
        if (subsetKeywords.has(key)) written[key] = value;
        else this.#drop(join(path, key));
    }
  }

  #types(written: MutableObject, value: JsonValue, path: string): void {
    const names = (Array.isArray(value) ? value : [value]).filter((name) => typeof name === 'string');
    const kinds = names.filter((name) => name.toLowerCase() !== 'null');
    if (kinds.length < names.length) written.nullable = true;
    const [first] = kinds;
    if (kinds.length === 1 && first !== undefined) written.type = first.toUpperCase();
    else if (kinds.length > 1 && written.anyOf === undefined)
      written.anyOf = kinds.map((name) => ({ type: name.toUpperCase() }));
    else if (kinds.length > 1) this.#drop(join(path, 'type'));
  }

  #values(written: MutableObject, values: readonly JsonValue[], path: string): void {
    const words = values.filter((value) => typeof value === 'string');
    if (values.includes(null)) written.nullable = true;
    if (words.length + (values.includes(null) ? 1 : 0) !== values.length) return this.#drop(path);
    if (words.length === 0) return;
    written.enum = words;
    written.type ??= 'STRING';
  }

  #branches(written: MutableObject, value: JsonValue, path: string, inside: readonly string[]): void {
    if (!Array.isArray(value)) return this.#drop(path);
    const branches: JsonObject[] = [];
    for (const [index, branch] of (value as readonly JsonValue[]).entries()) {
      if (!isObject(branch)) this.#drop(`${path}[${index}]`);
      else if (branch.type === 'null') written.nullable = true;
      else branches.push(this.write(branch, `${path}[${index}]`, inside));
    }
    const [only] = branches;
    if (branches.length === 1 && only !== undefined)
      for (const [key, inner] of Object.entries(only)) written[key] ??= inner;
    else if (branches.length > 1 && written.anyOf === undefined) written.anyOf = branches;
    else if (branches.length > 1) this.#drop(path);
  }

  #properties(written: MutableObject, value: JsonValue, path: string, inside: readonly string[]): void {
    if (!isObject(value)) return this.#drop(path);
    const properties: MutableObject = {};
    for (const [name, property] of Object.entries(value)) {
      if (isObject(property)) properties[name] = this.write(property, join(path, name), inside);
      else this.#drop(join(path, name));
    }
    if (Object.keys(properties).length > 0) written.properties = properties;
  }

  #items(written: MutableObject, value: JsonValue, path: string, inside: readonly string[]): void {
    if (isObject(value)) {
      written.items = this.write(value, path, inside);
      return;
    }
    this.#drop(path);
    if (!Array.isArray(value)) return;
    const branches = value
      .filter(isObject)
      .map((branch, index) => this.write(branch, `${path}[${index}]`, inside));
    const [only] = branches;
    if (only !== undefined) written.items ??= branches.length === 1 ? only : { anyOf: branches };
  }

  #format(written: MutableObject, schema: JsonObject, path: string): void {
    const type = Array.isArray(schema.type) ? schema.type.find((name) => name !== 'null') : schema.type;
    const known = typeof type === 'string' ? subsetFormats[type.toLowerCase()] : undefined;
    if (typeof schema.format === 'string' && known?.includes(schema.format)) written.format = schema.format;
    else this.#drop(join(path, 'format'));
  }

  /** Adds what the subset requires: `items` of arrays. Removes names from `required` that are no properties. */
  #finish(written: MutableObject, schema: JsonObject, path: string): void {
    if (written.type === 'ARRAY' && written.items === undefined) written.items = { type: 'STRING' };
    if (Array.isArray(schema.examples) && written.example === undefined && schema.examples.length > 0) {
      written.example = schema.examples[0] as JsonValue;
    }
    if (written.properties !== undefined) written.type ??= 'OBJECT';
    if (!Array.isArray(written.required)) return;
    const properties = isObject(written.properties) ? written.properties : {};
    const required = written.required.filter(
      (name) => typeof name === 'string' && Object.hasOwn(properties, name),
    );
    if (required.length < written.required.length) this.#drop(join(path, 'required'));
    if (required.length > 0) written.required = required;
    else delete written.required;
  }
}

function depthOf(path: string): number {
  let depth = 0;
  for (let index = path.indexOf('.'); index >= 0; index = path.indexOf('.', index + 1)) depth += 1;
  return depth;
}
