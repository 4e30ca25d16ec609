import type { IdOfCall } from './call-keys.ts';

/** How long it is believed that nothing is known of a call, in milliseconds. Minutes may pass between two turns of a conversation. */
const believed = 600_000;

/** Calls of which that is remembered: half of them at least, and not more. */
const most = 40_000;

/** Characters of an id that is remembered. */
const longest = 200;

/** Where a call stands. */
export interface Place {
  readonly owner: string;
  /** Tells the conversation of this owner from most others. */
  readonly opening: string;
}

/** A call in a conversation, and the index of the message in which its turn begins. */
export interface PlacedCall {
  readonly call: IdOfCall;
  readonly index: number;
}

/**
 * Calls of which nothing is known. Each turn of a conversation brings all calls before it, most of them of models whose reasoning is not
 * kept: only those that are new are asked for. A call is remembered in its place, because another conversation, or another turn of the same
 * one, may have an equal id.
 */
export class Absences {
  #young = new Map<string, number>();
  #old = new Map<string, number>();
  /** Ids of which something became known here. They are asked for from then on. */
  #known = new Set<string>();

  /** True where it was found lately that nothing is known of the call. */
  has(place: Place, index: number, { id }: IdOfCall, now: number): boolean {
    const name = nameOf(place, index, id);
    const until = this.#young.get(name) ?? this.#old.get(name);
    if (until === undefined || until < now) return false;
    return this.#known.size === 0 || !this.#known.has(ownName(place.owner, id));
  }

  /** Nothing is known of the call. */
  add(place: Place, index: number, { id }: IdOfCall, now: number): void {
    if (id.length > longest) return;
    this.#young.set(nameOf(place, index, id), now + believed);
    if (this.#young.size < most / 2) return;
    this.#old = this.#young;
    this.#young = new Map();
  }

  /** Something is known of the call now. */
  forget(owner: string, { id }: IdOfCall): void {
    if (this.#known.size >= most / 2) {
      this.#known = new Set();
      this.#young = new Map();
      this.#old = new Map();
    }
    this.#known.add(ownName(owner, id));
  }
}

function nameOf({ opening }: Place, index: number, id: string): string {
  return `${opening}${index} ${id}`;
}

function ownName(owner: string, id: string): string {
  return `${owner}\n${id}`;
}
