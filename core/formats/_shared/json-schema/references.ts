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

  /** `inlined` is what references have added so far: one for all schemas of a request. */
  constructor(root: JsonObject, inlined: Inlined) {
    this.#root = root;
    this.#inlined = inlined;
  }

  /** What a reference means; undefined where it leads nowhere or back to itself, or would add too much. */
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

/** What a local reference (`#/$defs/address`) points at; undefined for one that leads nowhere or out of the document. */
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
