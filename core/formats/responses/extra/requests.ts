import type { Extra } from '../../../model/extra.ts';
import { isObject, type JsonObject, type JsonValue } from '../../../model/json.ts';
import { given } from '../../_shared/check.ts';
import type { MutableObject } from '../../_shared/settings.ts';
import { formatName } from '../wire.ts';

const nothing: JsonObject = {};
const nothingExtra: { readonly extra?: Extra } = {};

/** What this format alone knows of a piece: its own entry of `extra`, empty when there is none. */
export function own(piece: { readonly extra?: Extra | undefined } | undefined): JsonObject {
  return piece?.extra?.[formatName] ?? nothing;
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
    return this.#fields === undefined ? nothingExtra : { extra: { [formatName]: this.#fields } };
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
  const value = own(piece)[name];
  return isObject(value) ? value : nothing;
}
