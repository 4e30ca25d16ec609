/** Keeps how a client spelled its request in `extra`, apart from the client's own unknown fields. */
import type { Extra } from '../../model/extra.ts';
import type { JsonObject } from '../../model/json.ts';

/** Returns the key of `extra` under which a format notes the spelling. A key of its own, so that no field of a client can imitate such a note. */
const spellingKey = (format: string): string => `$${format}`;

/**
 * Returns `{extra}` of a request, or of a piece of a reply, to spread into it: fields that only this format knows, and how the others were spelled.
 * Empty where there is neither.
 */
export function extraOf(
  format: string,
  own: JsonObject,
  spelling: JsonObject = {},
): { readonly extra?: Extra } {
  const extra: Extra = {
    ...(Object.keys(own).length === 0 ? {} : { [format]: own }),
    ...(Object.keys(spelling).length === 0 ? {} : { [spellingKey(format)]: spelling }),
  };
  return Object.keys(extra).length === 0 ? {} : { extra };
}

/** Returns the spelling that a client of this format used. */
export function spellingIn(extra: Extra | undefined, format: string): JsonObject {
  return extra?.[spellingKey(format)] ?? {};
}
