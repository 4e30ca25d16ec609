import type { Keyv } from 'keyv';
import type { ApiKey } from '../../sdk/api-key.ts';

/** Number of times that are written together: SQLite holds the event loop up meanwhile. */
const batchSize = 200;

/**
 * When keys were last used, in memory until somebody saves it. It is kept apart from the keys: a gateway that notes a use must never bring
 * back a key that was revoked meanwhile.
 */
export class LastUses {
  readonly #saved: Keyv<number>;
  /** For how long each is kept, in milliseconds; for good where it is absent. */
  readonly #ttl: number | undefined;
  /** By the ids of the keys. */
  readonly #unsaved = new Map<string, number>();

  constructor(saved: Keyv<number>, ttl?: number) {
    this.#saved = saved;
    this.#ttl = ttl;
  }

  /** The key was used now. */
  note({ id }: Pick<ApiKey, 'id'>): void {
    this.#unsaved.set(id, Date.now());
  }

  /** The keys with the times of their last uses. */
  async addTo(keys: readonly ApiKey[]): Promise<ApiKey[]> {
    const times = await this.of(keys);
    return keys.map((key, index) => {
      const lastUsedAt = times[index];
      return lastUsedAt === undefined ? key : { ...key, lastUsedAt };
    });
  }

  /** The times of the last uses of keys, in their order. */
  async of(keys: readonly Pick<ApiKey, 'id'>[]): Promise<readonly (number | undefined)[]> {
    if (keys.length === 0) return [];
    const saved = await this.#saved.getMany(keys.map(({ id }) => id));
    return keys.map(({ id }, index) => this.#unsaved.get(id) ?? saved[index]);
  }

  /** The key is there no more, or has another secret now. */
  forget({ id }: Pick<ApiKey, 'id'>): void {
    this.#unsaved.delete(id);
  }

  /** The key is gone for good. */
  async remove(key: Pick<ApiKey, 'id'>): Promise<void> {
    this.forget(key);
    await this.#saved.delete(key.id);
  }

  /** Writes down what is new. */
  async save(): Promise<void> {
    const saving = [...this.#unsaved];
    for (let start = 0; start < saving.length; start += batchSize) {
      const some = saving.slice(start, start + batchSize);
      // oxlint-disable-next-line no-await-in-loop -- one batch after the other, with others between them
      await this.#saved.setMany(
        some.map(([key, value]) => ({ key, value, ...(this.#ttl !== undefined && { ttl: this.#ttl }) })),
      );
      // Kept when that failed, and what was used again meanwhile.
      for (const [id, value] of some) if (this.#unsaved.get(id) === value) this.#unsaved.delete(id);
    }
  }
}
