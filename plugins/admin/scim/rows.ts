/** Entries of a namespace in memory, which follow what other gateways write. */
import { FollowedEntries } from 'sluice/internal';
import type { Stores } from '../core-types.ts';

/** Entries by their keys. Call `refresh` before reading what others may have written. */
export class FollowedRows<Row> {
  readonly #kept;
  readonly #rows = new Map<string, Row>();
  readonly #followed: FollowedEntries<Row>;

  constructor(stores: Stores, namespace: string) {
    this.#kept = stores.namespace<Row>(namespace);
    this.#followed = new FollowedEntries(stores, namespace, {
      keys: () => this.#rows.keys(),
      put: (key, row) => {
        if (row === undefined) this.#rows.delete(key);
        else this.#rows.set(key, row);
      },
      decode: (_key, value) => value as Row,
    });
  }

  get(key: string): Row | undefined {
    return this.#rows.get(key);
  }

  entries(): IterableIterator<[string, Row]> {
    return this.#rows.entries();
  }

  /** Brings memory up to date. */
  refresh(): Promise<void> {
    return this.#followed.refresh();
  }

  async set(key: string, row: Row): Promise<void> {
    await this.#kept.set(key, row);
    this.#followed.written(key, row);
  }

  async delete(key: string): Promise<void> {
    await this.#kept.delete(key);
    this.#followed.written(key, undefined);
  }
}
