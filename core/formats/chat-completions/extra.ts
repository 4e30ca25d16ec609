import type { Extra } from '../../model/extra.ts';
import type { JsonObject, JsonValue } from '../../model/json.ts';
import { isObject } from '../../model/json.ts';
import type { MutableObject } from '../_shared/settings.ts';
import { formatName } from './wire.ts';

const nothing: JsonObject = {};

/** What this format alone knows of a piece: its own entry of `extra`, empty when there is none. */
export function own(piece: { readonly extra?: Extra | undefined } | undefined): JsonObject {
  return piece?.extra?.[formatName] ?? nothing;
}

/**
 * Gathers, while a piece is decoded, what the neutral model has no word for. Fields of a nested object are kept under a dotted name
 * (`function.strictness`), so that a loss names them exactly; spellings are kept under names that begin with `$`.
 */
export class Leftovers {
  #fields: MutableObject | undefined;
  #put: MutableObject | undefined;

  /** Keeps every field of `value` that is not in `known`. A client's own field that begins with `$` is put aside, lest it pass for a spelling. */
  take(value: JsonObject, known: ReadonlySet<string>, prefix = ''): this {
    for (const key in value) {
      if (known.has(key) || key === '__proto__') continue;
      const field = value[key];
      if (field === undefined) continue;
      if (prefix === '' && key.startsWith('$')) this.#aside(key, field);
      else this.put(`${prefix}${key}`, field);
    }
    return this;
  }

  put(name: string, value: JsonValue): void {
    this.#fields ??= {};
    this.#fields[name] = value;
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

const nothingExtra: { readonly extra?: Extra } = {};

/** Puts back what {@link Leftovers} took. `nested` names the objects whose fields stand under a dotted name, the deepest first. */
export function putBack(target: MutableObject, fields: JsonObject, nested: readonly string[] = []): void {
  const copied = new Set<MutableObject>();
  for (const key in fields) {
    const value = fields[key];
    if (value === undefined) continue;
    if (key.startsWith('$')) {
      if (key === '$fields' && isObject(value)) Object.assign(target, value);
      continue;
    }
    const path = key.includes('.') ? nested.find((candidate) => key.startsWith(`${candidate}.`)) : undefined;
    if (path === undefined) target[key] = value;
    else inner(target, path, copied)[key.slice(path.length + 1)] = value;
  }
}

/** The object at a dotted path. `copied` are those on the way that were made here. */
function inner(target: MutableObject, path: string, copied: Set<MutableObject>): MutableObject {
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
