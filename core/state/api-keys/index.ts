import type { ApiKey } from '../../sdk/api-key.ts';
import type { ApiKeyChanges } from './records.ts';

export { matchesModel, mayUseSome, patternsOverlap } from './matches-model.ts';
export type { ApiKeyChanges } from './records.ts';

/** What a new key is made of. A key is enabled, and `value` is random, unless said otherwise. */
export interface NewApiKey extends ApiKeyChanges {
  readonly name: string;
  /** A secret chosen by the operator: 16 to 256 visible ASCII characters. */
  readonly value?: string | undefined;
}

/** A known key, and whether it may be used now. */
export interface FoundApiKey {
  readonly key: ApiKey;
  readonly state: 'valid' | 'expired' | 'disabled';
}

/**
 * The API keys of a gateway. Methods that name a key take its id, its name, its first characters (`sk-AbCd` or
 * `sk-AbCd…wxyz`) or the whole secret, and throw an Error that can be shown to the operator when no key, or more than
 * one, answers to it. What they are given is checked, with an Error that names the field.
 */
export interface ApiKeys {
  /** Reads all keys into memory, later what has changed. Before the first time, `find` knows only the keys made by this process. */
  load(): Promise<void>;
  /** The key with this secret, from memory; undefined when there is none. A valid key counts as used now unless `isUse` is false. */
  find(secret: string, isUse?: boolean): FoundApiKey | undefined;
  /** What has become of a key that was found before, from memory; undefined when it was revoked or has another secret now. */
  current(key: ApiKey): FoundApiKey | undefined;
  /** All keys as the database has them now, oldest first. */
  list(): Promise<ApiKey[]>;
  /**
   * Returns a page of keys, newest first. `after` is the `next` of the page before; the last page has none. `search` selects keys whose name,
   * note or id contains it, ignoring case, or whose secret begins with it (7 characters at most, because no more are stored).
   */
  page(
    limit: number,
    after?: string,
    search?: string,
  ): Promise<{ readonly keys: readonly ApiKey[]; readonly next?: string }>;
  /** The key with this id as the database has it now. */
  byId(id: string): Promise<ApiKey | undefined>;
  /** Returns the names of keys by their ids, also of keys that were deleted. Ids that never were a key's are left out. */
  names(ids: Iterable<string>): Promise<ReadonlyMap<string, string>>;
  /** Makes a key. `value` is the secret, which nobody can ask for again. */
  create(options: NewApiKey): Promise<{ record: ApiKey; value: string }>;
  /** Changes a key and returns it as it is now. */
  update(which: string, changes: ApiKeyChanges): Promise<ApiKey>;
  /** Gives a key a new random secret, which nobody can ask for again; the old one stops working. All else stays. */
  rotate(which: string): Promise<{ record: ApiKey; value: string }>;
  /** Deletes a key for good and returns it as it was. Only its name is kept, for the records of its calls. */
  revoke(which: string): Promise<ApiKey>;
  /** From now on a key that another process made, changed or revoked takes effect here within about a second. */
  startRefreshing(): void;
  /** Ends the refreshing and writes down when keys were last used. Call it before the stores are closed. */
  stop(): Promise<void>;
}
