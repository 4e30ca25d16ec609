import { createHash } from 'node:crypto';
import type { PluginTools } from 'sluice';
import { Cooldown } from './cooldown.ts';
import type { Entry } from './entry.ts';
import { inTime } from './in-time.ts';

/** Maximum number of entries that are being written. What comes meanwhile is in memory alone. */
const mostWrites = 64;

/**
 * Responses in the gateway's database, where all workers find them. Each has one of a fixed number of places, by its digest, and takes the
 * place of whichever stood there: the number of entries is bounded without counting them.
 */
export class DatabaseTier {
  readonly #places: number;
  readonly #lifetime: number;
  readonly #entries;
  readonly #lookups = new Map<string, Promise<Entry | undefined>>();
  readonly #cooldown: Cooldown;
  #writes = 0;

  /** `places`: maximum number of entries. `lifetime`: milliseconds for which one is kept. */
  constructor(places: number, lifetime: number, { stores, log }: Pick<PluginTools, 'stores' | 'log'>) {
    this.#places = places;
    this.#lifetime = lifetime;
    this.#entries = stores.namespace<Entry>('cache-responses');
    this.#cooldown = new Cooldown(
      log,
      'the database of cached responses failed: only memory is used for now',
    );
  }

  /** True where no entry can be found or kept: there is no database, or it failed a moment ago. */
  get isUnusable(): boolean {
    return this.#places === 0 || this.hasFailed;
  }

  /** True for a while after a failure. */
  get hasFailed(): boolean {
    return this.#cooldown.isActive;
  }

  /** Finds an entry. Calls at the same time share one lookup. Never rejects: a database that fails has nothing. */
  find(digest: string): Promise<Entry | undefined> {
    const known = this.#lookups.get(digest);
    if (known !== undefined) return known;
    const lookup = this.#find(digest).finally(() => this.#lookups.delete(digest));
    this.#lookups.set(digest, lookup);
    return lookup;
  }

  async #find(digest: string): Promise<Entry | undefined> {
    try {
      const entry = await inTime(this.#entries.get(this.#keyOf(digest)));
      return entry?.digest === digest && Array.isArray(entry.events) ? entry : undefined;
    } catch (error) {
      this.#cooldown.start(error);
      return undefined;
    }
  }

  /** Writes an entry. Resolves with true once other workers find it. Never rejects. */
  async set(entry: Entry): Promise<boolean> {
    if (this.isUnusable || this.#writes >= mostWrites) return false;
    this.#writes += 1;
    const age = Date.now() - entry.at;
    try {
      await this.#entries.set(this.#keyOf(entry.digest), entry, Math.max(1, this.#lifetime - age));
      return true;
    } catch (error) {
      this.#cooldown.start(error);
      return false;
    } finally {
      this.#writes -= 1;
    }
  }

  /** Deletes all entries, or those of one scope. Returns how many of a scope there were. */
  async purge(scope: string | undefined): Promise<number | undefined> {
    if (scope === undefined) {
      await this.#entries.clear();
      return undefined;
    }
    let count = 0;
    for await (const [key, entry] of this.#entries.iterator?.(undefined) ?? []) {
      if ((entry as Entry | undefined)?.scope !== scope) continue;
      await this.#entries.delete(String(key));
      count += 1;
    }
    return count;
  }

  #keyOf(digest: string): string {
    const hash = createHash('sha256').update(digest).digest();
    return `place-${hash.readUIntBE(0, 6) % this.#places}`;
  }
}
