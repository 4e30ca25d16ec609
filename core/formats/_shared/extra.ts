/** Collects and restores members of a part that only one format has. */
import type { Extra } from '../../model/extra.ts';
import { isObject, type JsonObject, type JsonValue, type MutableObject } from '../../model/json.ts';
import { given } from './check.ts';

const nothing: JsonObject = {};
const nothingKept: Kept = {};

/** To be spread into a piece or an event. */
export interface Kept {
  readonly extra?: Extra;
}

/**
 * Returns functions with which a format stores members that only it has, in its own entry of `extra`. `nulls`: true to keep unknown fields
 * that are null.
 */
export function extrasOf(format: string, nulls = true) {
  return {
    /** Returns the members of a part that only this format has; an empty object if there are none. */
    own: (extra: Extra | undefined): JsonObject => extra?.[format] ?? nothing,
    /** Returns `{extra}` with these fields, to spread into a piece or an event; an empty object when there is nothing to keep. */
    withExtra(fields: JsonObject): Kept {
      for (const _ in fields) return { extra: { [format]: fields } };
      return nothingKept;
    },
    /** Gathers what is left of a piece that the neutral model has no word for. */
    leftovers: (): Leftovers => new Leftovers(format, nulls),
  };
}

/** Names that could pass for a spelling, or for a field of an object inside the piece. */
const misleading = /^\$|[.[]/;
/** Name under which fields with such names are stored, because they are fields like any other. */
export const aside = '$fields';

/**
 * Collects members of a part that the neutral model does not have, while the part is decoded. A plain name is an unknown field of the part,
 * a dotted name (`function.strictness`) a field of an object inside it, so that reports of dropped fields are exact. Names that begin with
 * `$` record a spelling and are not reported.
 */
export class Leftovers {
  readonly #format: string;
  readonly #nulls: boolean;
  #fields: MutableObject | undefined;
  #aside: MutableObject | undefined;

  /** `nulls`: whether an unknown field that is null is kept. */
  constructor(format: string, nulls: boolean) {
    this.#format = format;
    this.#nulls = nulls;
  }

  /** Keeps every field of `value` that is not in `known`; `prefix` is the path of `value` in the piece, with a dot behind it. */
  take(value: JsonObject, known: ReadonlySet<string>, prefix = ''): this {
    for (const key in value) {
      const field = value[key];
      if (known.has(key) || key === '__proto__' || field === undefined || (field === null && !this.#nulls))
        continue;
      if (prefix === '' && misleading.test(key)) this.#putAside(key, field);
      else this.put(prefix + key, field);
    }
    return this;
  }

  /** Keeps what is not in `known` of an object inside the piece, and that it was there, though nothing was in it. */
  takeInner(name: string, value: JsonObject | undefined, known: ReadonlySet<string>): this {
    if (value === undefined) return this;
    if (!Object.values(value).some(given)) this.put(`$${name}`, 'empty');
    return this.take(value, known, `${name}.`);
  }

  put(name: string, value: JsonValue): this {
    this.#fields ??= {};
    this.#fields[name] = value;
    return this;
  }

  /** Keeps those of the named fields that are given, together under one name: they mean nothing elsewhere and are no loss. */
  mark(name: string, value: JsonObject, fields: readonly string[]): this {
    const kept: MutableObject = {};
    for (const field of fields) if (given(value[field])) kept[field] = value[field];
    return Object.keys(kept).length === 0 ? this : this.put(name, kept);
  }

  #putAside(key: string, value: JsonValue): void {
    if (this.#aside === undefined) this.put(aside, (this.#aside = {}));
    this.#aside[key] = value;
  }

  /** Returns the piece, with what was gathered of it where there is any: most have nothing. */
  onto<Piece extends object>(piece: Piece): Piece & Kept {
    return this.#fields === undefined ? piece : { ...piece, ...this.extra() };
  }

  /** Returns the kept fields, to spread into the piece. */
  extra(): Kept {
    return this.#fields === undefined ? nothingKept : { extra: { [this.#format]: this.#fields } };
  }
}

/**
 * Puts back what {@link Leftovers} took. `nested` names the objects inside the piece whose fields stand under a dotted name, the deepest
 * first; of all others a dotted name is only the name of a loss.
 */
export function putBack(target: MutableObject, fields: JsonObject, nested: readonly string[] = []): void {
  let copied: Set<MutableObject> | undefined;
  for (const key in fields) {
    const value = fields[key];
    if (value === undefined) continue;
    if (key.startsWith('$')) {
      if (key === aside) Object.assign(target, value);
    } else if (!misleading.test(key)) target[key] = value;
    else {
      const path = nested.find((candidate) => key.startsWith(`${candidate}.`));
      if (path !== undefined)
        objectAt(target, path, (copied ??= new Set()))[key.slice(path.length + 1)] = value;
    }
  }
}

/** Returns the object at a dotted path, made when it is not there. `copied` are those on the way that were made here. */
export function objectAt(
  target: MutableObject,
  path: string,
  copied: Set<MutableObject> = new Set(),
): MutableObject {
  let object = target;
  for (const step of path.split('.')) {
    const value = object[step];
    // A copy: what stands there may belong to the client's own request.
    let next = value as MutableObject;
    if (!isObject(value) || !copied.has(next)) {
      next = isObject(value) ? { ...value } : {};
      copied.add(next);
      object[step] = next;
    }
    object = next;
  }
  return object;
}
