/**
 * A typed place for a value that one plugin leaves for others. Make it once, at module level, with {@link callKey}.
 *
 * @example
 * const color: CallKey<string> = callKey('color');
 */
export interface CallKey<T> {
  readonly name: string;
  /** Its number among all keys, from 0. */
  readonly place: number;
  /** Never set: carries the type. */
  readonly type?: T;
}

let keys = 0;

/**
 * Returns a new key; `name` shows in error messages.
 *
 * @example
 * const color = callKey<string>('color');
 * call.set(color, 'red');
 */
export function callKey<T>(name: string): CallKey<T> {
  const place = keys;
  keys += 1;
  return { name, place };
}
