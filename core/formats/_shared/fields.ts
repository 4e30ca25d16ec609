import type { JsonObject } from '../../model/json.ts';
import type { MutableObject } from './settings.ts';

/**
 * The members of an object whose names are not among these, in one pass: with many members each copy costs as much as reading the body.
 * `__proto__`, which would not become a member, is left out.
 */
export function fieldsBeside(object: JsonObject, names: ReadonlySet<string>): JsonObject {
  const fields: MutableObject = {};
  for (const name of Object.keys(object))
    if (!names.has(name) && name !== '__proto__') fields[name] = object[name];
  return fields;
}
