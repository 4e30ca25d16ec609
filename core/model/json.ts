/**
 * Any value that JSON can spell.
 *
 * @example
 * const value: JsonValue = answer.json();
 */
export type JsonValue =
  | string
  | number
  | boolean
  | null
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue | undefined };

/**
 * A JSON object. Keys keep the order in which they were parsed.
 *
 * @example
 * const metadata: JsonObject = { team: 'blue' };
 */
export interface JsonObject {
  readonly [key: string]: JsonValue | undefined;
}

/** A JSON object under construction. */
export type MutableObject = { [key: string]: JsonValue | undefined };

/**
 * Returns true for a JSON object: neither null nor an array.
 *
 * @example
 * const name = isObject(body.user) ? body.user.name : undefined;
 */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
