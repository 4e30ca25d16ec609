/** A key together with the limits of its owners. */
import type { ApiKey } from '../../sdk/api-key.ts';
import type { HeldBudget } from '../../sdk/budget.ts';
import type { Owner, OwnerKind } from '../../sdk/owner.ts';
import { intersectPatterns } from '../../sdk/allowed-models.ts';

/** Names of the kinds in sentences. */
const nouns: Readonly<Record<OwnerKind, string>> = {
  organisation: 'organisation',
  team: 'team',
  member: 'member',
  'service-account': 'service account',
};

/** Returns `the team "research"`. */
export function ownerName({ kind, name }: Pick<Owner, 'kind' | 'name'>): string {
  return `the ${nouns[kind]} "${name}"`;
}

/** The key bound by its owners as well, nearest first. `undefined` among them stands for one that is gone. */
export function effectiveKey(key: ApiKey, owners: readonly (Owner | undefined)[]): ApiKey {
  const present = owners.filter((owner) => owner !== undefined);
  const isUsable = present.length === owners.length && present.every(({ enabled }) => enabled);
  const held: HeldBudget[] = present.flatMap((owner) =>
    (owner.budgets ?? []).map((budget) => ({
      ...budget,
      owner: { id: owner.id, name: ownerName(owner) },
    })),
  );
  const lists = [key, ...present].flatMap(({ models }) => (models === undefined ? [] : [models]));
  const [first, ...others] = lists;
  const models = first && others.reduce(intersectPatterns, first);
  // The nearest: that of a team goes before that of its organisation.
  const pricing = present.find((owner) => owner.pricing !== undefined)?.pricing;
  return {
    ...key,
    owners: present,
    enabled: key.enabled && isUsable,
    ...(held.length === 0 ? {} : { budgets: [...(key.budgets ?? []), ...held] }),
    ...(models === undefined ? {} : { models }),
    ...(pricing === undefined ? {} : { pricing }),
  };
}
