/** Entries of a namespace in memory, which follow what other gateways write. */
import { entriesOf, type Stores } from 'sluice/internal';

/** Entries by their keys. Call `refresh` before reading what others may have written. */
export class FollowedRows<Row> {
  readonly #stores: Stores;
  readonly #namespace: string;
  readonly #kept;
  readonly #rows = new Map<string, Row>();
  #revision: number | undefined;

  constructor(stores: Stores, namespace: string) {
    this.#stores = stores;
    this.#namespace = namespace;
    this.#kept = stores.namespace<Row>(namespace);
  }

  get(key: string): Row | undefined {
    return this.#rows.get(key);
  }

  entries(): IterableIterator<[string, Row]> {
    return this.#rows.entries();
  }

  async refresh(): Promise<void> {
    const revision = await this.#stores.revision(this.#namespace);
    if (revision === this.#revision) return;
    const changes =
      this.#revision === undefined
        ? undefined
        : await this.#stores.changes<Row>(this.#namespace, this.#revision);
    if (changes === undefined) {
      this.#rows.clear();
      for await (const [key, row] of entriesOf(this.#kept)) if (row !== undefined) this.#rows.set(key, row);
      this.#revision = revision;
      return;
    }
    for (const [key, row] of changes.entries)
      if (row === undefined) this.#rows.delete(key);
      else this.#rows.set(key, row);
    this.#revision = changes.revision;
  }

  async set(key: string, row: Row): Promise<void> {
    await this.#kept.set(key, row);
    this.#rows.set(key, row);
  }

  async delete(key: string): Promise<void> {
    await this.#kept.delete(key);
    this.#rows.delete(key);
  }
}
