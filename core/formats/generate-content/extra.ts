import type { Extra } from '../../model/extra.ts';
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import type { MutableObject } from '../_shared/settings.ts';
import { name } from './wire.ts';

/**
 * Gathers what only this format knows of one piece. Fields of an object inside the piece stand under a dotted path
 * (`inlineData.displayName`), so that a loss names them exactly; `$` keys say how something was spelled.
 */
export class Extras {
  #fields: MutableObject | undefined;
  #put: MutableObject | undefined;

  set(key: string, value: JsonValue): void {
    this.#fields ??= {};
    this.#fields[key] = value;
  }

  /** Keeps every field that is not in `known`. One that begins with `$` itself is put aside, lest it pass for a spelling. */
  rest(object: JsonObject, known: ReadonlySet<string>, prefix = ''): void {
    for (const key of Object.keys(object)) {
      const value = object[key];
      if (value === undefined || known.has(key) || key === '__proto__') continue;
      if (prefix === '' && key.startsWith('$')) this.#aside(key, value);
      else this.set(prefix + key, value);
    }
  }

  #aside(key: string, value: JsonValue): void {
    if (this.#put === undefined) this.set('$fields', (this.#put = {}));
    this.#put[key] = value;
  }

  /** `{extra}` to spread into the piece, or nothing. */
  get spread(): { readonly extra?: Extra } {
    return this.#fields === undefined ? {} : { extra: { [name]: this.#fields } };
  }
}

function asObject(value: JsonValue | undefined): JsonObject {
  return isObject(value) ? value : {};
}

/** This format's own entry. */
export function own(extra: Extra | undefined): JsonObject | undefined {
  return extra?.[name];
}

/** Puts the fields back where {@link Extras} found them. `nests` are the dotted paths of inner objects, deepest first. */
export function restore(
  target: MutableObject,
  fields: JsonObject | undefined,
  nests: readonly string[] = [],
): void {
  if (fields === undefined) return;
  for (const key of Object.keys(fields)) {
    const value = fields[key];
    if (key === '$fields') Object.assign(target, asObject(value));
    if (value === undefined || key.startsWith('$')) continue;
    const nest = nests.find((path) => key.startsWith(`${path}.`));
    if (nest === undefined) target[key] = value;
    else inside(target, nest)[key.slice(nest.length + 1)] = value;
  }
}

/** The object at a dotted path, made when it is not there. */
export function inside(target: MutableObject, path: string): MutableObject {
  let object = target;
  for (const step of path.split('.')) {
    const inner = object[step];
    const next: MutableObject =
      typeof inner === 'object' && inner !== null && !Array.isArray(inner) ? (inner as MutableObject) : {};
    object[step] = next;
    object = next;
  }
  return object;
}
