/** The contract of the store of tokens of the admin API. */
import type { UserRole } from '../users/index.ts';

/** Whole days that a token may last, and lasts where nobody says otherwise. */
export const tokenDays = { longest: 365, default: 90 } as const;

/** Maximum number of tokens, and of scopes of one. */
export const maxTokens = 1_000;
export const maxScopes = 50;

/**
 * Maximum number of tokens of one organisation, and of those that one user or token has made, by tokens too, so that one who is busy leaves
 * room for others. The admin password and the command line may make all of them.
 */
export const tokenShares = { organisation: 250, author: 250 } as const;

/** A token of the admin API. Its value is shown once, and stored nowhere. Times are in milliseconds since 1970. */
export interface AdminToken {
  /** `tok_` and 16 characters; never changes and is safe to log. */
  readonly id: string;
  /** For people; need not be unique. */
  readonly name: string;
  /** The last 4 characters of the value. */
  readonly suffix: string;
  readonly role: Exclude<UserRole, 'member'>;
  /** Each is `read` or `write` of a group of routes, such as `keys:write`. */
  readonly scopes: readonly string[];
  /** Id of the organisation to which the token is restricted. */
  readonly organisation?: string;
  /** Its author, as the audit log names actors. */
  readonly createdBy: { readonly kind: string; readonly id: string; readonly name: string };
  /** Author of the first token in a chain of tokens that made each other. The token counts in the share of this author. Absent: `createdBy`. */
  readonly author?: { readonly kind: string; readonly id: string };
  readonly createdAt: number;
  readonly expiresAt: number;
  /** To within a few minutes. */
  readonly lastUsedAt?: number;
}

/** The fields of a new token. */
export type NewAdminToken = Omit<AdminToken, 'id' | 'suffix' | 'author' | 'lastUsedAt'>;

/** Thrown for a token that cannot be made. The message is a sentence for people. */
export class TokenMistake extends Error {}

/** The tokens of the admin API, shared by all gateways on one database. Each question is asked of the database. */
export interface AdminTokens {
  /** Returns the token with this value, also one that has expired within the last 30 days. Counts as a use unless it has expired. */
  find(value: string): Promise<AdminToken | undefined>;
  byId(id: string): Promise<AdminToken | undefined>;
  /** All of them, the newest first. */
  list(): Promise<readonly AdminToken[]>;
  /** Makes a token. Nobody can ask for its value again. Throws a {@link TokenMistake} when there are too many. */
  create(token: NewAdminToken): Promise<{ readonly token: AdminToken; readonly value: string }>;
  /** Ends a token at once, on all gateways. Undefined when there is none with this id. */
  revoke(id: string): Promise<AdminToken | undefined>;
}
