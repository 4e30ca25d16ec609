import { hash } from 'node:crypto';
import type { Stores } from 'sluice';
import { Absences, type Place, type PlacedCall } from './absences.ts';
import { exactKey, idKey, whereOf } from './call-keys.ts';
import type { Maker, Turn } from './turn.ts';

/**
 * What is kept under a key: a turn, the key of the turn that the key stands for, or the maker of a proof. Under a key of an id, `where` says
 * which turn it is; what versions before this rule have kept says nothing.
 */
export type Kept =
  | { readonly turn: Turn; readonly where?: string }
  | { readonly see: string; readonly where?: string }
  | { readonly maker: Maker };

/** An entry to be kept. */
export interface Entry {
  readonly key: string;
  readonly value: Kept;
}

/** How long and how much is kept. */
export interface MemoryOptions {
  /** Milliseconds that an entry is kept. */
  readonly ttl: number;
  /** Bytes of entries of which this process holds a copy. */
  readonly copies: number;
  /** Told of a database that cannot be read or written: calls go on with what the copies know. */
  readonly failed: (error: unknown) => void;
}

interface Copy {
  /** Undefined: the store has no such entry. */
  readonly value: Kept | undefined;
  readonly weight: number;
  /** When it must be asked for again, in milliseconds since 1970. */
  readonly until: number;
}

interface Stored {
  readonly value: Kept;
  readonly until: number;
}

/** What a key, a map's node and a small entry weigh, about. */
const leastWeight = 300;
/** How long it is believed that an entry does not exist, in milliseconds, where nobody asks for it before it is made. */
const absence = 600_000;

/** Turns and makers of proofs: in the database, so that every process and the next start has them, with copies of the latest in memory. */
export class Memory {
  readonly #store: ReturnType<Stores['namespace']>;
  readonly #options: MemoryOptions;
  /** In the order of use, the oldest first; what does not exist in the order in which that was found out. */
  readonly #copies = new Map<string, Copy>();
  #weight = 0;
  readonly #absences = new Absences();

  constructor(stores: Stores, options: MemoryOptions) {
    this.#store = stores.namespace<Stored>('reasoning-vault');
    this.#options = options;
  }

  /** The entries that exist, by key. `guessable`: the keys may be asked for before they are made, so that absence is not remembered. */
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
    const asked = [...missing];
    const stored = await this.#stored(asked);
    asked.forEach((key, index) => {
      const entry = stored?.[index];
      // A damaged entry reads as an object without members.
      if (entry?.value !== undefined && entry.until >= now) {
        found.set(key, entry.value);
        this.#copy(key, entry.value, entry.until);
      } else if (stored !== undefined && !guessable) this.#copy(key, undefined, now + absence);
    });
    return { found, isComplete: stored !== undefined };
  }

  /** What is kept under the ids of calls, by id. Those of which nothing was known in the same place are not asked for again. */
  async readCalls(place: Place, calls: readonly PlacedCall[]): Promise<Map<string, Kept>> {
    const now = Date.now();
    const asked = this.#absences.others(place, calls, now);
    if (asked.length === 0) return new Map();
    const keys = asked.map(({ call }) => idKey(place.owner, call));
    const { found, isComplete } = await this.#read(keys, true);
    const known = new Map<string, Kept>();
    asked.forEach((one, number) => {
      const kept = found.get(keys[number] ?? '');
      if (kept !== undefined) known.set(one.call.id, kept);
      else if (isComplete) this.#absences.add(place, one, now);
    });
    return known;
  }

  /** Keeps a turn under the keys of its calls. Resolves as {@link write}. `before` is the digest of what stood before it. */
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

  /** Resolves when the entries are in the database, or cannot be. */
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

/** About how many bytes a turn takes. */
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

/** The key of a proof's maker. A proof says nothing to anybody but who made it, so that all owners share these. */
export function proofKey(value: string): string {
  return `proof:${hash('sha256', value, 'base64url')}`;
}
