import type { Extra } from '../../model/extra.ts';
import type { JsonObject } from '../../model/json.ts';

/** Where a format notes how a request was spelled: beside the client's own fields, none of which can pass for such a note. */
const place = (format: string): string => `$${format}`;

/**
 * `{extra}` of a request, or of a piece of a reply, to spread into it: fields that only this format knows, and how the others were spelled.
 * Empty where there is neither.
 */
export function extraOf(
  format: string,
  own: JsonObject,
  spelling: JsonObject = {},
): { readonly extra?: Extra } {
  const extra: Extra = {
    ...(Object.keys(own).length === 0 ? {} : { [format]: own }),
    ...(Object.keys(spelling).length === 0 ? {} : { [place(format)]: spelling }),
  };
  return Object.keys(extra).length === 0 ? {} : { extra };
}

/** How a client of this format spelled its request. */
export function spellingIn(extra: Extra | undefined, format: string): JsonObject {
  return extra?.[place(format)] ?? {};
}
