import type { Extra } from '../../model/extra.ts';
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import type { MutableObject } from '../_shared/settings.ts';
import { formatName } from './wire.ts';
import { given } from '../_shared/check.ts';

/**
 * What events of a reply carry in `extra.responses`, so that the same reply can be written again:
 * `$response` (head, finish): the response object but for what the events say themselves;
 * `$item` (starts): the item as it was added; `$done` (ends): the item as it was finished;
 * `$part`, `$partDone`: the same of a content part; `$frame`: unknown fields of a delta;
 * `$separator`: a gap between two parts that other formats write as text.
 * Fields without `$` are unknown ones, named for the sake of the losses alone.
 */
export function own(extra: Extra | undefined): JsonObject {
  return extra?.[formatName] ?? nothing;
}

const nothing: JsonObject = {};

/** `{extra}` to spread into an event; an empty object when there is nothing to keep. */
export function withExtra(fields: JsonObject): { readonly extra?: Extra } {
  for (const _ in fields) return { extra: { [formatName]: fields } };
  return nothingToKeep;
}

const nothingToKeep: { readonly extra?: Extra } = {};

/** A copy without some fields. */
export function without(value: JsonObject, fields: ReadonlySet<string>): MutableObject {
  const rest: MutableObject = {};
  for (const key in value) if (!fields.has(key) && key !== '__proto__') rest[key] = value[key];
  return rest;
}

/** Unknown fields of a piece that say something. One that looks like a mark (`$…`) is left out, so that none can be forged. */
export function unknown(value: JsonObject, known: ReadonlySet<string>): MutableObject {
  const rest: MutableObject = {};
  for (const key in value) {
    const field = value[key];
    if (known.has(key) || key.startsWith('$') || key === '__proto__' || field === null) continue;
    rest[key] = field;
  }
  return rest;
}

/** The text of a field; empty when it holds none. */
export function textOf(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : '';
}

/** The objects of a list. */
export function objectsOf(value: JsonValue | undefined): readonly JsonObject[] {
  return Array.isArray(value) ? (value as readonly JsonValue[]).filter(isObject) : [];
}

/** The item as its provider added it, if it is one of this type. */
export function addedItem(extra: Extra | undefined, type: string): JsonObject | undefined {
  const { $item } = own(extra);
  return isObject($item) && $item.type === type ? $item : undefined;
}

/** Unknown fields of a delta; undefined for most. */
export function frameOf(extra: Extra | undefined): JsonObject | undefined {
  const { $frame } = own(extra);
  return isObject($frame) ? $frame : undefined;
}

/**
 * Gathers, while a piece is decoded, what the neutral model has no word for. A plain name is an unknown field of the piece itself; a
 * dotted one (`reasoning.context`) only names a loss, because the object that holds it is kept whole under a mark; marks begin with `$`.
 */
export class Leftovers {
  #fields: MutableObject | undefined;
  #put: MutableObject | undefined;

  /** Keeps every field of `value` that is not in `known`. Names that could pass for a mark or a path are put aside. */
  take(value: JsonObject, known: ReadonlySet<string>, prefix = ''): this {
    for (const key in value) {
      const field = value[key];
      if (known.has(key) || key === '__proto__' || !given(field)) continue;
      if (prefix === '' && /^\$|[.[]/.test(key)) this.#aside(key, field);
      else this.put(`${prefix}${key}`, field);
    }
    return this;
  }

  put(name: string, value: JsonValue): this {
    this.#fields ??= {};
    this.#fields[name] = value;
    return this;
  }

  /** Keeps those of the named fields that are given, together under one mark: they mean nothing elsewhere and are no loss. */
  mark(name: string, value: JsonObject, fields: readonly string[]): this {
    const kept: MutableObject = {};
    for (const field of fields) if (given(value[field])) kept[field] = value[field];
    return Object.keys(kept).length === 0 ? this : this.put(name, kept);
  }

  #aside(key: string, value: JsonValue): void {
    if (this.#put === undefined) this.put('$fields', (this.#put = {}));
    this.#put[key] = value;
  }

  /** To be spread into the piece. */
  extra(): { readonly extra?: Extra } {
    return this.#fields === undefined ? nothingToKeep : { extra: { [formatName]: this.#fields } };
  }
}

/** Puts the unknown fields back that {@link Leftovers} took. */
export function putBack(target: MutableObject, fields: JsonObject): void {
  for (const key in fields) {
    const value = fields[key];
    if (value === undefined) continue;
    if (key === '$fields' && isObject(value)) Object.assign(target, value);
    else if (!/^\$|[.[]/.test(key)) target[key] = value;
  }
}

/** An object kept under a mark; empty when there is none. */
export function marked(piece: { readonly extra?: Extra | undefined }, name: string): JsonObject {
  const value = own(piece.extra)[name];
  return isObject(value) ? value : nothing;
}
