import { isObject, type JsonObject, type JsonValue, type MutableObject } from '../../../model/json.ts';

/**
 * Merges `allOf` to one schema: unites properties and required names, and takes the first value of all other keywords. `resolved`: returns
 * the schema of a part. `drop`: called with the path of each conflicting value, such as `[1].minimum`.
 */
export function mergeAll(
  schema: JsonObject,
  resolved: (part: JsonObject) => JsonObject,
  drop: (path: string) => void,
): JsonObject {
  const { allOf, ...own } = schema;
  const merged: MutableObject = { ...own };
  const properties: MutableObject = isObject(own.properties) ? { ...own.properties } : {};
  const required = new Set<JsonValue>();
  /** Members that stand for all, as text. */
  const texts = new Map<string, string>();
  for (const [index, raw] of (allOf as readonly JsonValue[]).entries()) {
    if (!isObject(raw)) continue;
    const part = resolved(raw);
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
        if (text !== JSON.stringify(value)) drop(`[${index}].${key}`);
      }
    }
  }
  if (required.size > 0) merged.required = [...required];
  return merged;
}

function addAll(set: Set<JsonValue>, values: readonly JsonValue[]): void {
  for (const value of values) set.add(value);
}
