/** Applies the operations of a PATCH to a resource (RFC 7644, section 3.5.2), also in the forms that Entra ID and Okta send. */
import type { JsonObject, JsonValue } from 'sluice';
import { findAttribute, withoutUrn, type Attribute } from './attributes.ts';
import { ScimError } from './errors.ts';
import { booleanOf, matches, parseFilter, type Filter } from './filter.ts';

/** Maximum number of operations in a request, and of elements that its filters examine together. */
const limits = { operations: 1_000, looks: 200_000 };

type Op = 'add' | 'replace' | 'remove';

/** A resource on its way. Elements of multi-valued attributes are by their `value`, so that each is found at once. */
type Draft = Map<string, JsonValue | Map<string, JsonObject>>;

/** Returns the resource as the operations leave it. Attributes that nobody knows are passed over, because directories send many. */
export function patched(resource: JsonObject, body: JsonValue, attributes: readonly Attribute[]): JsonObject {
  const operations = operationsOf(body);
  const draft = draftOf(resource, attributes);
  const patcher = new Patcher(draft, attributes);
  for (const operation of operations) patcher.apply(operation);
  return Object.fromEntries(
    [...draft].map(([name, value]) => [name, value instanceof Map ? [...value.values()] : value]),
  );
}

interface Operation {
  readonly op: Op;
  readonly path: string | undefined;
  readonly value: JsonValue | undefined;
}

function operationsOf(body: JsonValue): Operation[] {
  const listed = isObject(body) ? memberOf(body, 'operations') : undefined;
  if (!Array.isArray(listed) || listed.length === 0)
    throw new ScimError(400, 'Operations must be a list that is not empty.', 'invalidSyntax');
  if (listed.length > limits.operations)
    throw new ScimError(400, `A PATCH has at most ${limits.operations} operations.`, 'tooMany');
  return (listed as readonly JsonValue[]).map((one) => {
    const given = isObject(one) ? memberOf(one, 'op') : undefined;
    const op = typeof given === 'string' ? given.toLowerCase() : '';
    if (!isObject(one) || (op !== 'add' && op !== 'replace' && op !== 'remove'))
      throw new ScimError(400, 'op must be add, replace or remove.', 'invalidSyntax');
    const path = memberOf(one, 'path');
    if (path !== undefined && path !== null && typeof path !== 'string')
      throw new ScimError(400, 'path must be a text.', 'invalidPath');
    return { op, path: path === '' || path === null ? undefined : path, value: memberOf(one, 'value') };
  });
}

/** `attribute`, `attribute.sub`, `attribute[filter]` or `attribute[filter].sub`. */
interface Path {
  readonly name: string;
  readonly filter: Filter | undefined;
  readonly sub: string | undefined;
}

/** Reads a path. Undefined for an attribute of a schema that is not ours. */
function parsePath(text: string): Path | undefined {
  if (text.length > 1_000) throw new ScimError(400, 'A path has at most 1000 characters.', 'invalidPath');
  const own = withoutUrn(text);
  if (own === undefined) return undefined;
  const [whole, name, filter, sub] =
    /^([A-Za-z$][\w$-]*)(?:\[(.*)\])?(?:\.([A-Za-z$][\w$-]*))?$/s.exec(own) ?? [];
  if (whole === undefined || name === undefined)
    throw new ScimError(400, `"${text.slice(0, 100)}" is not a valid path.`, 'invalidPath');
  return { name, filter: filter === undefined ? undefined : parseFilter(filter), sub };
}

class Patcher {
  readonly #draft: Draft;
  readonly #attributes: readonly Attribute[];
  #looks = 0;

  constructor(draft: Draft, attributes: readonly Attribute[]) {
    this.#draft = draft;
    this.#attributes = attributes;
  }

  apply({ op, path, value }: Operation): void {
    if (path !== undefined) return this.#at(op, path, value, true);
    if (op === 'remove') throw new ScimError(400, 'A remove needs a path.', 'noTarget');
    if (!isObject(value))
      throw new ScimError(400, 'Without a path the value must be an object.', 'invalidValue');
    // Names of members may be paths: Entra ID sends `"name.givenName"` and `"emails[type eq \"work\"].value"` so.
    for (const [name, inner] of Object.entries(value)) this.#at(op, name, inner, false);
  }

  #at(op: Op, text: string, value: JsonValue | undefined, isNamed: boolean): void {
    const path = parsePath(text);
    const attribute = path === undefined ? undefined : findAttribute(this.#attributes, path.name);
    if (path === undefined || attribute === undefined) return;
    if (attribute.mutability === 'readOnly') {
      if (!isNamed) return;
      throw new ScimError(400, `${attribute.name} cannot be changed.`, 'mutability');
    }
    if (op === 'remove' && attribute.required && path.filter === undefined && path.sub === undefined)
      throw new ScimError(400, `${attribute.name} cannot be removed.`, 'mutability');
    if (op !== 'remove' && value === undefined)
      throw new ScimError(400, `The operation on ${attribute.name} lacks a value.`, 'invalidValue');
    if (attribute.multiValued) this.#many(op, attribute, path, value);
    else this.#one(op, attribute, path, value);
  }

  #one(op: Op, attribute: Attribute, { filter, sub }: Path, value: JsonValue | undefined): void {
    if (filter !== undefined)
      throw new ScimError(
        400,
        `${attribute.name} has a single value and does not support filters.`,
        'invalidPath',
      );
    const { name } = attribute;
    if (attribute.type !== 'complex') {
      if (sub !== undefined) throw new ScimError(400, `${name} has no parts.`, 'invalidPath');
      if (op === 'remove' || value === null) this.#draft.delete(name);
      else this.#draft.set(name, plain(attribute, value));
      return;
    }
    const now = this.#draft.get(name);
    const object = now !== undefined && isObject(now) ? copied(now) : {};
    if (sub === undefined && op === 'remove') return void this.#draft.delete(name);
    if (sub === undefined) Object.assign(object, complex(attribute, value));
    else setSub(object, attribute, sub, op === 'remove' ? undefined : value);
    this.#draft.set(name, object);
  }

  #many(op: Op, attribute: Attribute, { filter, sub }: Path, value: JsonValue | undefined): void {
    const kept = this.#draft.get(attribute.name);
    const elements = kept instanceof Map ? kept : new Map<string, JsonObject>();
    this.#draft.set(attribute.name, elements);
    if (filter !== undefined || sub !== undefined)
      return this.#some(op, attribute, elements, { filter, sub, value });
    if (op === 'remove') {
      // Entra ID names those to remove in the value, and not in the path.
      if (value === undefined || value === null) elements.clear();
      else for (const one of listOf(value)) elements.delete(keyOf(complex(attribute, one)));
      return;
    }
    if (op === 'replace') elements.clear();
    for (const one of listOf(value)) addElement(elements, complex(attribute, one));
  }

  #some(
    op: Op,
    attribute: Attribute,
    elements: Map<string, JsonObject>,
    {
      filter,
      sub,
      value,
    }: { filter: Filter | undefined; sub: string | undefined; value: JsonValue | undefined },
  ): void {
    const keys = this.#matching(elements, filter);
    if (op === 'remove' && sub === undefined) {
      for (const key of keys) elements.delete(key);
      return;
    }
    if (keys.length === 0 && op !== 'remove') {
      const made = filter === undefined || sub === undefined ? undefined : elementOf(filter);
      if (made === undefined)
        throw new ScimError(400, `No element of ${attribute.name} fits the filter.`, 'noTarget');
      setSub(made, attribute, sub ?? '', value);
      addElement(elements, made);
      return;
    }
    changeInPlace(elements, new Set(keys), (element) => {
      if (sub === undefined) Object.assign(element, complex(attribute, value));
      else setSub(element, attribute, sub, op === 'remove' ? undefined : value);
    });
  }

  #matching(elements: ReadonlyMap<string, JsonObject>, filter: Filter | undefined): string[] {
    if (filter === undefined) return [...elements.keys()];
    const { type } = filter;
    if (
      type === 'compare' &&
      filter.path === 'value' &&
      filter.op === 'eq' &&
      typeof filter.value === 'string'
    )
      return elements.has(keyOf({ value: filter.value })) ? [keyOf({ value: filter.value })] : [];
    this.#looks += elements.size;
    if (this.#looks > limits.looks)
      throw new ScimError(
        413,
        'The filters of this PATCH match against too many elements. Send fewer operations.',
      );
    return [...elements].filter(([, element]) => matches(filter, element)).map(([key]) => key);
  }
}

function draftOf(resource: JsonObject, attributes: readonly Attribute[]): Draft {
  const draft: Draft = new Map();
  for (const [name, value] of Object.entries(resource)) {
    if (value === undefined) continue;
    const isMany = findAttribute(attributes, name)?.multiValued === true && Array.isArray(value);
    if (!isMany) {
      draft.set(name, value);
      continue;
    }
    const elements = new Map<string, JsonObject>();
    for (const one of value as readonly JsonValue[]) if (isObject(one)) elements.set(keyOf(one), one);
    draft.set(name, elements.size === 0 && value.length > 0 ? value : elements);
  }
  return draft;
}

/** Adds an element or replaces the one of the same value. A new primary element takes the mark from the others. */
function addElement(elements: Map<string, JsonObject>, element: JsonObject): void {
  if (element['primary'] === true)
    for (const [key, other] of elements)
      if (other['primary'] === true) elements.set(key, { ...other, primary: false });
  const key = keyOf(element);
  elements.set(key, { ...elements.get(key), ...element });
}

/** Changes the elements of these keys. Their order stays, because the first email is the one to sign in with where none is primary. */
function changeInPlace(
  elements: Map<string, JsonObject>,
  keys: ReadonlySet<string>,
  change: (element: Record<string, JsonValue>) => void,
): void {
  const before = [...elements];
  elements.clear();
  let hasNewPrimary = false;
  for (const [key, element] of before) {
    if (keys.has(key)) {
      const changed = copied(element);
      change(changed);
      hasNewPrimary ||= changed['primary'] === true;
      addElement(elements, changed);
      continue;
    }
    const kept = hasNewPrimary && element['primary'] === true ? { ...element, primary: false } : element;
    // A changed element before this one may have got the same value.
    const same = elements.get(key);
    elements.set(key, same === undefined ? kept : { ...kept, ...same });
  }
}

function copied(object: JsonObject): Record<string, JsonValue> {
  return { ...object } as Record<string, JsonValue>;
}

function keyOf({ value }: JsonObject): string {
  return typeof value === 'string' ? value : '';
}

/** Returns the element that a filter describes: `{ type: 'work' }` for `type eq "work"`. Undefined for other filters. */
function elementOf(filter: Filter): Record<string, JsonValue> | undefined {
  const parts = filter.type === 'and' ? filter.parts : [filter];
  const made: Record<string, JsonValue> = {};
  for (const part of parts) {
    if (part.type !== 'compare' || part.op !== 'eq' || !/^[a-z]{1,20}$/.test(part.path)) return undefined;
    made[part.path] = part.path === 'primary' ? (booleanOf(part.value) ?? false) : part.value;
  }
  return made;
}

function setSub(
  object: Record<string, JsonValue>,
  attribute: Attribute,
  name: string,
  value: JsonValue | undefined,
): void {
  const sub = findAttribute(attribute.subAttributes ?? [], name);
  if (sub === undefined || sub.mutability === 'readOnly') return;
  if (value === undefined || value === null) delete object[sub.name];
  else object[sub.name] = plain(sub, value);
}

/** Returns the parts of a complex value that are known. A plain value stands for its `value`. */
function complex(attribute: Attribute, value: JsonValue | undefined): JsonObject {
  const object: Record<string, JsonValue> = {};
  if (typeof value === 'string' && attribute.multiValued) return { value };
  if (!isObject(value)) throw new ScimError(400, `${attribute.name} must be an object.`, 'invalidValue');
  for (const [name, inner] of Object.entries(value)) setSub(object, attribute, name, inner);
  return object;
}

function plain(attribute: Attribute, value: JsonValue | undefined): JsonValue {
  if (attribute.type === 'boolean') {
    const read = booleanOf(value);
    if (read === undefined)
      throw new ScimError(400, `${attribute.name} must be true or false.`, 'invalidValue');
    return read;
  }
  if (typeof value !== 'string')
    throw new ScimError(400, `${attribute.name} must be a text.`, 'invalidValue');
  return value;
}

function listOf(value: JsonValue | undefined): readonly JsonValue[] {
  return Array.isArray(value) ? (value as readonly JsonValue[]) : value === undefined ? [] : [value];
}

function memberOf(object: JsonObject, name: string): JsonValue | undefined {
  const found = Object.keys(object).find((key) => key.toLowerCase() === name);
  return found === undefined ? undefined : object[found];
}

function isObject(value: JsonValue | undefined | Map<string, JsonObject>): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Map);
}
