/** Entries of a namespace in memory, which follow what other gateways write. */
import { entriesOf, type Stores } from 'sluice/internal';

/** Entries by their keys. Call `refresh` before reading what others may have written. */
export class FollowedRows<Row> {
  readonly #stores: Stores;
  readonly #namespace: string;
  readonly #kept;
  #rows = new Map<string, Row>();
  #revision: number | undefined;
  /** The refresh that runs, and the one that begins when it has ended. */
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  /** Entries that this process has written since the running refresh began; undefined for those that it has deleted. */
  #written = new Map<string, Row | undefined>();

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

  /**
   * Brings memory up to date. One refresh runs at a time. Calls during a refresh share the one after it, because the running one may have
   * read before the caller's last event.
   */
  refresh(): Promise<void> {
    if (this.#running === undefined) return this.#begin();
    this.#next ??= this.#running
      .catch(() => {})
      .then(() => {
        this.#next = undefined;
        return this.#begin();
      });
    return this.#next;
  }

  async set(key: string, row: Row): Promise<void> {
    await this.#kept.set(key, row);
    this.#apply(key, row);
  }

  async delete(key: string): Promise<void> {
    await this.#kept.delete(key);
    this.#apply(key, undefined);
  }

  #apply(key: string, row: Row | undefined): void {
    put(this.#rows, key, row);
    if (this.#running !== undefined) this.#written.set(key, row);
  }

  #begin(): Promise<void> {
    this.#written = new Map();
    const running = this.#follow().finally(() => {
      this.#running = undefined;
    });
    this.#running = running;
    return running;
  }

  async #follow(): Promise<void> {
    const revision = await this.#stores.revision(this.#namespace);
    if (revision === this.#revision) return;
    const changes =
      this.#revision === undefined
        ? undefined
        : await this.#stores.changes<Row>(this.#namespace, this.#revision);
    // Readers see the rows of before until all are read.
    const rows = changes === undefined ? await this.#readAll() : this.#rows;
    for (const [key, row] of changes?.entries ?? []) put(rows, key, row);
    // The entries that were read may be older than those that this process has written meanwhile. The next refresh reads these again.
    for (const [key, row] of this.#written) put(rows, key, row);
    this.#rows = rows;
    this.#revision = this.#written.size > 0 ? revision : (changes?.revision ?? revision);
  }

  async #readAll(): Promise<Map<string, Row>> {
    const rows = new Map<string, Row>();
    for await (const [key, row] of entriesOf(this.#kept)) put(rows, key, row);
    return rows;
  }
}

function put<Row>(rows: Map<string, Row>, key: string, row: Row | undefined): void {
  if (row === undefined) rows.delete(key);
  else rows.set(key, row);
}
