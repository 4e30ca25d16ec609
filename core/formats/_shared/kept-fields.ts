import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import type { MutableObject } from './settings.ts';

/** The fields of a client's object that are not in `known`. One that looks like a spelling (`$…`) gets a second `$`, so that none can be forged. */
export function unknown(value: JsonObject, known: ReadonlySet<string>): MutableObject {
  const rest: MutableObject = {};
  for (const key in value) if (!known.has(key)) rest[key.startsWith('$') ? `$${key}` : key] = value[key];
  return rest;
}

/** Keeps the fields of an inner object that are not in `known` under dotted keys (`source.x`), so that a loss names them precisely. */
export function keepInner(
  into: MutableObject,
  key: string,
  value: JsonObject,
  known: ReadonlySet<string>,
): void {
  for (const field in value) if (!known.has(field)) into[`${key}.${field}`] = value[field];
}

/**
 * Writes the kept fields of a piece back into its wire object: `source.x` into the object at `source` when `inner` names it,
 * everything else where it was. Spellings (`$…`) are left to the caller.
 */
export function restore(into: MutableObject, fields: JsonObject, inner: readonly string[] = []): void {
  for (const key in fields) {
    if (key.startsWith('$')) {
      if (key.startsWith('$$')) into[key.slice(1)] = fields[key];
      continue;
    }
    const prefix = inner.find((candidate) => key.startsWith(`${candidate}.`));
    if (prefix === undefined) into[key] = fields[key];
    else innerObject(into, prefix)[key.slice(prefix.length + 1)] = fields[key];
  }
}

/** The object at a dotted path, made on the way. */
export function innerObject(into: MutableObject, path: string): MutableObject {
  let object = into;
  for (const step of path.split('.')) {
    const value: JsonValue | undefined = object[step];
    const next: MutableObject = isObject(value) ? (value as MutableObject) : {};
    object[step] = next;
    object = next;
  }
  return object;
}
