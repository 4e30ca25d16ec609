import type { Keyv } from 'keyv';
import type { ApiKey } from '../../sdk/api-key.ts';

/** Number of names that are read in one question to the database. */
const batchSize = 500;

/**
 * Names of deleted keys by their ids, in the database. A name of its own for each record of a call would be written millions of times, and
 * be out of date when a key is renamed; this is one short entry for each deleted key, read when somebody looks at its calls.
 */
export class DeletedNames {
  readonly #names: Keyv<string>;

  constructor(names: Keyv<string>) {
    this.#names = names;
  }

  /** Keeps the name of a key that is about to be deleted. Rejects when the database fails. */
  async keep({ id, name }: ApiKey): Promise<void> {
    await this.#names.set(id, name);
  }

  /** Returns the names of those of these keys that were deleted. */
  async find(gone: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const found = new Map<string, string>();
    for (let start = 0; start < gone.length; start += batchSize) {
      const some = gone.slice(start, start + batchSize);
      // oxlint-disable-next-line no-await-in-loop -- one question at a time, however many ids there are
      const names = await this.#names.getMany(some);
      some.forEach((id, index) => {
        const name: unknown = names[index];
        if (typeof name === 'string') found.set(id, name);
      });
    }
    return found;
  }
}
