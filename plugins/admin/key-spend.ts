/** Spend of API keys in the last 30 days, and the keys with the highest. */
import { GatewayError, type ApiKey } from 'sluice';
import type { InternalTools } from 'sluice/internal';
import type { UsageFilter } from './core-types.ts';
import type { Scope } from './access/scope.ts';
import type { KeyView } from './schemas/index.ts';

type SpendTools = Pick<InternalTools, 'apiKeys' | 'usageLog'>;

const day = 86_400_000;
/** Number of days whose spend is shown, today among them. */
const days = 30;
/** Maximum number of keys in a list by spend. */
const mostListed = 200;

/** Number of keys that are read together. Callers choose how many they want, and could otherwise have them read one by one. */
const readTogether = 50;

/** Spend of one key. */
type Spent = NonNullable<KeyView['spent']>;

/** Returns when the first of the last 30 days began, in UTC. */
export function spendSince(now: number): number {
  return (Math.floor(now / day) - days + 1) * day;
}

/** Returns what these keys have spent, by their ids. */
export async function spentBy(
  { usageLog }: SpendTools,
  keys: readonly ApiKey[],
): Promise<(id: string) => Spent> {
  const since = spendSince(Date.now());
  const found = await usageLog.spentByKeys(
    keys.map(({ id }) => id),
    since,
  );
  return (id) => ({ since, calls: 0, microDollars: 0, ...found.get(id) });
}

/**
 * Returns the keys with the highest spend, the highest first, of those that the scope and the owner leave. They are found in the sums of days of
 * all keys that were used. Keys that were deleted are left out.
 */
export async function mostExpensive(
  { apiKeys, usageLog }: SpendTools,
  scope: Scope,
  { owner, limit }: { readonly owner: string | undefined; readonly limit: number },
): Promise<readonly ApiKey[]> {
  const since = spendSince(Date.now());
  const lists = await Promise.all(
    filtersOf(scope, owner, apiKeys).map((filter) =>
      usageLog.sums({ ...filter, since }, 'keyId', { limit: mostListed, order: 'cost', rest: false }),
    ),
  );
  const sums = lists
    .flatMap((list) => list.sums)
    .toSorted((one, other) => other.microDollars - one.microDollars || other.calls - one.calls);
  const ids = [...new Set(sums.map(({ group }) => String(group)).filter((id) => id !== ''))].slice(
    0,
    mostListed,
  );
  const keys: ApiKey[] = [];
  for (let index = 0; index < ids.length && keys.length < limit; index += readTogether) {
    // oxlint-disable-next-line no-await-in-loop -- no more than are needed
    for (const key of await apiKeys.byIds(ids.slice(index, index + readTogether)))
      if (scope.seesKey(key) && isOwned(key, owner)) keys.push(key);
  }
  return keys.slice(0, limit);
}

/** Refuses what a list by spend cannot do. */
export function checkSpendQuery({
  after,
  search,
}: {
  readonly after?: string;
  readonly search?: string;
}): void {
  for (const [param, value] of Object.entries({ after, search }))
    if (value !== undefined)
      throw new GatewayError('invalid_value', `A list sorted by spend does not support ${param}.`, { param });
}

function isOwned({ team, member }: ApiKey, owner: string | undefined): boolean {
  return owner === undefined || team === owner || member === owner;
}

/** Filters of the calls whose keys are compared. */
function filtersOf(
  { keys }: Scope,
  owner: string | undefined,
  { owners }: SpendTools['apiKeys'],
): readonly UsageFilter[] {
  const own =
    owner === undefined ? {} : owners.find(owner)?.kind === 'team' ? { team: owner } : { member: owner };
  if (keys === undefined) return [own];
  const { organisation, member, teams = [] } = keys;
  if (organisation !== undefined) return [{ ...own, organisation }];
  const all: readonly UsageFilter[] = [
    ...(member === undefined ? [] : [{ member }]),
    ...teams.map((team) => ({ team })),
  ];
  return owner === undefined ? all : all.map((filter) => ({ ...own, ...filter }));
}
