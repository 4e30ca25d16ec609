/**
 * Adapts a JSON Schema to the subset that a model accepts for structured output and strict tools: closes objects, requires all properties,
 * moves refused keywords to descriptions.
 */
import { isObject, type JsonObject, type JsonValue, type MutableObject } from '../../../model/json.ts';
import type { SchemaSubset } from '../../../model/traits.ts';
import { setOf } from '../fields.ts';
import { mergeAll } from './merge.ts';
import { admitNull } from './nullable.ts';
import { join } from './path.ts';
import { References, type Inlined } from './references.ts';

/** Deepest schema that is followed. */
const deepest = 64;

/** Keywords whose members are schemas by name. */
const maps = setOf('properties patternProperties $defs definitions');

/** Keywords that are lists of schemas. */
const lists = setOf('anyOf oneOf allOf prefixItems');

/** Options for adapting a schema. */
export interface AdaptOptions {
  /** Called with the path of every keyword whose meaning changes: `properties.when.additionalProperties`. */
  readonly drop: (path: string) => void;
  /** Number of characters that inlined references have added so far: one counter for all schemas of a request. */
  readonly inlined?: Inlined;
}

/**
 * Adapts a JSON Schema to the part that a model takes. Objects are closed, optional properties become nullable and required, and constraints
 * that the model refuses move to the `description`, as the SDK of Anthropic writes them. Returns the schema itself where nothing changes.
 */
export function adaptSchema(
  schema: JsonObject,
  subset: SchemaSubset | undefined,
  options: AdaptOptions,
): JsonObject {
  if (subset === undefined) return schema;
  const adapter = new Adapter(schema, subset, options);
  const adapted = adapter.adapt(schema, '', 0);
  return adapter.hasChanged ? adapted : schema;
}

class Adapter {
  readonly #subset: SchemaSubset;
  readonly #refused: ReadonlySet<string>;
  readonly #references: References;
  readonly #drop: (path: string) => void;
  hasChanged = false;

  constructor(root: JsonObject, subset: SchemaSubset, { drop, inlined }: AdaptOptions) {
    this.#subset = subset;
    this.#refused = new Set(subset.refuses);
    this.#references = new References(root, inlined ?? { characters: 0 });
    this.#drop = drop;
  }

  adapt(schema: JsonObject, path: string, depth: number): JsonObject {
    if (depth > deepest) {
      this.#dropMember(path);
      return {};
    }
    if (Array.isArray(schema.allOf) && this.#merges())
      return this.adapt(this.#merge(schema, path), path, depth + 1);
    const written: MutableObject = {};
    const moved: string[] = [];
    for (const [key, value] of Object.entries(schema)) {
      if (value === undefined) continue;
      if (key === 'oneOf' && this.#refused.has(key) && Array.isArray(value)) {
        this.hasChanged = true;
        if (schema.anyOf === undefined) written.anyOf = this.#inside('anyOf', value, join(path, key), depth);
        else this.#drop(join(path, key));
      } else if (this.#refuses(key, value)) moved.push(`${key}: ${JSON.stringify(value)}`);
      else if (key === '__proto__') this.#dropMember(join(path, key));
      else written[key] = this.#inside(key, value, join(path, key), depth);
    }
    if (moved.length > 0) {
      this.hasChanged = true;
      const before = typeof written.description === 'string' ? `${written.description}\n\n` : '';
      written.description = `${before}{${moved.join(', ')}}`;
    }
    if (holdsProperties(written)) this.#finishObject(written, path);
    return written;
  }

  /** Returns true if the schemas of an `allOf` are merged, because closed objects in it would exclude each other's properties. */
  #merges(): boolean {
    return this.#subset.closesObjects === true || this.#refused.has('allOf');
  }

  #merge(schema: JsonObject, path: string): JsonObject {
    this.hasChanged = true;
    const resolved = (part: JsonObject): JsonObject => {
      if (typeof part.$ref !== 'string') return part;
      const found = this.#references.find(part.$ref, []);
      if (found === undefined) return part;
      const { $ref: _, ...beside } = part;
      return { ...found, ...beside };
    };
    return mergeAll(schema, resolved, (at) => this.#drop(join(path, `allOf${at}`)));
  }

  #refuses(key: string, value: JsonValue): boolean {
    const { formats, highestMinItems, refusedInPatterns } = this.#subset;
    if (key === 'format') return formats !== undefined && !formats.some((format) => format === value);
    if (key === 'minItems') return highestMinItems !== undefined && !(Number(value) <= highestMinItems);
    if (key === 'pattern' && refusedInPatterns?.some((part) => String(value).includes(part)) === true)
      return true;
    return this.#refused.has(key);
  }

  /** Adapts the schemas that a keyword holds. */
  #inside(key: string, value: JsonValue, path: string, depth: number): JsonValue {
    if (maps.has(key) && isObject(value)) {
      const adapted: MutableObject = {};
      for (const [name, one] of Object.entries(value)) {
        if (name === '__proto__') this.#dropMember(join(path, name));
        else adapted[name] = isObject(one) ? this.adapt(one, join(path, name), depth + 1) : (one ?? null);
      }
      return adapted;
    }
    if (lists.has(key) && Array.isArray(value))
      return (value as readonly JsonValue[]).map((one, index) =>
        isObject(one) ? this.adapt(one, `${path}[${index}]`, depth + 1) : one,
      );
    if (key === 'items' && isObject(value)) return this.adapt(value, path, depth + 1);
    return value;
  }

  #finishObject(written: MutableObject, path: string): void {
    const { closesObjects, requiresAll, requiresOne } = this.#subset;
    if (requiresOne === true) this.#requireOne(written, path);
    if (closesObjects === true && written.additionalProperties !== false) {
      this.hasChanged = true;
      if (written.additionalProperties !== undefined) this.#drop(join(path, 'additionalProperties'));
      written.additionalProperties = false;
    }
    if (requiresAll !== true || !isObject(written.properties)) return;
    const properties: MutableObject = { ...written.properties };
    const required = new Set<JsonValue>(Array.isArray(written.required) ? written.required : []);
    const optional = Object.keys(properties).filter((name) => !required.has(name));
    if (optional.length === 0) return;
    this.#dropMember(join(path, 'required'));
    for (const name of optional) {
      const property = properties[name];
      if (isObject(property)) properties[name] = admitNull(property);
    }
    written.properties = properties;
    written.required = [...required, ...optional];
  }

  #requireOne(written: MutableObject, path: string): void {
    if (Array.isArray(written.required) && written.required.length > 0) return;
    const [first] = isObject(written.properties) ? Object.keys(written.properties) : [];
    if (first === undefined) return;
    this.#dropMember(join(path, 'required'));
    written.required = [first];
  }

  /** Reports what is left out, and that the schema is another one. */
  #dropMember(path: string): void {
    this.hasChanged = true;
    this.#drop(path);
  }
}

function holdsProperties({ type, properties }: JsonObject): boolean {
  return type === 'object' || (Array.isArray(type) && type.includes('object')) || isObject(properties);
}
