/** Bounded cache of API keys in one process, by the hashes of their secrets, including hashes that belong to no key. */
import type { ApiKey } from '../../sdk/api-key.ts';
import type { FoundApiKey } from './index.ts';

/** Limits of the cache. */
export interface KeyLimits {
  /** Maximum number of keys. Beyond it, keys that were not used recently are removed. */
  readonly keys: number;
  /** Maximum number of hashes that belong to no key. */
  readonly strangers: number;
  /** Time for which such hashes are cached, in milliseconds. */
  readonly strangerMs: number;
}

/** A cached key. */
export interface Known {
  readonly key: ApiKey;
  /** True when it was used since it was added, or since the last removal passed over it. */
  isUsed: boolean;
}

/** The cache. A row is the hash of a secret. */
export class KeyCache {
  readonly #limits: KeyLimits;
  readonly #keys = new Map<string, Known>();
  /** Expiry of each row without a key. The oldest come first. */
  readonly #strangers = new Map<string, number>();

  constructor(limits: KeyLimits) {
    this.#limits = limits;
  }

  /** Number of cached keys, and of rows without a key. */
  get size(): { readonly keys: number; readonly strangers: number } {
    return { keys: this.#keys.size, strangers: this.#strangers.size };
  }

  /** Returns the key in a row, and marks it as used. */
  use(row: string): Known | undefined {
    const known = this.#keys.get(row);
    if (known !== undefined) known.isUsed = true;
    return known;
  }

  has(row: string): boolean {
    return this.#keys.has(row);
  }

  /** True when it is cached that this row has no key. */
  isStranger(row: string): boolean {
    const until = this.#strangers.get(row);
    if (until === undefined) return false;
    if (until > Date.now()) return true;
    this.#strangers.delete(row);
    return false;
  }

  /** Returns the rows of all cached keys. */
  rows(): string[] {
    return [...this.#keys.keys()];
  }

  /** Caches the content of a row: a key, or none. */
  put(row: string, key: ApiKey | undefined): void {
    this.#strangers.delete(row);
    if (key === undefined) {
      this.#keys.delete(row);
      this.#strangers.set(row, Date.now() + this.#limits.strangerMs);
      if (this.#strangers.size > this.#limits.strangers) removeFirst(this.#strangers);
      return;
    }
    const isUsed = this.#keys.get(row)?.isUsed ?? false;
    this.#keys.set(row, { key, isUsed });
    if (this.#keys.size > this.#limits.keys) this.#makeRoom();
  }

  /** Updates a row that another process has changed. Rows that are not cached are not added. */
  change(row: string, key: ApiKey | undefined): void {
    if (this.#keys.has(row)) this.put(row, key);
    else this.#strangers.delete(row);
  }

  /** Removes all rows without a key. */
  forgetStrangers(): void {
    this.#strangers.clear();
  }

  /** Removes one key that was not used since the last pass (second-chance eviction). */
  #makeRoom(): void {
    for (const [row, known] of this.#keys) {
      this.#keys.delete(row);
      if (!known.isUsed) return;
      known.isUsed = false;
      this.#keys.set(row, known);
    }
  }
}

function removeFirst(map: Map<string, unknown>): void {
  for (const row of map.keys()) {
    map.delete(row);
    return;
  }
}

/** Returns the key with its state now: disabled, expired or valid. */
export function stateOf(key: ApiKey): FoundApiKey {
  if (!key.enabled) return { key, state: 'disabled' };
  const isOver = key.expiresAt !== undefined && key.expiresAt <= Date.now();
  return { key, state: isOver ? 'expired' : 'valid' };
}
