/** Resolves local `$ref` pointers of a JSON Schema, with a limit on the text that inlining adds to one request. */
import { isObject, type JsonObject, type JsonValue } from '../../../model/json.ts';

/** Most characters that the references of one request may add to its schemas. */
const mostInlined = 1024 * 1024;

/** Characters that references have added to schemas. */
export interface Inlined {
  characters: number;
}

/** The references of one schema. */
export class References {
  readonly #root: JsonObject;
  readonly #inlined: Inlined;
  readonly #sizes = new Map<JsonObject, number>();

  /** `inlined` counts the characters that references have added so far: one counter for all schemas of a request. */
  constructor(root: JsonObject, inlined: Inlined) {
    this.#root = root;
    this.#inlined = inlined;
  }

  /** Returns the schema of a reference; undefined if there is none, if the reference is cyclic, or if it would exceed the limit. */
  find(reference: string, inside: readonly string[]): JsonObject | undefined {
    const found = inside.includes(reference) ? undefined : resolvePointer(this.#root, reference);
    if (found === undefined) return undefined;
    let size = this.#sizes.get(found);
    if (size === undefined) this.#sizes.set(found, (size = JSON.stringify(found).length));
    if (this.#inlined.characters + size > mostInlined) return undefined;
    this.#inlined.characters += size;
    return found;
  }
}

/** Returns the target of a local reference (`#/$defs/address`); undefined if there is none, or if it is in another document. */
function resolvePointer(root: JsonObject, reference: string): JsonObject | undefined {
  if (reference === '#') return root;
  if (!reference.startsWith('#/')) return undefined;
  let value: JsonValue | undefined = root;
  for (const step of reference.slice(2).split('/')) {
    if (!isObject(value)) return undefined;
    const name = decodeStep(step);
    value = Object.hasOwn(value, name) ? value[name] : undefined;
  }
  return isObject(value) ? value : undefined;
}

function decodeStep(step: string): string {
  const plain = step.replaceAll('~1', '/').replaceAll('~0', '~');
  try {
    return decodeURIComponent(plain);
  } catch {
    return plain;
  }
}
