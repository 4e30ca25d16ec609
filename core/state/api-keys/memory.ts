import type { ApiKey } from '../../sdk/api-key.ts';

interface Known {
  readonly key: ApiKey;
  /** The bytes of its hash. */
  readonly digest: Buffer;
}

/** API keys by the rows that they stand in, which are the hashes of their secrets, and by their ids. */
export class KeysInMemory {
  readonly #rows = new Map<string, Known>();
  readonly #rowsOfIds = new Map<string, string>();

  /** Puts the key of a row in its place; undefined takes it away. */
  put(row: string, key: ApiKey | undefined): void {
    const id = this.#rows.get(row)?.key.id;
    // A key that got another secret stands in another row by now.
    if (id !== undefined && this.#rowsOfIds.get(id) === row) this.#rowsOfIds.delete(id);
    if (key === undefined) {
      this.#rows.delete(row);
      return;
    }
    this.#rows.set(row, { key, digest: Buffer.from(key.hash, 'hex') });
    this.#rowsOfIds.set(key.id, row);
  }

  inRow(row: string): Known | undefined {
    return this.#rows.get(row);
  }

  withId(id: string): ApiKey | undefined {
    const row = this.#rowsOfIds.get(id);
    return row === undefined ? undefined : this.#rows.get(row)?.key;
  }

  /** Oldest first. */
  all(): ApiKey[] {
    return [...this.#rows.values()].map(({ key }) => key).toSorted((a, b) => a.createdAt - b.createdAt);
  }
}
