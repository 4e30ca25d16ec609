/** Finds the owners of keys for charges that come long after their calls. */
import type { Ledger, Settlement } from './index.ts';

/**
 * Returns the same ledger, which charges settlements without `owners` to those who own the key now. `ownersOf` returns the ids of the owners of
 * a key.
 */
export function withOwners(ledger: Ledger, ownersOf: (keyId: string) => Promise<readonly string[]>): Ledger {
  const completed = async (settlements: readonly Settlement[]): Promise<readonly Settlement[]> => {
    const unknown = settlements.flatMap(({ keyId, owners }) =>
      keyId === undefined || owners !== undefined ? [] : [keyId],
    );
    if (unknown.length === 0) return settlements;
    const found = new Map(
      await Promise.all([...new Set(unknown)].map(async (keyId) => [keyId, await ownersOf(keyId)] as const)),
    );
    return settlements.map((one) => ({
      ...one,
      owners: one.owners ?? found.get(one.keyId ?? '') ?? [],
    }));
  };
  return {
    ...ledger,
    settle: async (settlements) => ledger.settle(await completed(settlements)),
    settleAfter: async (settlements, first, claims) =>
      ledger.settleAfter(await completed(settlements), first, claims),
  };
}
