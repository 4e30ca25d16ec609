/** Finds the owners of keys, and their price, for charges that come long after their calls. */
import type { ApiKey } from '../../sdk/api-key.ts';
import { chargedHolders, type ChargedHolders } from './charged-holders.ts';
import type { Ledger, Settlement } from './index.ts';
import { factorFor, multiplied } from './pricing.ts';

const nobody: ChargedHolders = { owners: [], series: [] };

/**
 * Returns the same ledger, which charges settlements without `owners` to those who own the key now, by the price that they are charged now.
 * `keyOf` returns a key with its owners.
 */
export function withOwners(ledger: Ledger, keyOf: (keyId: string) => Promise<ApiKey | undefined>): Ledger {
  const completed = async (settlements: readonly Settlement[]): Promise<readonly Settlement[]> => {
    const unknown = settlements.flatMap(({ keyId, owners }) =>
      keyId === undefined || owners !== undefined ? [] : [keyId],
    );
    if (unknown.length === 0) return settlements;
    const found = new Map(
      await Promise.all(
        [...new Set(unknown)].map(async (keyId) => {
          const key = await keyOf(keyId);
          return [keyId, key === undefined ? nobody : chargedHolders(key)] as const;
        }),
      ),
    );
    return settlements.map((one) =>
      one.owners === undefined && one.keyId !== undefined
        ? chargedTo(one, found.get(one.keyId) ?? nobody)
        : { owners: [], ...one },
    );
  };
  return {
    ...ledger,
    settle: async (settlements) => ledger.settle(await completed(settlements)),
    settleAfter: async (settlements, first, claims) =>
      ledger.settleAfter(await completed(settlements), first, claims),
  };
}

function chargedTo(settlement: Settlement, { owners, series, pricing }: ChargedHolders): Settlement {
  const { record, isPriced } = settlement;
  const factor = isPriced === true ? 1 : factorFor(pricing, record.model);
  const charged = multiplied(settlement.charged, factor);
  const own = { ...settlement, owners, series: [...series, ...(settlement.series ?? [])], charged };
  if (factor === 1 || record.microDollars === undefined) return own;
  const sign = record.microDollars < 0 ? -1 : 1;
  return { ...own, record: { ...record, chargedMicroDollars: sign * charged.microDollars } };
}
