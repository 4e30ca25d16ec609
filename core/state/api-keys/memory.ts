import type { ApiKey } from '../../sdk/api-key.ts';
import type { FoundApiKey } from './index.ts';

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

  /** Oldest first; those of one moment by their ids. */
  all(): ApiKey[] {
    return this.#sorted(() => true);
  }

  /** A page, newest first: see {@link ApiKeys.page}. */
  page(limit: number, after?: string, search?: string): { readonly keys: ApiKey[]; readonly next?: string } {
    const isFound = search === undefined ? () => true : searchFor(search);
    const older = this.#sorted((key) => (after === undefined || placeOf(key) < after) && isFound(key));
    const keys = older.slice(-limit).toReversed();
    const last = keys.at(-1);
    return older.length > limit && last !== undefined ? { keys, next: placeOf(last) } : { keys };
  }

  /** The keys that fit, oldest first. Those that do not fit are not sorted. */
  #sorted(fits: (key: ApiKey) => boolean): ApiKey[] {
    const keys: ApiKey[] = [];
    for (const { key } of this.#rows.values()) if (fits(key)) keys.push(key);
    return keys.toSorted((a, b) => (placeOf(a) < placeOf(b) ? -1 : 1));
  }
}

/** Returns a predicate for the keys that a search selects: see {@link ApiKeys.page}. */
function searchFor(search: string): (key: ApiKey) => boolean {
  const text = search.toLowerCase();
  return ({ id, name, note = '', prefix }) =>
    name.toLowerCase().includes(text) ||
    note.toLowerCase().includes(text) ||
    id.toLowerCase().includes(text) ||
    prefix.startsWith(search);
}

/** The place of a key among all: the same also when it has gone. */
function placeOf({ createdAt, id }: ApiKey): string {
  return `${createdAt.toString(36).padStart(9, '0')}-${id}`;
}

/** Returns whether the key may be used now. */
export function stateOf(key: ApiKey): FoundApiKey {
  if (!key.enabled) return { key, state: 'disabled' };
  const isOver = key.expiresAt !== undefined && key.expiresAt <= Date.now();
  return { key, state: isOver ? 'expired' : 'valid' };
}
