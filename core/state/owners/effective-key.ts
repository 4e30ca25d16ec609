/** A key together with the limits of its owners. */
import type { ApiKey } from '../../sdk/api-key.ts';
import type { HeldBudget } from '../../sdk/budget.ts';
import { ownerName, type Owner } from '../../sdk/owner.ts';
import { intersectPatterns } from '../../sdk/allowed-models.ts';

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
