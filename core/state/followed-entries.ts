/** Keeps what a process holds in memory up to date with a namespace that any process may write to. */
import { entriesOf, type Stores } from './stores.ts';

/** The memory of a process. */
export interface FollowedMemory<Item> {
  /** Keys of all items in memory. */
  keys(): Iterable<string>;
  /** Puts an item in the place of what was known under this key; undefined takes it out. */
  put(key: string, item: Item | undefined): void;
  /** Makes an item of a stored value; undefined, and reported, where that cannot be read. */
  decode(key: string, value: unknown): Item | undefined;
}

/** Follows a namespace. Call {@link refresh} before reading what others may have written. */
export class FollowedEntries<Item> {
  readonly #stores: Stores;
  readonly #namespace: string;
  readonly #memory: FollowedMemory<Item>;
  /** Revision of the namespace that memory is up to date with. */
  #revision: number | undefined;
  /** The refresh that runs, and the one that begins when it has ended. */
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  /** Keys that this process has written since the running refresh began, which may have read them as they were before. */
  #written = new Set<string>();

  constructor(stores: Stores, namespace: string, memory: FollowedMemory<Item>) {
    this.#stores = stores;
    this.#namespace = namespace;
    this.#memory = memory;
  }

  /**
   * Brings memory up to date where somebody has written since. One refresh runs at a time. Calls during a refresh share the one after it,
   * because the running one may have read before the caller's last event.
   */
  refresh(): Promise<void> {
    // Also where the running one has ended and the next is about to begin: a second one beside it would lose what is written meanwhile.
    if (this.#next !== undefined) return this.#next;
    if (this.#running === undefined) return this.#begin();
    this.#next = this.#running
      .catch(() => {})
      .then(() => {
        this.#next = undefined;
        return this.#begin();
      });
    return this.#next;
  }

  /** Puts what this process has written, in force here at once. The next refresh reads it once more, with what others have written to it. */
  written(key: string, item: Item | undefined): void {
    this.#memory.put(key, item);
    if (this.#running !== undefined) this.#written.add(key);
  }

  /** Waits for what is being read. */
  async close(): Promise<void> {
    await (this.#next ?? this.#running)?.catch(() => {});
  }

  #begin(): Promise<void> {
    this.#written = new Set();
    const running = this.#follow().finally(() => {
      this.#running = undefined;
    });
    this.#running = running;
    return running;
  }

  async #follow(): Promise<void> {
    // Before the entries: what is written meanwhile is read again.
    const revision = await this.#stores.revision(this.#namespace);
    if (revision === this.#revision) return;
    const changed =
      this.#revision === undefined
        ? undefined
        : await this.#stores.changes<unknown>(this.#namespace, this.#revision);
    if (changed === undefined) await this.#readAll();
    else for (const [key, value] of changed.entries) this.#put(key, value);
    this.#revision = changed === undefined || this.#written.size > 0 ? revision : changed.revision;
  }

  async #readAll(): Promise<void> {
    const gone = new Set(this.#memory.keys());
    for await (const [key, value] of entriesOf(this.#stores.namespace<unknown>(this.#namespace))) {
      gone.delete(key);
      this.#put(key, value);
    }
    for (const key of gone) this.#put(key, undefined);
  }

  #put(key: string, value: unknown): void {
    if (this.#written.has(key)) return;
    this.#memory.put(key, value === undefined ? undefined : this.#memory.decode(key, value));
  }
}
