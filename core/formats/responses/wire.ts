/** Name of the Responses format, and its functions to keep unknown fields and the provider's items. */
import type { Extra } from '../../model/extra.ts';
import { isObject, type JsonObject, type MutableObject } from '../../model/json.ts';
import { extrasOf } from '../_shared/extra.ts';

/** The format's name, in `extra`, proofs, usage and losses. */
export const formatName = 'responses';

/**
 * Contents of `extra.responses` in the events of a response, from which the same response can be encoded again:
 * `$response` (head, finish): the response object but for what the events say themselves;
 * `$item` (starts): the item as it was added; `$done` (ends): the item as it was finished;
 * `$part`, `$partDone`: the same of a content part; `$frame`: unknown fields of a delta;
 * `$separator`: a gap between two parts that other formats write as text.
 * Fields without `$` are unknown ones, kept only so that they can be reported as dropped. Unknown fields that are null are ignored.
 */
export const { own, withExtra, leftovers } = extrasOf(formatName, false);

/** Returns the unknown fields of a piece that are not null. Names that begin with `$` are left out, so that marks cannot be forged. */
export function unknown(value: JsonObject, known: ReadonlySet<string>): MutableObject {
  const rest: MutableObject = {};
  for (const key in value) {
    const field = value[key];
    if (known.has(key) || key.startsWith('$') || key === '__proto__' || field === null) continue;
    rest[key] = field;
  }
  return rest;
}

/** Returns an object that is kept under a mark; undefined for most pieces. */
export function kept(extra: Extra | undefined, name: string): JsonObject | undefined {
  const value = own(extra)[name];
  return isObject(value) ? value : undefined;
}

/** Returns the item as its provider added it, if it is one of this type. */
export function addedItem(extra: Extra | undefined, type: string): JsonObject | undefined {
  const item = kept(extra, '$item');
  return item?.type === type ? item : undefined;
}
