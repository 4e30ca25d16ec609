/** The API keys that a process has used: reads them on demand into a cache, and follows changes that other processes write. */
import type { Keyv } from 'keyv';
import type { ApiKey } from '../../sdk/api-key.ts';
import type { Stores } from '../stores.ts';
import { KeyCache, type KeyLimits, type Known } from './cache.ts';
import { Lookups } from './lookups.ts';

/** Namespace of the entries of keys. The name of an entry, its row, is the hash of the secret. */
export const NAMESPACE = 'api-keys';

/** Number of keys that are read again in one query. */
const batchSize = 200;

/** Decodes a stored value; returns undefined, and reports it, when it is invalid. */
export type DecodeKey = (row: string, value: unknown) => ApiKey | undefined;

/** Runs when keys have been read, before they or their removal become visible. Without a list they are not decoded yet. */
export type Prepare = (keys?: readonly (ApiKey | undefined)[]) => Promise<void>;

/** The keys that this process uses. Each is read when its secret is first used. */
export class KeysInUse {
  readonly #stores: Stores;
  readonly #records: Keyv<unknown>;
  readonly #decode: DecodeKey;
  readonly #cache: KeyCache;
  readonly #lookups: Lookups;
  /** Called when a cached key is gone from its row. */
  readonly #gone: (before: ApiKey) => void;
  readonly #prepare: Prepare;

  #loadedRevision: number | undefined;
  #loading: Promise<void> | undefined;
  /** The reading after that one, for all callers that came meanwhile. */
  #following: Promise<void> | undefined;
  /** Rows that this process wrote during a reading, which may have read their earlier state. */
  #writtenMeanwhile: Set<string> | undefined;

  constructor(
    stores: Stores,
    decode: DecodeKey,
    limits: KeyLimits,
    gone: (key: ApiKey) => void,
    prepare: Prepare = () => Promise.resolve(),
  ) {
    this.#stores = stores;
    this.#records = stores.namespace<unknown>(NAMESPACE);
    this.#decode = decode;
    this.#gone = gone;
    this.#prepare = prepare;
    this.#cache = new KeyCache(limits);
    this.#lookups = new Lookups(
      (rows) => this.#readRows(rows),
      (row, key) => this.#cache.put(row, key),
    );
  }

  /** Revision of the keys that the cache reflects. */
  get revision(): number | undefined {
    return this.#loadedRevision;
  }

  get size(): KeyCache['size'] {
    return this.#cache.size;
  }

  /** Returns the key in a row from the cache. */
  use(row: string): Known | undefined {
    return this.#cache.use(row);
  }

  isStranger(row: string): boolean {
    return this.#cache.isStranger(row);
  }

  /** Reads the key in a row from the database. Rejects when the database fails. */
  read(row: string): Promise<ApiKey | undefined> {
    return this.#lookups.find(row);
  }

  /** Brings the cache up to date with a reading that begins now or later, because a running one may be older than the caller's knowledge. */
  load(): Promise<void> {
    if (this.#loading !== undefined)
      return (this.#following ??= this.#loading
        .catch(() => {})
        .then(() => {
          this.#following = undefined;
          return this.load();
        }));
    this.#loading = this.#follow().finally(() => {
      this.#loading = undefined;
      this.#writtenMeanwhile = undefined;
    });
    return this.#loading;
  }

  /** As {@link load}, where the revision has changed. */
  async refresh(): Promise<void> {
    if ((await this.#stores.revision(NAMESPACE)) !== this.#loadedRevision) await this.load();
  }

  /**
   * Applies a write of this process at once. `since` is the revision that was known when the write began: the next reading repeats all changes
   * since then, to find those of other processes to the same key.
   */
  remember(row: string, key: ApiKey | undefined, since: number | undefined): void {
    this.#cache.put(row, key);
    this.#lookups.written(row, key);
    this.#loadedRevision =
      this.#loadedRevision === undefined || since === undefined
        ? undefined
        : Math.min(this.#loadedRevision, since);
    this.#writtenMeanwhile?.add(row);
  }

  /** Waits for running readings. */
  async close(): Promise<void> {
    await (this.#following ?? this.#loading)?.catch(() => {});
    await this.#lookups.close();
  }

  async #readRows(rows: string[]): Promise<readonly (ApiKey | undefined)[]> {
    const values = await this.#records.getMany(rows);
    const keys = rows.map((row, index) => {
      const value = values[index];
      return value === undefined ? undefined : this.#decode(row, value);
    });
    await this.#prepare(keys);
    return keys;
  }

  async #follow(): Promise<void> {
    const written = (this.#writtenMeanwhile = new Set<string>());
    const changed =
      this.#loadedRevision === undefined
        ? undefined
        : await this.#stores.changes<unknown>(NAMESPACE, this.#loadedRevision);
    if (changed === undefined) return this.#readAgain(written);
    await this.#prepare();
    for (const [row, value] of changed.entries) if (!written.has(row)) this.#apply(row, value);
    if (written.size === 0) this.#loadedRevision = changed.revision;
  }

  /** Reads all cached keys again, because it is not known which have changed. */
  async #readAgain(written: ReadonlySet<string>): Promise<void> {
    const revision = await this.#stores.revision(NAMESPACE);
    this.#lookups.writtenAll();
    this.#cache.forgetStrangers();
    const rows = this.#cache.rows();
    for (let start = 0; start < rows.length; start += batchSize) {
      const some = rows.slice(start, start + batchSize);
      // oxlint-disable-next-line no-await-in-loop -- one question at a time, however many keys there are
      const values = await this.#records.getMany(some);
      // oxlint-disable-next-line no-await-in-loop -- what was read with these
      await this.#prepare();
      some.forEach((row, index) => {
        if (!written.has(row)) this.#apply(row, values[index]);
      });
    }
    this.#loadedRevision = written.size === 0 ? revision : undefined;
  }

  /** Applies a write of another process to a row. Ignores rows that are neither cached nor being looked up. */
  #apply(row: string, value: unknown): void {
    const isHeld = this.#cache.has(row);
    const key =
      value === undefined || !(isHeld || this.#lookups.has(row)) ? undefined : this.#decode(row, value);
    const before = isHeld && key === undefined ? this.#cache.use(row)?.key : undefined;
    this.#lookups.written(row, key);
    this.#cache.change(row, key);
    if (before !== undefined) this.#gone(before);
  }
}
