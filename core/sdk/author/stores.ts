/** The gateway's database, as plugins see it. */
import type { Keyv } from 'keyv';
import type { VectorLimits, VectorStore } from './vectors.ts';

/**
 * Storage of a plugin in the gateway's database.
 *
 * @example
 * const seen = stores.namespace<number>('greeter');
 * await seen.set(keyId, Date.now(), 60_000);
 */
export interface Stores {
  /**
   * Returns the entries under this name (lower-case letters, digits and hyphens), as a Keyv. Choose one that tells of your plugin: whoever uses the
   * same name sees the same entries. Times to live are in milliseconds. A database failure rejects the call that met it.
   */
  namespace<Value>(name: string): Keyv<Value>;
  /** Writes an entry unless there is one under this key, whoever else tries at the same time. Says whether it did. */
  add<Value>(name: string, key: string, value: Value, ttl?: number): Promise<boolean>;
  /**
   * Changes an entry by what it is, so that nothing that others write meanwhile is lost. Gives what was written; undefined when nothing
   * was, because there is no entry or `change` wanted none of it.
   */
  change<Value>(
    name: string,
    key: string,
    change: (value: Value) => { readonly value: Value; readonly ttl?: number } | undefined,
  ): Promise<Value | undefined>;
  /**
   * Returns a number that changes with every write to a namespace, by this process or another. A plugin that keeps a copy in memory remembers
   * the number before it reads the entries, and reads them again when it has changed.
   */
  revision(name: string): Promise<number>;
  /**
   * Opens a collection of vectors under this name, in PostgreSQL with the extension `vector` (pgvector). Resolves with undefined where the
   * gateway's database is SQLite. Rejects with a sentence for the operator where PostgreSQL has no such extension, or may not use it.
   *
   * @example
   * const vectors = await stores.vectors('my-texts', { perPartition: 1_000, most: 10_000 });
   */
  vectors(name: string, limits: VectorLimits): Promise<VectorStore | undefined>;
}
