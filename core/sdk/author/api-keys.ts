/** API keys, as plugins that identify callers look them up. */
import type { ApiKey } from '../api-key.ts';

/**
 * A known key, and whether it may be used now.
 *
 * @example
 * const isValid = found?.state === 'valid';
 */
export interface FoundApiKey {
  readonly key: ApiKey;
  readonly state: 'valid' | 'expired' | 'disabled';
}

/**
 * The API keys of a gateway, for plugins that identify callers. The keys that these methods return are bound by the limits of their owners too.
 *
 * @example
 * const found = apiKeys.find(secret) ?? (apiKeys.isKnown(secret) ? undefined : await apiKeys.lookUp(secret));
 * if (found?.state === 'valid') call.set(caller, found.key);
 */
export interface ApiKeys {
  /**
   * Returns the key with this secret, from memory; undefined when there is none or it is not held: {@link isKnown} tells which. A valid key counts as
   * used now unless `isUse` is false.
   */
  find(secret: string, isUse?: boolean): FoundApiKey | undefined;
  /** Returns true when memory knows what this secret is: that of a key, or of none. */
  isKnown(secret: string): boolean;
  /**
   * As `find`, and asks the database for what memory does not know: one question for all who wait. Rejects when the database does not answer,
   * and when too many unknown secrets wait.
   */
  lookUp(secret: string, isUse?: boolean): Promise<FoundApiKey | undefined>;
  /**
   * What has become of a key that was found before, from memory; undefined when it was revoked or has another secret now. A key that is held
   * no longer counts as it was until it has been read again.
   */
  current(key: ApiKey): FoundApiKey | undefined;
}
