/** Constants of the Messages format, and its functions to keep unknown fields and nulls of requests and stream frames. */
import type { Extra } from '../../model/extra.ts';
import type { JsonObject, MutableObject } from '../../model/json.ts';
import { extrasOf } from '../_shared/extra.ts';
import { setOf } from '../_shared/fields.ts';

/** The name of this format: the key of its `extra` entries and the `format` of its proofs. */
export const formatName = 'messages';

/** Image types that the format takes. */
export const imageTypes = setOf('image/jpeg image/png image/gif image/webp');

/** {@link extrasOf} */
export const { own, withExtra, leftovers } = extrasOf(formatName);

/** Collects the unknown fields of an object in a reply and of its frame. Fields that are null are kept by name only, because they carry no value. */
export function unknownIn(
  object: JsonObject,
  known: ReadonlySet<string>,
  frame: JsonObject,
  first: string,
  second?: string,
): MutableObject {
  const rest: MutableObject = {};
  const nulls: string[] = [];
  for (const key in object) {
    if (known.has(key)) continue;
    if (object[key] === null) nulls.push(key);
    else rest[key] = object[key];
  }
  if (nulls.length > 0) rest.$nulls = nulls;
  keepFrame(rest, frame, first, second);
  return rest;
}

/** Keeps the unknown fields of a frame, apart from those of its inner object. */
export function keepFrame(into: MutableObject, frame: JsonObject, first: string, second?: string): void {
  for (const key in frame) {
    if (key !== 'type' && key !== first && key !== second) into[`frame.${key}`] = frame[key];
  }
}

/** Returns the fields that {@link unknownIn} kept, for the inner object and for the frame. */
export function unpack(extra: Extra | undefined): { readonly inner: JsonObject; readonly frame: JsonObject } {
  const fields = own(extra);
  const inner: MutableObject = {};
  const frame: MutableObject = {};
  if (Array.isArray(fields.$nulls)) for (const key of fields.$nulls) inner[String(key)] = null;
  for (const key in fields) {
    if (key.startsWith('frame.')) frame[key.slice('frame.'.length)] = fields[key];
    else if (!key.startsWith('$')) inner[key] = fields[key];
  }
  return { inner, frame };
}
