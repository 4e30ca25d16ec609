import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import type { MutableObject } from './settings.ts';

/** Deepest schema that is followed, and most schemas one inlining may make: `$ref` can multiply a small schema without end. */
const limits = { depth: 64, schemas: 5000 };

/** Most characters that the references of one request may add to its schemas. */
const mostInlined = 1024 * 1024;

/** The longest name that is told as it is in the path of a loss. */
const longestStep = 64;

/** The keywords that generateContent's Schema object knows. */
const subsetKeywords: ReadonlySet<string> = new Set([
  'type',
  'format',
  'title',
  'description',
  'nullable',
  'enum',
  'items',
  'minItems',
  'maxItems',
  'properties',
  'required',
  'propertyOrdering',
  'minProperties',
  'maxProperties',
  'minimum',
  'maximum',
  'minLength',
  'maxLength',
  'pattern',
  'anyOf',
  'default',
  'example',
]);

/** Keywords that are taken up into others, or only name the schema: leaving them out changes nothing. */
const absorbed: ReadonlySet<string> = new Set([
  '$defs',
  'definitions',
  '$schema',
  '$id',
  '$anchor',
  '$comment',
  'examples',
]);

/** Formats that generateContent takes, by type; other words are refused there. */
const subsetFormats: Readonly<Record<string, readonly string[]>> = {
  string: ['enum', 'date-time'],
  number: ['float', 'double'],
  integer: ['int32', 'int64'],
};

/** How a schema is cut down to the subset. */
export interface SubsetOptions {
  /** Called with the path of every keyword that was left out: `properties.when.format`. */
  readonly drop: (path: string) => void;
  /** How type names are written. Default upper case. */
  readonly types?: 'upper' | 'lower';
  /** What references have added so far: one for all schemas of a request. Those that would add too much are dropped. */
  readonly inlined?: Inlined;
}

/** Characters that references have added to schemas. */
export interface Inlined {
  characters: number;
}

/** True for an object schema that names no property: generateContent refuses it, so that no schema at all is sent. */
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

/** True for a number, a word or a boolean. */
function isPlain(value: JsonValue | undefined): boolean {
  return value !== undefined && value !== null && typeof value !== 'object';
}

/**
 * A JSON Schema in generateContent's Schema subset: references inlined, `oneOf` → `anyOf`, `const` → `enum`, `null` types → `nullable`,
 * everything else that the subset lacks left out and reported. Undefined for an object schema with no properties.
 */
export function toSchemaSubset(schema: JsonObject, options: SubsetOptions): JsonObject | undefined {
  const converted = new SubsetWriter(schema, options).write(schema, '', []);
  return isEmptyObject(converted) ? undefined : converted;
}

class SubsetWriter {
  readonly #root: JsonObject;
  readonly #drop: (path: string) => void;
  readonly #upper: boolean;
  readonly #inlined: Inlined;
  readonly #sizes = new Map<JsonObject, number>();
  #schemas = 0;

  constructor(root: JsonObject, options: SubsetOptions) {
    this.#root = root;
    this.#drop = options.drop;
    this.#upper = options.types !== 'lower';
    this.#inlined = options.inlined ?? { characters: 0 };
  }

  /** `inside` holds the references being followed, innermost last: one that comes again is a cycle. */
  write(schema: JsonObject, path: string, inside: readonly string[]): JsonObject {
    this.#schemas += 1;
    if (this.#schemas > limits.schemas || depthOf(path) > limits.depth) {
      this.#drop(path);
      return { type: this.#type('object') };
    }
    if (typeof schema.$ref === 'string') return this.#follow(schema, schema.$ref, path, inside);
    if (Array.isArray(schema.allOf)) return this.write(this.#merge(schema, path, inside), path, inside);
    const written: MutableObject = {};
    for (const key of Object.keys(schema)) this.#keyword(written, schema, key, path, inside);
    this.#finish(written, schema, path);
    return written;
  }

  #follow(schema: JsonObject, reference: string, path: string, inside: readonly string[]): JsonObject {
    const found = this.#found(reference, inside);
    const { $ref: _, ...beside } = schema;
    if (found === undefined) {
      this.#drop(join(path, '$ref'));
      return { type: this.#type('object'), ...this.write(beside, path, inside) };
    }
    return this.write({ ...found, ...beside }, path, [...inside, reference]);
  }

  /** What a reference means; undefined where it leads nowhere or back to itself, or would add too much. */
  #found(reference: string, inside: readonly string[]): JsonObject | undefined {
    const found = inside.includes(reference) ? undefined : resolvePointer(this.#root, reference);
    if (found === undefined) return undefined;
    let size = this.#sizes.get(found);
    if (size === undefined) this.#sizes.set(found, (size = JSON.stringify(found).length));
    if (this.#inlined.characters + size > mostInlined) return undefined;
    this.#inlined.characters += size;
    return found;
  }

  /** `allOf` as one schema: properties and required names are united, the first word on anything else holds. */
  #merge(schema: JsonObject, path: string, inside: readonly string[]): JsonObject {
    const { allOf, ...own } = schema;
    const merged: MutableObject = { ...own };
    const properties: MutableObject = isObject(own.properties) ? { ...own.properties } : {};
    const required = new Set<JsonValue>();
    /** Members that stand for all, as text. */
    const texts = new Map<string, string>();
    for (const [index, raw] of (allOf as readonly JsonValue[]).entries()) {
      if (!isObject(raw)) continue;
      const part = this.#resolved(raw, inside);
      for (const [key, value] of Object.entries(part)) {
        const before = merged[key];
        if (key === 'properties' && isObject(value) && (before === undefined || isObject(before))) {
          for (const name in value)
            if (name !== '__proto__' && !Object.hasOwn(properties, name)) properties[name] = value[name];
          merged[key] = properties;
        } else if (
          key === 'required' &&
          Array.isArray(value) &&
          (before === undefined || Array.isArray(before))
        ) {
          if (required.size === 0 && Array.isArray(before)) addAll(required, before);
          addAll(required, value);
          merged[key] ??= [];
        } else if (before === undefined) merged[key] = value;
        else if (before !== value) {
          let text = texts.get(key);
          if (text === undefined) texts.set(key, (text = JSON.stringify(before)));
          if (text !== JSON.stringify(value)) this.#drop(join(path, `allOf[${index}].${key}`));
        }
      }
    }
    if (required.size > 0) merged.required = [...required];
    return merged;
  }

  /** The schema that a reference inside `allOf` means; nested `allOf` is merged when the whole is written. */
  #resolved(schema: JsonObject, inside: readonly string[]): JsonObject {
    return typeof schema.$ref === 'string' ? (this.#found(schema.$ref, inside) ?? schema) : schema;
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
    if (kinds.length === 1 && first !== undefined) written.type = this.#type(first);
    else if (kinds.length > 1 && written.anyOf === undefined)
      written.anyOf = kinds.map((name) => ({ type: this.#type(name) }));
    else if (kinds.length > 1) this.#drop(join(path, 'type'));
  }

  #values(written: MutableObject, values: readonly JsonValue[], path: string): void {
    const words = values.filter((value) => typeof value === 'string');
    if (values.includes(null)) written.nullable = true;
    if (words.length + (values.includes(null) ? 1 : 0) !== values.length) return this.#drop(path);
    if (words.length === 0) return;
    written.enum = words;
    written.type ??= this.#type('string');
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

  /** What the subset insists on: arrays say what they hold, and only named properties are required. */
  #finish(written: MutableObject, schema: JsonObject, path: string): void {
    if (isArrayType(written.type) && written.items === undefined)
      written.items = { type: this.#type('string') };
    if (Array.isArray(schema.examples) && written.example === undefined && schema.examples.length > 0) {
      written.example = schema.examples[0] as JsonValue;
    }
    if (written.properties !== undefined) written.type ??= this.#type('object');
    if (!Array.isArray(written.required)) return;
    const properties = isObject(written.properties) ? written.properties : {};
    const required = written.required.filter(
      (name) => typeof name === 'string' && Object.hasOwn(properties, name),
    );
    if (required.length < written.required.length) this.#drop(join(path, 'required'));
    if (required.length > 0) written.required = required;
    else delete written.required;
  }

  #type(name: string): string {
    return this.#upper ? name.toUpperCase() : name.toLowerCase();
  }
}

function isArrayType(type: JsonValue | undefined): boolean {
  return typeof type === 'string' && type.toLowerCase() === 'array';
}

function join(path: string, key: string): string {
  const step = key.length > longestStep ? `${key.slice(0, longestStep)}…` : key;
  return path === '' ? step : `${path}.${step}`;
}

function addAll(set: Set<JsonValue>, values: readonly JsonValue[]): void {
  for (const value of values) set.add(value);
}

function depthOf(path: string): number {
  let depth = 0;
  for (let index = path.indexOf('.'); index >= 0; index = path.indexOf('.', index + 1)) depth += 1;
  return depth;
}

/** What a local reference (`#/$defs/address`) points at; undefined for one that leads nowhere or out of the document. */
function resolvePointer(root: JsonObject, reference: string): JsonObject | undefined {
  if (reference === '#') return root;
  if (!reference.startsWith('#/')) return undefined;
  let value: JsonValue | undefined = root;
  for (const step of reference.slice(2).split('/')) {
    if (!isObject(value)) return undefined;
    const name = decodeStep(step);
    value = Object.hasOwn(value, name) ? value[name] : undefined;
  }
  return isObject(value) ? value : undefined;
}

function decodeStep(step: string): string {
  const plain = step.replaceAll('~1', '/').replaceAll('~0', '~');
  try {
    return decodeURIComponent(plain);
  } catch {
    return plain;
  }
}

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
const counts: ReadonlySet<string> = new Set([
  'minItems',
  'maxItems',
  'minProperties',
  'maxProperties',
  'minLength',
  'maxLength',
]);

/** A schema of generateContent's subset as plain JSON Schema, which every other format takes. */
export function fromSchemaSubset(schema: JsonObject, depth = 0): JsonObject {
  if (depth > limits.depth) return {};
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
  if (nullable) admitNull(written);
  return written;
}

function fromBranch(branch: JsonValue, depth: number): JsonValue {
  return isObject(branch) ? fromSchemaSubset(branch, depth + 1) : branch;
}

/** Properties in the order that `propertyOrdering` asks for: JSON Schema has no other way to say it. */
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

function admitNull(written: MutableObject): void {
  if (Array.isArray(written.enum)) written.enum = [...written.enum, null];
  if (typeof written.type === 'string') written.type = [written.type, 'null'];
  else if (Array.isArray(written.anyOf)) written.anyOf = [...written.anyOf, { type: 'null' }];
}
