import type { EndUserBudget, HeldBudget, PriceRule } from './budget.ts';
import type { Owner } from './owner.ts';

/**
 * A key as it is stored. An absent limit means that there is none. Times are in milliseconds since 1970.
 *
 * @example
 * const name = call.get(caller)?.name ?? 'nobody';
 */
export interface ApiKey {
  /** `key_` and 16 characters; never changes and is safe to log. */
  readonly id: string;
  /** For people; need not be unique. */
  readonly name: string;
  readonly note?: string;
  /** SHA-256 of the secret, in hexadecimal digits. The secret itself is stored nowhere. */
  readonly hash: string;
  /** The first 7 and last 4 characters of the secret, by which its owner knows it; fewer for a short secret. */
  readonly prefix: string;
  readonly suffix: string;
  /** Exact names and patterns with `*`, for `matchesModel`. */
  readonly models?: readonly string[];
  readonly budgets?: readonly HeldBudget[];
  /** Separate budget of each end user of the key. */
  readonly endUserBudget?: EndUserBudget;
  /** The rule of the nearest owner that has one, of a key whose call is on its way. */
  readonly pricing?: PriceRule;
  /** Words by which usage is attributed: at most 20 of at most 64 characters each. */
  readonly tags?: readonly string[];
  /** True where calls may bring further tags in `x-sluice-tags`. */
  readonly callTags?: boolean;
  readonly requestsPerMinute?: number;
  readonly tokensPerMinute?: number;
  readonly concurrency?: number;
  /** IP addresses and CIDR ranges from which the key may be used. */
  readonly addresses?: readonly string[];
  readonly expiresAt?: number;
  /** Ids of the team, and of the member or service account, that it belongs to. */
  readonly team?: string;
  readonly member?: string;
  /** The owners of a key whose call is on its way, nearest first: their limits bind it too, and their budgets are among its own. */
  readonly owners?: readonly Owner[];
  readonly enabled: boolean;
  readonly createdAt: number;
  /** To within about a minute, and filled in by `list` alone. */
  readonly lastUsedAt?: number;
}
