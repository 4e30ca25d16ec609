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
  /** Tells the conversation of this owner from most others, and from those of other owners. */
  readonly opening: string;
}

/** A call in a conversation, and the index of the message in which its turn begins. */
export interface PlacedCall {
  readonly call: IdOfCall;
  readonly index: number;
}

/** Calls of one turn, and until when it is believed that nothing is known of them. */
interface Unknown {
  readonly ids: string[];
  readonly until: number;
}

/** The turns of a conversation, by the indexes of their first messages. */
type Conversation = Map<number, Unknown>;

/**
 * Calls of which nothing is known. Each turn of a conversation brings all calls before it, most of them of models whose reasoning is not
 * kept: only those that are new are asked for. A call is remembered in its place, because another conversation, or another turn of the same
 * one, may have an equal id. The place is looked up and the ids there compared, because a look-up of each id, in a text with its place, took
 * six times as long.
 */
export class Absences {
  #young = new Map<string, Conversation>();
  #old = new Map<string, Conversation>();
  #count = 0;
  /** Ids of which something became known here, by owner. They are asked for from then on. */
  #known = new Map<string, Set<string>>();
  #knownCount = 0;

  /** The calls of a conversation but those of which it was found lately that nothing is known. */
  others({ owner, opening }: Place, calls: readonly PlacedCall[], now: number): readonly PlacedCall[] {
    const [young, old] = [this.#young.get(opening), this.#old.get(opening)];
    if (young === undefined && old === undefined) return calls;
    const known = this.#known.get(owner);
    return calls.filter(
      ({ call: { id }, index }) =>
        !(isUnknown(young?.get(index), id, now) || isUnknown(old?.get(index), id, now)) ||
        known?.has(id) === true,
    );
  }

  /** Nothing is known of the call. */
  add({ opening }: Place, { call: { id }, index }: PlacedCall, now: number): void {
    if (id.length > longest) return;
    let conversation = this.#young.get(opening);
    if (conversation === undefined) this.#young.set(opening, (conversation = new Map()));
    const turn = conversation.get(index);
    if (turn === undefined || turn.until < now) conversation.set(index, { ids: [id], until: now + believed });
    else if (turn.ids.includes(id)) return;
    else turn.ids.push(id);
    this.#count += 1;
    if (this.#count < most / 2) return;
    this.#old = this.#young;
    this.#young = new Map();
    this.#count = 0;
  }

  /** Something is known of the call now. */
  forget(owner: string, { id }: IdOfCall): void {
    if (this.#knownCount >= most / 2) {
      this.#known = new Map();
      this.#knownCount = 0;
      this.#young = new Map();
      this.#old = new Map();
      this.#count = 0;
    }
    const known = this.#known.get(owner);
    if (known === undefined) this.#known.set(owner, new Set([id]));
    else if (known.has(id)) return;
    else known.add(id);
    this.#knownCount += 1;
  }
}

function isUnknown(turn: Unknown | undefined, id: string, now: number): boolean {
  return turn !== undefined && turn.until >= now && turn.ids.includes(id);
}
