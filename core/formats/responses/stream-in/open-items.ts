/** Index of the open output items of a Responses stream, by place and by id. */
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

/** Open items of a stream. A frame names its item by index or id, or by neither: then the last one is meant. */
export class OpenItems {
  /** Calls and messages are also kept apart, because the decoder searches for open items of one kind. */
  readonly calls = new Set<OpenItem>();
  readonly messages = new Set<OpenItem>();
  readonly #places = new Map<number, OpenItem>();
  readonly #ids = new Map<string, Set<OpenItem>>();
  /** All items in the order of their start. Ended items at the end are removed by `last`. */
  readonly #begun: OpenItem[] = [];

  get size(): number {
    return this.#places.size;
  }

  at(index: number): OpenItem | undefined {
    return this.#places.get(index);
  }

  /** Returns the first open item with this id. */
  withId(id: JsonValue | undefined): OpenItem | undefined {
    const [first] = (typeof id === 'string' ? this.#ids.get(id) : undefined) ?? [];
    return first;
  }

  /** Returns the open item that was begun last. */
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

  /** Iterates over all items in the order of their start. Items may be deleted during the iteration. */
  all(): Iterable<OpenItem> {
    return this.#places.values();
  }
}
