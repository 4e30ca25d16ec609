import type { PluginTools } from 'sluice';
import type { Entry } from './entry.ts';

/** Since when entries are gone: of all scopes, and of single ones. Milliseconds since 1970. */
interface Marks {
  readonly all: number;
  readonly scopes: Readonly<Record<string, number>>;
}

/** Milliseconds after which a worker reads again what others have purged, when it has something to give. */
const freshness = 1_000;

/** Maximum number of scopes that are remembered one by one: with more, everything is purged. */
const mostScopes = 1_000;

const none: Marks = { all: 0, scopes: {} };

/** Tells which entries were purged, by whichever worker. */
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
  }

  /** True for an entry that was made before its scope was purged. */
  covers({ at, scope }: Pick<Entry, 'at' | 'scope'>): boolean {
    this.#refresh();
    return at <= this.#marks.all || at <= (this.#marks.scopes[scope] ?? 0);
  }

  /** Notes a purge for all workers, which know of it within about a second. */
  async note(scope: string | undefined): Promise<void> {
    const now = Date.now();
    const changed = (before: Marks): Marks => {
      if (scope === undefined) return { all: now, scopes: {} };
      const alive = Object.entries(before.scopes).filter(([, at]) => at > now - this.#lifetime);
      if (alive.length >= mostScopes) return { all: now, scopes: {} };
      return { all: before.all, scopes: { ...Object.fromEntries(alive), [scope]: now } };
    };
    const isNew = await this.#stores.add('cache-purges', 'marks', changed(none), this.#lifetime);
    this.#marks = isNew
      ? changed(none)
      : ((await this.#stores.change<Marks>('cache-purges', 'marks', (before) => ({
          value: changed(before),
          ttl: this.#lifetime,
        }))) ?? changed(this.#marks));
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
        if (marks !== undefined) this.#marks = marks;
      })
      .catch(() => {})
      .finally(() => {
        this.#isReading = false;
      });
  }
}
