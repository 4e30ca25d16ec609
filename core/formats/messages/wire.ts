import type { Extra } from '../../model/extra.ts';
import type { JsonObject, JsonValue } from '../../model/json.ts';
import { extrasOf, setOf } from '../_shared/extra.ts';
import type { MutableObject } from '../_shared/settings.ts';

/** The name of this format: the key of its `extra` entries and the `format` of its proofs. */
export const formatName = 'messages';

/** Image types that the format takes. */
export const imageTypes = setOf('image/jpeg image/png image/gif image/webp');

/** {@link extrasOf} */
export const { own, withExtra, leftovers } = extrasOf(formatName);

/** Keeps an unknown field of a reply. A null says nothing, so that it is only a spelling. */
export function keepField(into: MutableObject, key: string, value: JsonValue | undefined): void {
  if (value !== null) into[key] = value;
  else if (Array.isArray(into.$nulls)) (into.$nulls as string[]).push(key);
  else into.$nulls = [key];
}

/** Keeps what a frame says beside its ordinary fields, apart from what its inner object says. */
export function keepFrame(into: MutableObject, frame: JsonObject, first: string, second?: string): void {
  for (const key in frame) {
    if (key !== 'type' && key !== first && key !== second) into[`frame.${key}`] = frame[key];
  }
}

/** What {@link keepField} and {@link keepFrame} kept: for the inner object, and for the frame. */
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
