import type { JsonObject } from '../../model/json.ts';

/** True when the `error` of a provider's body or frame tells of one. Providers also write `null`, `false`, `""` and the like for none. */
export function tellsError({ error }: JsonObject): boolean {
  return Array.isArray(error) ? error.length > 0 : Boolean(error);
}
