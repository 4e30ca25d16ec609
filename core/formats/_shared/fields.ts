/** Reads members of JSON objects whose types are not known: unknown fields, texts, lists, optional members. */
import { isObject, type JsonObject, type JsonValue, type MutableObject } from '../../model/json.ts';

/**
 * Returns the members of an object whose names are not among these, in one pass: with many members each copy costs as much as reading the body.
 * `__proto__`, which would not become a member, is left out.
 */
export function fieldsBeside(object: JsonObject, names: ReadonlySet<string>): MutableObject {
  const fields: MutableObject = {};
  for (const name in object) if (!names.has(name) && name !== '__proto__') fields[name] = object[name];
  return fields;
}

/** Returns the names in one string, separated by white space, as a set. */
export function setOf(list: string): ReadonlySet<string> {
  return new Set(list.trim().split(/\s+/));
}

/** Returns the members that are not undefined, to spread into an object in which they are optional. */
export function defined<Members extends object>(
  fields: Members,
): { readonly [Name in keyof Members]?: Exclude<Members[Name], undefined> } {
  const found: { [Name in keyof Members]?: Members[Name] } = {};
  for (const name in fields) if (fields[name] !== undefined) found[name] = fields[name];
  return found as { [Name in keyof Members]?: Exclude<Members[Name], undefined> };
}

/** Returns the items of a list; an empty list for any other value. */
export function listOf(value: JsonValue | undefined): readonly JsonValue[] {
  return Array.isArray(value) ? (value as readonly JsonValue[]) : [];
}

/** Returns the objects among the items of a list. */
export function objectsOf(value: JsonValue | undefined): readonly JsonObject[] {
  return Array.isArray(value) ? (value as readonly JsonValue[]).filter(isObject) : [];
}

/**
 * Returns a Unix time in whole seconds, because clients expect an integer and some providers send fractions; undefined if there is none.
 */
export function secondOf(value: JsonValue | undefined): number | undefined {
  return typeof value === 'number' && value >= 1 && Number.isFinite(value) ? Math.floor(value) : undefined;
}

/** Returns the text of a field; empty when it holds none. */
export function textOf(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : '';
}

/** Returns a text; undefined for any other value. */
export function stringIn(value: JsonValue | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** Returns true for a text that is not empty. */
export function isText(value: JsonValue | undefined): value is string {
  return typeof value === 'string' && value !== '';
}

/** Returns the texts of a list of parts; empty for a part that holds none. */
export function textsIn(parts: JsonValue | undefined): readonly string[] {
  return listOf(parts).map((part) => (isObject(part) ? textOf(part.text) : ''));
}
