/** Reads members of requests, and refuses those of the wrong type with the path that the client wrote. */
import { GatewayError, type JsonObject, type JsonValue } from 'sluice';

type Value = JsonValue | undefined;

/** Returns true for a JSON object. */
export function isObject(value: Value): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns the items of a list; an empty list if there is none. */
export function listOf(value: Value): readonly JsonValue[] {
  return Array.isArray(value) ? (value as readonly JsonValue[]) : [];
}

/** Maximum length of a text that names something: a label, a tool, a header. */
const longestName = 256;

/** Returns a short text. Throws 400 for anything else; undefined where nothing was given. */
export function optionalText(value: Value, path: string, longest = longestName): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'string' || value === '' || value.length > longest)
    throw wrong(path, `a text of 1 to ${longest} characters`);
  return value;
}

/** Returns a short text. Throws 400 if it is missing. */
export function requiredText(value: Value, path: string): string {
  const text = optionalText(value, path);
  if (text === undefined)
    throw new GatewayError('missing_required_parameter', `Missing required parameter: ${path}.`, {
      param: path,
    });
  return text;
}

/** Returns an object. Throws 400 for anything else; undefined where nothing was given. */
export function optionalObject(value: Value, path: string): JsonObject | undefined {
  if (value === undefined || value === null) return undefined;
  if (!isObject(value)) throw wrong(path, 'an object');
  return value;
}

/** Returns a list of short texts as a set. Throws 400 for anything else; undefined where nothing was given. */
export function optionalNames(value: Value, path: string): ReadonlySet<string> | undefined {
  if (value === undefined || value === null) return undefined;
  if (!Array.isArray(value)) throw wrong(path, 'an array of texts');
  return new Set(
    (value as readonly JsonValue[]).map((name, index) => requiredText(name, `${path}[${index}]`)),
  );
}

/** Returns the 400 error for a value that breaks a rule. */
export function wrong(path: string, rule: string): GatewayError {
  return new GatewayError('invalid_value', `${path} must be ${rule}.`, { param: path });
}

/** Parses a JSON object; undefined for any other text. */
export function parseObject(text: string): JsonObject | undefined {
  try {
    const value = JSON.parse(text) as JsonValue;
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the object without these members. */
export function without(object: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)));
}
