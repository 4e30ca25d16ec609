/** Owners of API keys: organisations, teams, members and service accounts. */
import type { Budget, EndUserBudget, PriceRule } from './budget.ts';

/**
 * Kind of an owner. Teams, members and service accounts can belong to an organisation.
 *
 * @example
 * const kinds: readonly OwnerKind[] = ['organisation', 'team', 'member', 'service-account'];
 */
export type OwnerKind = 'organisation' | 'team' | 'member' | 'service-account';

/**
 * Somebody who owns API keys. Its limits hold for all calls of all of its keys together, beside the limits of each key. An absent limit means
 * that there is none. Times are in milliseconds since 1970.
 *
 * @example
 * const team = call.get(caller)?.owners?.find(({ kind }) => kind === 'team')?.name;
 */
export interface Owner {
  /** `org_`, `team_`, `mem_` or `svc_` and 16 characters; never changes and is safe to log. */
  readonly id: string;
  readonly kind: OwnerKind;
  /** For people; need not be unique. */
  readonly name: string;
  readonly note?: string;
  /** The id of the organisation that it belongs to. */
  readonly organisation?: string;
  /** Exact names and patterns with `*`. */
  readonly models?: readonly string[];
  readonly budgets?: readonly Budget[];
  /** Price rule of a team or an organisation for the charges of its keys. The rule of a team has precedence over that of its organisation. */
  readonly pricing?: PriceRule;
  /** Separate budget of each end user for all calls of the owner's keys. */
  readonly endUserBudget?: EndUserBudget;
  readonly requestsPerMinute?: number;
  readonly tokensPerMinute?: number;
  readonly concurrency?: number;
  /** IP addresses and CIDR ranges from which its keys may be used. */
  readonly addresses?: readonly string[];
  /** False: all of its keys are invalid. */
  readonly enabled: boolean;
  readonly createdAt: number;
}

/** Names of the kinds in sentences. */
const nouns: Readonly<Record<OwnerKind, string>> = {
  organisation: 'organisation',
  team: 'team',
  member: 'member',
  'service-account': 'service account',
};

/**
 * Returns the name of an owner for sentences: `the team "research"`.
 *
 * @example
 * const sentence = `This call exceeds the budget of ${ownerName(owner)}.`;
 */
export function ownerName({ kind, name }: Pick<Owner, 'kind' | 'name'>): string {
  return `the ${nouns[kind]} "${name}"`;
}
