import type { JsonObject, JsonValue } from '../model/json.ts';

/** Returns true if two JSON values are equal, whatever the order of keys. Returns false beyond a depth of 40, because it is only used to leave out what can be rebuilt. */
export function sameJson(left: JsonValue | undefined, right: JsonValue | undefined, depth = 40): boolean {
  if (left === right) return true;
  if (depth === 0 || typeof left !== 'object' || typeof right !== 'object' || left === null || right === null)
    return false;
  if (Array.isArray(left) || Array.isArray(right)) {
    if (!Array.isArray(left) || !Array.isArray(right) || left.length !== right.length) return false;
    return left.every((item, index) => sameJson(item as JsonValue, right[index] as JsonValue, depth - 1));
  }
  const first = left as JsonObject;
  const second = right as JsonObject;
  const keys = Object.keys(first);
  if (keys.length !== Object.keys(second).length) return false;
  return keys.every((key) => key in second && sameJson(first[key], second[key], depth - 1));
}
