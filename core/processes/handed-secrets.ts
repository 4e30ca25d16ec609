/** Secrets that workers have read: the next workers start with them where a secret manager is down. They stay in memory. */
import { keyOfKnown, type KnownSecret } from '../config/secrets/known.ts';

/** Most secrets that are kept, and their texts together, in characters: configurations before may have had others. */
const most = { secrets: 1_000, characters: 8 * 1024 * 1024 };

/** The newest value of each secret, by the options of its source and its reference. */
export class HandedSecrets {
  readonly #known = new Map<string, KnownSecret>();

  add(known: readonly KnownSecret[]): void {
    for (const one of known) {
      const key = keyOfKnown(one);
      const before = this.#known.get(key);
      if (before !== undefined && before.readAt > one.readAt) continue;
      // After the secrets that were added before.
      this.#known.delete(key);
      this.#known.set(key, one);
    }
    let characters = 0;
    for (const { text } of this.#known.values()) characters += text.length;
    for (const [key, { text }] of this.#known) {
      if (this.#known.size <= most.secrets && characters <= most.characters) return;
      this.#known.delete(key);
      characters -= text.length;
    }
  }

  /** The member of a start order. */
  get order(): { readonly secrets?: readonly KnownSecret[] } {
    return this.#known.size === 0 ? {} : { secrets: [...this.#known.values()] };
  }
}
