import { wrongValue } from '../../sdk/errors.ts';
import type { JsonValue } from '../../model/json.ts';

/** Compact JSON with the keys in their order. Throws 400 for values that are nested beyond what can be written. */
export function jsonText(value: JsonValue, path: string): string {
  try {
    return JSON.stringify(value);
  } catch {
    throw wrongValue(path, 'nested less deeply');
  }
}
