/** Whom calls of a key are charged to, and by which price. */
import type { ApiKey } from '../../sdk/api-key.ts';
import type { PriceRule } from '../../sdk/budget.ts';
import { seriesIn, type HolderSeries } from './windows.ts';

/** Whom calls of a key are charged to beside the key itself. */
export interface ChargedHolders {
  /** Ids of the owners of the key. */
  readonly owners: readonly string[];
  readonly series: readonly HolderSeries[];
  /** Absent where they are charged what the provider costs. */
  readonly pricing?: PriceRule;
}

/** By the key: one that changes is another object. */
const known = new WeakMap<ApiKey, ChargedHolders>();

/** Returns whom calls of an effective key are charged to. */
export function chargedHolders(key: ApiKey): ChargedHolders {
  let holders = known.get(key);
  if (holders === undefined) {
    const { pricing } = key;
    holders = {
      owners: (key.owners ?? []).map(({ id }) => id),
      series: seriesIn(key.id, key.budgets ?? []),
      ...(pricing === undefined ? {} : { pricing }),
    };
    known.set(key, holders);
  }
  return holders;
}
