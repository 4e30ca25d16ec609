/** Remembers tool calls of which nothing is stored, so that each turn of a conversation looks up only new ones. */
import type { IdOfCall } from './call-keys.ts';

/** Milliseconds for which a call is remembered as unknown. Minutes may pass between two turns of a conversation. */
const believed = 600_000;

/** Maximum number of remembered calls. At least half of them are remembered. */
const most = 40_000;

/** Maximum number of characters of a remembered id. */
const longest = 200;

/** A conversation of an owner. */
export interface ConversationId {
  readonly owner: string;
  /** Identifies the conversation among most others of this owner, and among those of other owners. */
  readonly opening: string;
}

/** A call in a conversation, and the index of the message in which its turn begins. */
export interface PlacedCall {
  readonly call: IdOfCall;
  readonly index: number;
}

/** Unknown calls of one turn, and the time until which they are remembered. */
interface Unknown {
  readonly ids: string[];
  readonly until: number;
}

/** The turns of a conversation, by the indexes of their first messages. */
type Conversation = Map<number, Unknown>;

/**
 * Cache of unknown calls. Each request of a conversation repeats all earlier calls, most of them of models whose reasoning is not stored. A call is
 * remembered by conversation and turn, because another one may have an equal id. Conversation and turn are looked up first and their ids compared
 * then, because a look-up of each id together with its conversation took six times as long.
 */
export class Absences {
  #young = new Map<string, Conversation>();
  #old = new Map<string, Conversation>();
  #count = 0;
  /** Ids of calls that this process has stored since, by owner. They are looked up again. */
  #known = new Map<string, Set<string>>();
  #knownCount = 0;

  /** Returns the calls of a conversation without those that are remembered as unknown. */
  others(
    { owner, opening }: ConversationId,
    calls: readonly PlacedCall[],
    now: number,
  ): readonly PlacedCall[] {
    const [young, old] = [this.#young.get(opening), this.#old.get(opening)];
    if (young === undefined && old === undefined) return calls;
    const known = this.#known.get(owner);
    return calls.filter(
      ({ call: { id }, index }) =>
        !(isUnknown(young?.get(index), id, now) || isUnknown(old?.get(index), id, now)) ||
        known?.has(id) === true,
    );
  }

  /** Remembers a call as unknown. */
  add({ opening }: ConversationId, { call: { id }, index }: PlacedCall, now: number): void {
    if (id.length > longest) return;
    let conversation = this.#young.get(opening);
    if (conversation === undefined) this.#young.set(opening, (conversation = new Map()));
    const unknown = conversation.get(index);
    if (unknown === undefined || unknown.until < now)
      conversation.set(index, { ids: [id], until: now + believed });
    else if (unknown.ids.includes(id)) return;
    else unknown.ids.push(id);
    this.#count += 1;
    if (this.#count < most / 2) return;
    this.#old = this.#young;
    this.#young = new Map();
    this.#count = 0;
  }

  /** Marks a call to be looked up again, because it was stored. */
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

function isUnknown(unknown: Unknown | undefined, id: string, now: number): boolean {
  return unknown !== undefined && unknown.until >= now && unknown.ids.includes(id);
}
