import type { ApiKey } from '../../sdk/api-key.ts';
import type { FoundApiKey } from './index.ts';

/** Bounds of what one process holds of keys. */
export interface KeyLimits {
  /** Most keys that are held. Beyond it, keys that were not used for the longest are let go. */
  readonly keys: number;
  /** Most secrets that are remembered to be no keys. */
  readonly strangers: number;
  /** For how long they are, in milliseconds. */
  readonly strangerMs: number;
}

/** A key that is held. */
export interface Known {
  readonly key: ApiKey;
  /** Used again since it was put here, or since room was made. */
  isUsed: boolean;
}

/** The keys in use, and secrets that are none, by the rows that they stand in: the hashes of the secrets. */
export class KeyCache {
  readonly #limits: KeyLimits;
  readonly #keys = new Map<string, Known>();
  /** Until when each is remembered. The oldest come first. */
  readonly #strangers = new Map<string, number>();

  constructor(limits: KeyLimits) {
    this.#limits = limits;
  }

  /** Number of keys and of strangers that are held. */
  get size(): { readonly keys: number; readonly strangers: number } {
    return { keys: this.#keys.size, strangers: this.#strangers.size };
  }

  /** The key in a row, which counts as used from then on. */
  use(row: string): Known | undefined {
    const known = this.#keys.get(row);
    if (known !== undefined) known.isUsed = true;
    return known;
  }

  has(row: string): boolean {
    return this.#keys.has(row);
  }

  /** Whether it is remembered that there is no key in this row. */
  isStranger(row: string): boolean {
    const until = this.#strangers.get(row);
    if (until === undefined) return false;
    if (until > Date.now()) return true;
    this.#strangers.delete(row);
    return false;
  }

  /** Rows of all keys that are held. */
  rows(): string[] {
    return [...this.#keys.keys()];
  }

  /** Holds what stands in a row: a key, or none. */
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

  /** What stands in a row was changed by somebody else. Rows that nobody here has asked for are not held for that. */
  change(row: string, key: ApiKey | undefined): void {
    if (this.#keys.has(row)) this.put(row, key);
    else this.#strangers.delete(row);
  }

  /** Nothing is known any more of rows without a key. */
  forgetStrangers(): void {
    this.#strangers.clear();
  }

  /** Lets one key go that was not used since the last round; what was used gets another round. */
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

/** Returns whether the key may be used now. */
export function stateOf(key: ApiKey): FoundApiKey {
  if (!key.enabled) return { key, state: 'disabled' };
  const isOver = key.expiresAt !== undefined && key.expiresAt <= Date.now();
  return { key, state: isOver ? 'expired' : 'valid' };
}
