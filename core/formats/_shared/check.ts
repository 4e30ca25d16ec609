/**
 * Checks values of a client's request body: types, ranges, required fields, `metadata` and model names. Throws 400 errors that name the
 * field.
 */
import { GatewayError, missingValue, wrongType, wrongValue } from '../../sdk/errors.ts';
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';

/** Returns true for a value that is given. `null` means "not given" in every format. */
export function given(value: JsonValue | undefined): value is Exclude<JsonValue, null> {
  return value !== undefined && value !== null;
}

/** Returns a 400 error with this message that names `param`. */
export function invalid(param: string, message: string): GatewayError {
  return new GatewayError('invalid_value', message, { param });
}

/** Returns a string; undefined when not given. Throws 400 naming `path`. */
export function optionalString(value: JsonValue | undefined, path: string): string | undefined {
  if (!given(value)) return undefined;
  if (typeof value !== 'string') throw wrongType(path, 'a string');
  return value;
}

/** Returns a string. Throws 400 if it is missing or has the wrong type. */
export function requiredString(value: JsonValue | undefined, path: string): string {
  const text = optionalString(value, path);
  if (text === undefined) throw missingValue(path);
  return text;
}

/** Returns an object; undefined when not given. Throws 400 naming `path`. */
export function optionalObject(value: JsonValue | undefined, path: string): JsonObject | undefined {
  if (!given(value)) return undefined;
  if (!isObject(value)) throw wrongType(path, 'an object');
  return value;
}

/** Returns an array; undefined when not given. Throws 400 naming `path`. */
export function optionalArray(value: JsonValue | undefined, path: string): readonly JsonValue[] | undefined {
  if (!given(value)) return undefined;
  if (!Array.isArray(value)) throw wrongType(path, 'an array');
  return value as readonly JsonValue[];
}

/** Returns an object. Throws 400 if it is missing or has the wrong type. */
export function requiredObject(value: JsonValue | undefined, path: string): JsonObject {
  const object = optionalObject(value, path);
  if (object === undefined) throw missingValue(path);
  return object;
}

/** Returns an array. Throws 400 if it is missing or has the wrong type. */
export function requiredArray(value: JsonValue | undefined, path: string): readonly JsonValue[] {
  const list = optionalArray(value, path);
  if (list === undefined) throw missingValue(path);
  return list;
}

/** Returns the result of `read` for each object of a list, if it is given. Throws 400 naming the list, or the item that is no object. */
export function readObjects<Item>(
  value: JsonValue | undefined,
  path: string,
  read: (object: JsonObject, at: string, index: number) => Item,
): Item[] {
  return (optionalArray(value, path) ?? []).map((item, index) => {
    const at = `${path}[${index}]`;
    if (!isObject(item)) throw wrongType(at, 'an object');
    return read(item, at, index);
  });
}

/** Returns the JSON text of a client's value, its keys in their order. Throws 400 for one nested too deeply to be written. */
export function jsonText(value: JsonValue, path: string): string {
  try {
    return JSON.stringify(value);
  } catch {
    throw wrongValue(path, 'less deeply nested');
  }
}

/** Returns a boolean; undefined when not given. Throws 400 naming `path`. */
export function optionalBoolean(value: JsonValue | undefined, path: string): boolean | undefined {
  if (!given(value)) return undefined;
  if (typeof value !== 'boolean') throw wrongType(path, 'a boolean');
  return value;
}

/** Returns a number within a range (inclusive); undefined when not given. Throws 400 naming `path`. */
export function optionalNumber(
  value: JsonValue | undefined,
  path: string,
  limits: { readonly min?: number; readonly max?: number; readonly integer?: boolean } = {},
): number | undefined {
  if (!given(value)) return undefined;
  if (typeof value !== 'number' || !Number.isFinite(value))
    throw wrongType(path, limits.integer ? 'an integer' : 'a number');
  if (limits.integer && !Number.isInteger(value)) throw wrongType(path, 'an integer');
  const { min, max } = limits;
  if ((min !== undefined && value < min) || (max !== undefined && value > max)) {
    throw wrongValue(
      path,
      min === undefined
        ? `at most ${max}`
        : max === undefined
          ? `at least ${min}`
          : `between ${min} and ${max}`,
    );
  }
  return value;
}

/** Checks metadata: at most 16 pairs of texts, keys of at most 64 characters, values of at most 512. Throws 400 with the path. */
export function checkMetadata(value: JsonValue | undefined): void {
  const entries = Object.entries(optionalObject(value, 'metadata') ?? {});
  if (entries.length > 16) throw wrongValue('metadata', 'at most 16 pairs');
  for (const [key, text] of entries) {
    const path = `metadata.${key.slice(0, 64)}`;
    if (key.length > 64) throw wrongValue(path, 'a key of at most 64 characters');
    if (typeof text !== 'string') throw wrongType(path, 'a string');
    if (text.length > 512) throw wrongValue(path, 'at most 512 characters long');
  }
}

/** Returns the name of a model. Throws 400 naming `path` if it is missing, empty or not a string. */
export function requiredModel(value: JsonValue | undefined, path = 'model'): string {
  const model = requiredString(value, path);
  if (model === '') throw missingValue(path);
  return model;
}

/** The longest name that a model may have, in characters. */
const longestName = 256;
/** Control characters, those that change how others are shown, halves of characters, and line ends. */
const unprintable = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/u;

/** Checks the name of a model, because lists, logs and counts are kept by it. Throws 400 with `model`, but never with the name itself. */
export function checkModelName(model: string): void {
  if (model.length > longestName) throw wrongValue('model', `a name of at most ${longestName} characters`);
  if (unprintable.test(model)) throw wrongValue('model', 'a name of printable characters');
}

/** Returns the model's name and the stream flag of a body. Throws 400 when the model is missing or either has the wrong type. */
export function peek(body: JsonObject): { readonly model: string; readonly stream: boolean } {
  return { model: requiredModel(body.model), stream: optionalBoolean(body.stream, 'stream') ?? false };
}
