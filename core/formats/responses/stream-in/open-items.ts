import type { JsonObject, JsonValue } from '../../../model/json.ts';
import { CallDecoder, type ItemDecoder } from './items.ts';
import { MessageDecoder } from './message.ts';

/** An item of the output that has begun and not ended. */
export interface OpenItem {
  /** Its place in the output. */
  readonly index: number;
  /** Empty where the upstream gives none. */
  readonly id: string;
  readonly item: JsonObject;
  readonly decoder: ItemDecoder;
}

/** The open items of a stream, each found at once by what a frame says of it: its place, its id, or nothing. */
export class OpenItems {
  /** Those that others may not interrupt, apart: of many open items few are of the kind that is asked for. */
  readonly calls = new Set<OpenItem>();
  readonly messages = new Set<OpenItem>();
  readonly #places = new Map<number, OpenItem>();
  readonly #ids = new Map<string, Set<OpenItem>>();
  /** In the order in which they were begun; those at the end that have ended are taken off when somebody asks. */
  readonly #begun: OpenItem[] = [];

  get size(): number {
    return this.#places.size;
  }

  at(index: number): OpenItem | undefined {
    return this.#places.get(index);
  }

  /** The first that was begun under this id. */
  withId(id: JsonValue | undefined): OpenItem | undefined {
    const [first] = (typeof id === 'string' ? this.#ids.get(id) : undefined) ?? [];
    return first;
  }

  /** The one that was begun last. */
  last(): OpenItem | undefined {
    for (let last = this.#begun.at(-1); last !== undefined; last = this.#begun.at(-1)) {
      if (this.#places.get(last.index) === last) return last;
      this.#begun.pop();
    }
    return undefined;
  }

  add(open: OpenItem): void {
    this.#places.set(open.index, open);
    const named = this.#ids.get(open.id);
    if (named === undefined) this.#ids.set(open.id, new Set([open]));
    else named.add(open);
    this.#begun.push(open);
    if (open.decoder instanceof CallDecoder) this.calls.add(open);
    else if (open.decoder instanceof MessageDecoder) this.messages.add(open);
  }

  delete(open: OpenItem): void {
    this.#places.delete(open.index);
    const named = this.#ids.get(open.id);
    named?.delete(open);
    if (named?.size === 0) this.#ids.delete(open.id);
    this.calls.delete(open);
    this.messages.delete(open);
  }

  /** All, in the order in which they were begun. They may be taken away meanwhile. */
  all(): Iterable<OpenItem> {
    return this.#places.values();
  }
}
