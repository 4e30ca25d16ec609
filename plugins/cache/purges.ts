import type { PluginTools } from 'sluice';
import type { Entry } from './entry.ts';

/** Times of purges: of all scopes, and of single ones. Entries up to then are gone. Milliseconds since 1970. */
interface Marks {
  readonly all: number;
  readonly scopes: Readonly<Record<string, number>>;
}

/** Milliseconds after which a worker that has entries reads the purges of others again. */
const freshness = 1_000;

/** Maximum number of scopes that are remembered one by one: with more, everything is purged. */
const mostScopes = 1_000;

/** Maximum number of attempts at writing marks that expire meanwhile. */
const mostTurns = 3;

const none: Marks = { all: 0, scopes: {} };

/** Finds out which entries were purged by any worker. */
export class Purges {
  readonly #stores: PluginTools['stores'];
  readonly #kept;
  readonly #lifetime: number;
  #marks = none;
  #readAt = 0;
  #isReading = false;

  /** `lifetime`: milliseconds after which no entry is left that was written before a purge. */
  constructor(lifetime: number, stores: PluginTools['stores']) {
    this.#stores = stores;
    this.#lifetime = lifetime;
    this.#kept = stores.namespace<Marks>('cache-purges');
    this.#refresh();
  }

  /** Returns true for an entry that was made before its scope was purged. */
  covers({ at, scope }: Pick<Entry, 'at' | 'scope'>): boolean {
    this.#refresh();
    return at <= this.#marks.all || at <= (this.#marks.scopes[scope] ?? 0);
  }

  /** Notes a purge for all workers, which know of it within about a second. */
  async note(scope: string | undefined): Promise<void> {
    const now = Date.now();
    const own: Marks = scope === undefined ? { all: now, scopes: {} } : { all: 0, scopes: { [scope]: now } };
    this.#marks = this.#joined(this.#marks, await this.#write(own));
  }

  /** Adds marks to those in the database. Returns all of them. */
  async #write(own: Marks): Promise<Marks> {
    for (let round = 0; round < mostTurns; round += 1) {
      // oxlint-disable-next-line no-await-in-loop -- again only where the marks expired between the two
      if (await this.#stores.add('cache-purges', 'marks', own, this.#lifetime)) return own;
      // oxlint-disable-next-line no-await-in-loop -- see above
      const written = await this.#stores.change<Marks>('cache-purges', 'marks', (before) => ({
        value: this.#joined(before, own),
        ttl: this.#lifetime,
      }));
      if (written !== undefined) return written;
    }
    throw new Error('The purge could not be written to the database.');
  }

  /** Reads in the background what others have purged. A database that fails changes nothing. */
  #refresh(): void {
    const now = Date.now();
    if (this.#isReading || now - this.#readAt < freshness) return;
    this.#readAt = now;
    this.#isReading = true;
    void this.#kept
      .get('marks')
      .then((marks) => {
        // Marks that were noted while these were read are newer.
        if (marks !== undefined) this.#marks = this.#joined(this.#marks, marks);
      })
      .catch(() => {})
      .finally(() => {
        this.#isReading = false;
      });
  }

  /** Returns the later of each two marks, without those that no entry can be older than. */
  #joined(one: Marks, other: Marks): Marks {
    const all = Math.max(one.all, other.all);
    const oldest = Math.max(all, Date.now() - this.#lifetime);
    const scopes: Record<string, number> = {};
    for (const marks of [one.scopes, other.scopes])
      for (const [scope, at] of Object.entries(marks))
        if (at > oldest) scopes[scope] = Math.max(at, scopes[scope] ?? 0);
    const times = Object.values(scopes);
    if (times.length <= mostScopes) return { all, scopes };
    return { all: times.reduce((latest, at) => Math.max(latest, at), all), scopes: {} };
  }
}
