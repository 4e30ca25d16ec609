import type { Keyv } from 'keyv';
import type { ApiKey } from '../../sdk/api-key.ts';

/**
 * When keys were last used, in memory until somebody saves it. It is kept apart from the keys: a gateway that notes a use must never bring
 * back a key that was revoked meanwhile.
 */
export class LastUses {
  readonly #saved: Keyv<number>;
  /** By the rows of the keys. */
  readonly #unsaved = new Map<string, number>();

  constructor(saved: Keyv<number>) {
    this.#saved = saved;
  }

  /** The key in this row was used now. */
  note(row: string): void {
    this.#unsaved.set(row, Date.now());
  }

  /** The keys with the times of their last uses. */
  async addTo(keys: readonly ApiKey[]): Promise<ApiKey[]> {
    const saved = await this.#saved.getMany(keys.map(({ id }) => id));
    return keys.map((key, index) => {
      const lastUsedAt = this.#unsaved.get(key.hash) ?? saved[index];
      return lastUsedAt === undefined ? key : { ...key, lastUsedAt };
    });
  }

  /** There is no key in this row any more. */
  forget(row: string): void {
    this.#unsaved.delete(row);
  }

  /** The key with this id, which stood in this row, is gone for good. */
  async remove(row: string, id: string): Promise<void> {
    this.forget(row);
    await this.#saved.delete(id);
  }

  /** Writes down what is new. `idOf` gives the id of the key in a row; undefined where it is gone. */
  async save(idOf: (row: string) => string | undefined): Promise<void> {
    if (this.#unsaved.size === 0) return;
    const saving = [...this.#unsaved];
    const entries = saving.flatMap(([row, value]) => {
      const key = idOf(row);
      return key === undefined ? [] : [{ key, value }];
    });
    await this.#saved.setMany(entries);
    // Kept when that failed, and what was used again meanwhile.
    for (const [row, value] of saving) if (this.#unsaved.get(row) === value) this.#unsaved.delete(row);
  }
}
