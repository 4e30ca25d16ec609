/** The contract of the store of API keys. */
import type { ApiKey } from '../../sdk/api-key.ts';
import type { ApiKeys as FoundKeys } from '../../sdk/author/api-keys.ts';
import type { Owners } from '../owners/index.ts';
import type { KeyScope } from './key-scope.ts';
import type { ApiKeyChanges } from './records.ts';

export type { FoundApiKey } from '../../sdk/author/api-keys.ts';
export type { ApiKeyChanges } from './records.ts';

/** Fields of a new key. By default a key is enabled, and `value` is random. */
export interface NewApiKey extends ApiKeyChanges {
  readonly name: string;
  /** A secret chosen by the operator: 16 to 256 visible ASCII characters. */
  readonly value?: string | undefined;
}

/** The secret that a key had before it was rotated, as long as that still works. Times are in milliseconds since 1970. */
export interface OldSecret {
  readonly prefix: string;
  readonly suffix: string;
  /** When it stops working. */
  readonly until: number;
  /** When it was last used since the rotation, to within about a minute. */
  readonly lastUsedAt?: number;
}

/** A page of keys. `next` leads to the next page; the last page has none. */
export interface KeyPage {
  readonly keys: readonly ApiKey[];
  readonly next?: string;
}

/**
 * The API keys of a gateway. The database has them all; this process holds those in use, and follows what anybody writes to them. Methods that name a key take its id, its name, its first characters (`sk-AbCd` or
 * `sk-AbCd…wxyz`) or the whole secret, and throw an Error that can be shown to the operator when no key, or more than
 * one, answers to it. What they are given is checked, with an Error that names the field.
 */
export interface ApiKeys extends FoundKeys {
  /** Brings what is held in memory up to date with the database. */
  load(): Promise<void>;
  /** True when there is no key at all. */
  isEmpty(): Promise<boolean>;
  /** All keys as the database has them now, oldest first: for the command line and for few keys. */
  list(): Promise<ApiKey[]>;
  /**
   * Returns a page of keys, newest first. `after` is the `next` of the page before. `search` selects keys whose name, note or id contains it,
   * or whose secret begins with it (7 characters at most, because no more are stored), ignoring case. A text of one or two characters is
   * looked for in 25,000 keys a page: where few of them have it the page is short, or empty, and has a `next` all the same. `owner` selects the keys of a team, member or
   * service account, by its id. `scope` selects keys by their owners, beside that.
   */
  page(limit: number, after?: string, search?: string, owner?: string, scope?: KeyScope): Promise<KeyPage>;
  /** Counts the keys of a scope. */
  count(scope: KeyScope): Promise<number>;
  /** The key with this id as the database has it now. */
  byId(id: string): Promise<ApiKey | undefined>;
  /** Returns the keys with these ids as the database has them now, in the order of the ids. Keys that are gone are left out. */
  byIds(ids: readonly string[]): Promise<ApiKey[]>;
  /** The owners of keys. Their limits bind the keys that `find`, `lookUp` and `current` return. */
  readonly owners: Owners;
  /** Returns the key with this id with its owners, as `effective` does; undefined for a key that is gone. */
  effectiveById(id: string): Promise<ApiKey | undefined>;
  /** Returns the names of keys by their ids, also of keys that were deleted. Ids that never were a key's are left out. */
  names(ids: Iterable<string>): Promise<ReadonlyMap<string, string>>;
  /** Makes a key. `value` is the secret, which nobody can ask for again. */
  create(options: NewApiKey): Promise<{ record: ApiKey; value: string }>;
  /**
   * Changes a key and returns it as it is now. `check` sees the key as it is right before the change, and throws where it must not be made.
   */
  update(which: string, changes: ApiKeyChanges, check?: (current: ApiKey) => void): Promise<ApiKey>;
  /**
   * Gives a key a new random secret, which nobody can ask for again. The old one stops working after `graceMs` milliseconds (default: 0, at
   * most 30 days), one that still worked from an earlier rotation at once. All else stays. `check` is as for {@link update}.
   */
  rotate(
    which: string,
    graceMs?: number,
    check?: (current: ApiKey) => void,
  ): Promise<{ record: ApiKey; value: string }>;
  /** Returns the one key that somebody means. */
  meant(which: string): Promise<ApiKey>;
  /** Ends the old secret of a rotated key at once. Returns false when there was none that worked. `check` is as for {@link update}. */
  endOldSecret(which: string, check?: (current: ApiKey) => void): Promise<boolean>;
  /** Returns the old secrets that still work, in the order of the keys. */
  oldSecretsOf(keys: readonly ApiKey[]): Promise<readonly (OldSecret | undefined)[]>;
  /**
   * Deletes a key for good and returns it as it was. Only its name is kept, for the records of its calls. `check` is as for {@link update}.
   */
  revoke(which: string, check?: (current: ApiKey) => void): Promise<ApiKey>;
  /**
   * From now on what another process does to a key takes effect here within about a second, and keys from versions that had no table to look
   * for them are put into it.
   */
  startRefreshing(): void;
  /** Ends the refreshing and writes down when keys were last used. Call it before the stores are closed. */
  stop(): Promise<void>;
  /** How many keys, and secrets that are none, this process holds. */
  readonly held: { readonly keys: number; readonly strangers: number };
}
