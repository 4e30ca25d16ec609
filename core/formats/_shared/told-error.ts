import type { JsonObject } from '../../model/json.ts';

/** True when the `error` of a provider's body or frame tells of one. Providers also write `null`, `false`, `""` and the like for none. */
export function tellsError({ error }: JsonObject): boolean {
  return Array.isArray(error) ? error.length > 0 : Boolean(error);
}

/** True for a body or a frame that says of itself what it is, and not that it is a failure: its members mean what that kind makes of them. */
export function isNamed({ type }: JsonObject): boolean {
  return typeof type === 'string' && !/error|exception|fail/i.test(type);
}
