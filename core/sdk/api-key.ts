import type { Owner } from './owner.ts';

/** How much may be spent with a key in a period. Days and months are those of UTC. */
export interface Budget {
  readonly unit: 'micro-dollar' | 'token';
  readonly period: 'day' | 'month' | 'total';
  readonly amount: number;
}

/**
 * A budget that a call must fit in: of its key, or of an owner of the key, which is a member, a team or an organisation.
 *
 * @example
 * const ofTeam = key.budgets?.find(({ owner }) => owner?.name.startsWith('the team'));
 */
export interface HeldBudget extends Budget {
  /** Absent for a budget of the key. `name` is for sentences: `the team "research"`. */
  readonly owner?: { readonly id: string; readonly name: string };
}

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
