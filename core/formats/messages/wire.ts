import type { FinishReason } from '../../model/event.ts';
import type { Extra } from '../../model/extra.ts';
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import type { MutableObject } from '../_shared/settings.ts';

/** The name of this format: the key of its `extra` entries and the `format` of its proofs. */
export const name = 'messages';

/** Provider's stop reason → neutral reason. */
export const reasonOfStop: Readonly<Record<string, FinishReason>> = {
  end_turn: 'stop',
  stop_sequence: 'stop-sequence',
  max_tokens: 'length',
  model_context_window_exceeded: 'context-window',
  tool_use: 'tool-calls',
  pause_turn: 'pause',
  refusal: 'refusal',
  compaction: 'compaction',
};

/** Neutral reason → stop reason. */
export const stopOfReason: Readonly<Record<FinishReason, string>> = {
  stop: 'end_turn',
  'stop-sequence': 'stop_sequence',
  length: 'max_tokens',
  'context-window': 'model_context_window_exceeded',
  'tool-calls': 'tool_use',
  'content-filter': 'refusal',
  refusal: 'refusal',
  pause: 'pause_turn',
  compaction: 'compaction',
  malformed: 'end_turn',
  other: 'end_turn',
};

/** Image types that the format takes. */
export const imageTypes: ReadonlySet<string> = new Set([
  'image/jpeg',
  'image/png',
  'image/gif',
  'image/webp',
]);

/** What this format alone knows of a piece; an empty object when there is nothing. */
export function own(extra: Extra | undefined): JsonObject {
  return extra?.[name] ?? nothing;
}

const nothing: JsonObject = {};

/** `{extra}` to spread into a piece; an empty object when there is nothing to keep. */
export function withExtra(fields: JsonObject | undefined): { readonly extra?: Extra } {
  if (fields === undefined) return nothingToKeep;
  for (const _ in fields) return { extra: { [name]: fields } };
  return nothingToKeep;
}

const nothingToKeep: { readonly extra?: Extra } = {};

/** The fields of a client's object that are not in `known`. One that looks like a spelling (`$…`) gets a second `$`, so that none can be forged. */
export function unknown(value: JsonObject, known: ReadonlySet<string>): MutableObject {
  const rest: MutableObject = {};
  for (const key in value) if (!known.has(key)) rest[key.startsWith('$') ? `$${key}` : key] = value[key];
  return rest;
}

/** Keeps the fields of an inner object that are not in `known` under dotted keys (`source.x`), so that a loss names them precisely. */
export function keepInner(
  into: MutableObject,
  key: string,
  value: JsonObject,
  known: ReadonlySet<string>,
): void {
  for (const field in value) if (!known.has(field)) into[`${key}.${field}`] = value[field];
}

/**
 * Writes the kept fields of a piece back into its wire object: `source.x` into the object at `source` when `inner` names it,
 * everything else where it was. Spellings (`$…`) are left to the caller.
 */
export function restore(into: MutableObject, fields: JsonObject, inner: readonly string[] = []): void {
  for (const key in fields) {
    if (key.startsWith('$')) {
      if (key.startsWith('$$')) into[key.slice(1)] = fields[key];
      continue;
    }
    const prefix = key.includes('.') ? inner.find((candidate) => key.startsWith(`${candidate}.`)) : undefined;
    if (prefix === undefined) into[key] = fields[key];
    else innerObject(into, prefix)[key.slice(prefix.length + 1)] = fields[key];
  }
}

/** The object at a dotted path, made on the way. */
export function innerObject(into: MutableObject, path: string): MutableObject {
  let object = into;
  for (const step of path.split('.')) {
    const value: JsonValue | undefined = object[step];
    const next: MutableObject = isObject(value) ? (value as MutableObject) : {};
    object[step] = next;
    object = next;
  }
  return object;
}

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
