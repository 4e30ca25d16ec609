import type { PluginTools } from 'sluice';
import { DatabaseTier } from './database.ts';
import type { Entry } from './entry.ts';
import { MemoryTier } from './memory.ts';
import { lifetimeOf, type CacheOptions } from './options.ts';
import { Purges } from './purges.ts';

/** Responses that are kept: in the memory of this worker, and behind that in the database. */
export class ResponseStore {
  readonly #memory: MemoryTier;
  readonly #database: DatabaseTier;
  readonly #purges: Purges;
  readonly #lifetime: number;

  constructor(options: CacheOptions, tools: Pick<PluginTools, 'stores' | 'log'>) {
    const { memoryBytes, databaseEntries } = options;
    this.#lifetime = lifetimeOf(options);
    this.#memory = new MemoryTier(memoryBytes);
    this.#database = new DatabaseTier(databaseEntries, this.#lifetime, tools);
    this.#purges = new Purges(this.#lifetime, tools.stores);
  }

  /** Finds an entry, fresh or stale: at once where memory has it. Never rejects. */
  find(digest: string): Entry | undefined | Promise<Entry | undefined> {
    const known = this.#memory.get(digest);
    if (known !== undefined && this.#isAlive(known)) return known;
    if (this.#database.isUnusable) return undefined;
    return this.#database.find(digest).then((entry) => {
      if (entry === undefined || !this.#isAlive(entry)) return undefined;
      this.#memory.set(entry);
      return entry;
    });
  }

  /** True for a while after the database failed: then an entry that is not found may be there. */
  get hasFailed(): boolean {
    return this.#database.hasFailed;
  }

  /** Stores an entry, unless its scope was purged after its request arrived. Resolves with true once other workers can find it. Never rejects. */
  async set(entry: Entry): Promise<boolean> {
    if (!this.#isAlive(entry)) return false;
    this.#memory.set(entry);
    return this.#database.set(entry);
  }

  /** Deletes everything, or what one scope has. Returns how many entries of a scope the database had. */
  async purge(scope: string | undefined): Promise<number | undefined> {
    await this.#purges.note(scope);
    this.#memory.purge((entry) => this.#purges.covers(entry));
    return this.#database.purge(scope);
  }

  #isAlive(entry: Entry): boolean {
    return Date.now() - entry.at <= this.#lifetime && !this.#purges.covers(entry);
  }
}
