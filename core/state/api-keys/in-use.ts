import type { Keyv } from 'keyv';
import type { ApiKey } from '../../sdk/api-key.ts';
import type { Stores } from '../stores.ts';
import { KeyCache, type KeyLimits, type Known } from './cache.ts';
import { Lookups } from './lookups.ts';

/** Namespace of the entries of keys. The name of an entry, its row, is the hash of the secret. */
export const NAMESPACE = 'api-keys';

/** Number of keys that are read again together. */
const batchSize = 200;

/** Makes a key of a stored value; undefined, and reported, when it does not work. */
export type DecodeKey = (row: string, value: unknown) => ApiKey | undefined;

/** Runs when keys have been read, and before anybody sees them or that some are gone. Without a list they are not decoded yet. */
export type Prepare = (keys?: readonly (ApiKey | undefined)[]) => Promise<void>;

/**
 * The keys that this process uses. They are read when their secrets are first seen, and follow what anybody writes to them.
 */
export class KeysInUse {
  readonly #stores: Stores;
  readonly #records: Keyv<unknown>;
  readonly #decode: DecodeKey;
  readonly #cache: KeyCache;
  readonly #lookups: Lookups;
  /** A key that was held is gone from its row. */
  readonly #gone: (before: ApiKey) => void;
  readonly #prepare: Prepare;

  #loadedRevision: number | undefined;
  #loading: Promise<void> | undefined;
  /** The reading behind that one, for all who have asked meanwhile. */
  #following: Promise<void> | undefined;
  /** What this process wrote while it was reading, and may have read as it was before. */
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

  /** Revision of the keys that memory is up to date with. */
  get revision(): number | undefined {
    return this.#loadedRevision;
  }

  get size(): KeyCache['size'] {
    return this.#cache.size;
  }

  /** The key in a row, from memory. */
  use(row: string): Known | undefined {
    return this.#cache.use(row);
  }

  isStranger(row: string): boolean {
    return this.#cache.isStranger(row);
  }

  /** The key in a row, from the database. Rejects when that cannot tell. */
  read(row: string): Promise<ApiKey | undefined> {
    return this.#lookups.ask(row);
  }

  /** Brings memory up to date: a reading that begins now or later, because what is being read may be older than what the caller knows. */
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

  /** As {@link load}, where somebody has written since. */
  async refresh(): Promise<void> {
    if ((await this.#stores.revision(NAMESPACE)) !== this.#loadedRevision) await this.load();
  }

  /**
   * In force here at once. `since` is the revision that was known when the writing began: what others wrote to this key from then on, also
   * what has been read already, is found by the reading that follows.
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

  /** Waits for what is being read. */
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

  /** It is not known what has changed: all that is held is read again. */
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

  /** Somebody has written this to a row. Only what is asked for here is looked at. */
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
