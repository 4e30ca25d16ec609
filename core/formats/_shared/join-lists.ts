import { isObject, type JsonObject, type JsonValue, type MutableObject } from '../../model/json.ts';

/**
 * Joins two consecutive pieces of one object: lists are concatenated, other members are taken from the later piece. The result may be
 * changed when it is passed in again, so that many pieces cost no more than their sum. The pieces are not changed.
 */
export function joinLists(before: JsonValue | undefined, more: JsonValue): JsonValue {
  if (!isObject(before) || !isObject(more)) return more;
  const joined: MutableObject = grown.has(before) ? before : copied(before);
  for (const [key, value] of Object.entries(more)) {
    if (key === '__proto__') continue;
    const list = joined[key];
    if (!Array.isArray(list))
      joined[key] = Array.isArray(value) ? [...(value as readonly JsonValue[])] : value;
    else if (Array.isArray(value))
      for (const one of value as readonly JsonValue[]) (list as JsonValue[]).push(one);
    else if (value !== null && value !== undefined) joined[key] = value;
  }
  return joined;
}

function copied(object: JsonObject): MutableObject {
  const copy: MutableObject = {};
  for (const [key, value] of Object.entries(object))
    if (key !== '__proto__') copy[key] = Array.isArray(value) ? [...(value as readonly JsonValue[])] : value;
  grown.add(copy);
  return copy;
}

/** Objects that were made here. */
const grown = new WeakSet<JsonObject>();
