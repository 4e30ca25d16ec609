import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';

type Fields = { [name: string]: JsonValue | undefined };

/**
 * The members of an object whose names are not among these, in one pass: with many members each copy costs as much as reading the body.
 * `__proto__`, which would not become a member, is left out.
 */
export function fieldsBeside(object: JsonObject, names: ReadonlySet<string>): Fields {
  const fields: Fields = {};
  for (const name in object) if (!names.has(name) && name !== '__proto__') fields[name] = object[name];
  return fields;
}

/** The members that are not undefined, to spread into an object in which they are optional. */
export function defined<Members extends object>(
  fields: Members,
): { readonly [Name in keyof Members]?: Exclude<Members[Name], undefined> } {
  const found: { [name: string]: unknown } = {};
  for (const [name, value] of Object.entries(fields)) if (value !== undefined) found[name] = value;
  return found as { [Name in keyof Members]?: Exclude<Members[Name], undefined> };
}

/** The items of a list; none where a provider or a client wrote something else. */
export function listOf(value: JsonValue | undefined): readonly JsonValue[] {
  return Array.isArray(value) ? (value as readonly JsonValue[]) : [];
}

/** The objects among the items of a list. */
export function objectsOf(value: JsonValue | undefined): readonly JsonObject[] {
  return Array.isArray(value) ? (value as readonly JsonValue[]).filter(isObject) : [];
}

/** The text of a field; empty when it holds none. */
export function textOf(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : '';
}

/** True for a text that says something. */
export function isText(value: JsonValue | undefined): value is string {
  return typeof value === 'string' && value !== '';
}

/** The texts of a list of parts; empty for a part that holds none. */
export function textsIn(parts: JsonValue | undefined): readonly string[] {
  return listOf(parts).map((part) => (isObject(part) ? textOf(part.text) : ''));
}
