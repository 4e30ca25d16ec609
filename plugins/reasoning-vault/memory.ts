/** Stores turns with reasoning, and the makers of proofs, in the database with copies of the latest in memory. */
import { hash } from 'node:crypto';
import type { Stores } from 'sluice';
import { Absences, type ConversationId, type PlacedCall } from './absences.ts';
import { exactKey, idKey, whereOf } from './call-keys.ts';
import type { Maker, Turn } from './turn.ts';

/**
 * Value of an entry: a turn, the key of a turn, or the maker of a proof. In the entry of an id, `where` identifies the turn; entries of earlier
 * versions have none.
 */
export type Kept =
  | { readonly turn: Turn; readonly where?: string }
  | { readonly see: string; readonly where?: string }
  | { readonly maker: Maker };

/** An entry to be stored. */
export interface Entry {
  readonly key: string;
  readonly value: Kept;
}

/** Options of a {@link Memory}. */
export interface MemoryOptions {
  /** Lifetime of an entry in milliseconds. */
  readonly ttl: number;
  /** Maximum number of bytes of the copies in memory. */
  readonly copies: number;
  /** Receives errors of the database. Calls continue with the copies in memory. */
  readonly failed: (error: unknown) => void;
}

interface Copy {
  /** Undefined: the store has no such entry. */
  readonly value: Kept | undefined;
  readonly weight: number;
  /** Expiry of the copy, in milliseconds since 1970. */
  readonly until: number;
}

interface Stored {
  readonly value: Kept;
  readonly until: number;
}

/** Estimated bytes of a key, a map entry and a small value. */
const leastWeight = 300;
/** Milliseconds for which an entry is remembered as missing, where its key is not looked up before it is stored. */
const absence = 600_000;

/** Entries in the database, for all processes and the next start, with copies of the last used ones in memory. */
export class Memory {
  readonly #store: ReturnType<Stores['namespace']>;
  readonly #options: MemoryOptions;
  /** In the order of last use. Missing entries are in the order in which they were looked up. */
  readonly #copies = new Map<string, Copy>();
  #weight = 0;
  readonly #absences = new Absences();

  constructor(stores: Stores, options: MemoryOptions) {
    this.#store = stores.namespace<Stored>('reasoning-vault');
    this.#options = options;
  }

  /**
   * Returns the entries that exist, by key. `guessable`: the keys may be looked up before they are stored, so that their absence is not
   * remembered.
   */
  async read(keys: Iterable<string>, guessable = false): Promise<Map<string, Kept>> {
    return (await this.#read(keys, guessable)).found;
  }

  async #read(
    keys: Iterable<string>,
    guessable: boolean,
  ): Promise<{ readonly found: Map<string, Kept>; readonly isComplete: boolean }> {
    const found = new Map<string, Kept>();
    const missing = new Set<string>();
    const now = Date.now();
    for (const key of keys) {
      const copy = this.#copies.get(key);
      if (copy === undefined || copy.until < now) missing.add(key);
      else {
        if (copy.value === undefined) continue;
        this.#copies.delete(key);
        this.#copies.set(key, copy);
        found.set(key, copy.value);
      }
    }
    if (missing.size === 0) return { found, isComplete: true };
    const keysToRead = [...missing];
    const stored = await this.#stored(keysToRead);
    keysToRead.forEach((key, index) => {
      const entry = stored?.[index];
      // A damaged entry reads as an object without members.
      if (entry?.value !== undefined && entry.until >= now) {
        found.set(key, entry.value);
        this.#copy(key, entry.value, entry.until);
      } else if (stored !== undefined && !guessable) this.#copy(key, undefined, now + absence);
    });
    return { found, isComplete: stored !== undefined };
  }

  /** Returns the entries of the ids of calls, by id. Calls that are remembered as unknown are not looked up. */
  async readCalls(conversation: ConversationId, calls: readonly PlacedCall[]): Promise<Map<string, Kept>> {
    const now = Date.now();
    const lookedUp = this.#absences.others(conversation, calls, now);
    if (lookedUp.length === 0) return new Map();
    const keys = lookedUp.map(({ call }) => idKey(conversation.owner, call));
    const { found, isComplete } = await this.#read(keys, true);
    const known = new Map<string, Kept>();
    lookedUp.forEach((one, number) => {
      const kept = found.get(keys[number] ?? '');
      if (kept !== undefined) known.set(one.call.id, kept);
      else if (isComplete) this.#absences.add(conversation, one, now);
    });
    return known;
  }

  /** Returns the entries for a turn, by the keys of its calls, for {@link write}. `before`: digest of the conversation before the turn. */
  entriesOf(owner: string, turn: Turn, before: string): readonly Entry[] {
    const [first, ...others] = turn.calls;
    if (first === undefined) return [];
    const see = exactKey(owner, first, before);
    for (const call of turn.calls) this.#absences.forget(owner, call);
    return [
      { key: see, value: { turn } },
      ...others.map((call): Entry => ({ key: exactKey(owner, call, before), value: { see } })),
      ...turn.calls.map((call): Entry => ({
        key: idKey(owner, call),
        value: { see, where: whereOf(call, before) },
      })),
    ];
  }

  /** Writes entries. Resolves also when the database fails. */
  async write(entries: readonly Entry[]): Promise<void> {
    const { ttl, failed } = this.#options;
    const until = Date.now() + ttl;
    for (const { key, value } of entries) this.#copy(key, value, until);
    try {
      await this.#store.setMany(
        entries.map(({ key, value }) => ({ key, value: { value, until } satisfies Stored, ttl })),
      );
    } catch (error) {
      failed(error);
    }
  }

  async #stored(keys: string[]): Promise<readonly (Stored | undefined)[] | undefined> {
    try {
      return (await this.#store.getMany<Stored>(keys)) as readonly (Stored | undefined)[];
    } catch (error) {
      this.#options.failed(error);
      return undefined;
    }
  }

  #copy(key: string, value: Kept | undefined, until: number): void {
    this.#forget(key);
    const weight = leastWeight + weightOf(value);
    if (weight > this.#options.copies) return;
    this.#copies.set(key, { value, weight, until });
    this.#weight += weight;
    for (const oldest of this.#copies.keys()) {
      if (this.#weight <= this.#options.copies) return;
      this.#forget(oldest);
    }
  }

  #forget(key: string): void {
    const copy = this.#copies.get(key);
    if (copy === undefined) return;
    this.#copies.delete(key);
    this.#weight -= copy.weight;
  }
}

function weightOf(value: Kept | undefined): number {
  if (value === undefined || !('turn' in value)) return 0;
  return sizeOf(value.turn);
}

/** Estimates the bytes of a turn in memory. */
export function sizeOf({ thoughts, calls }: Pick<Turn, 'thoughts' | 'calls'>): number {
  let size = 0;
  for (const { text, proof, extra } of thoughts)
    size +=
      200 +
      2 * text.length +
      (proof?.value.length ?? 0) +
      (extra === undefined ? 0 : JSON.stringify(extra).length);
  for (const { id, name, proof } of calls) size += 200 + id.length + name.length + (proof?.value.length ?? 0);
  return size;
}

/** Returns the key of a proof's maker. All owners share these entries, because a proof can be read by its maker only. */
export function proofKey(value: string): string {
  return `proof:${hash('sha256', value, 'base64url')}`;
}
