/** Reads sums with the names of their groups: in this process, or in a thread. */
import type { Database } from '../../state/database/index.ts';
import type { Ask } from '../../state/database/long-reads.ts';
import { storedKeyNames, storedOwnerNames } from '../../state/api-keys/stored-names.ts';
import type { UsageGrouping, UsageLog, UsageSums } from './index.ts';
import { createKeySpend } from './key-spend.ts';
import { createSums } from './sums.ts';

/** What is read of sums. */
export type SumsReader = Pick<UsageLog, 'sums' | 'sumsInJson' | 'spentByKeys'>;

/** What sums are read with. `askLarge`: for statements that add up very many rows. */
export interface SumsReads {
  readonly kind: Database['kind'];
  readonly ask: Ask;
  readonly askLarge: Ask;
}

/** Opens the sums of a log, to be read in this thread. */
export function createSumsReader({ kind, ask, askLarge }: SumsReads): SumsReader {
  const unnamed = createSums(ask, askLarge, kind);
  const sums: UsageLog['sums'] = async (filter, grouping, options) => {
    const list = await unnamed(filter, grouping, options);
    if (options?.names !== true) return list;
    return { ...list, sums: await withNames(ask, grouping, list.sums) };
  };
  return {
    sums,
    async sumsInJson(filter, grouping, options) {
      const { sums: listed, ...others } = await sums(filter, grouping, { ...options, names: true });
      return { ...others, json: new TextEncoder().encode(JSON.stringify(listed)) };
    },
    spentByKeys: createKeySpend(ask, kind),
  };
}

async function withNames(
  ask: Ask,
  grouping: UsageGrouping,
  sums: readonly UsageSums[],
): Promise<readonly UsageSums[]> {
  const find = grouping === 'keyId' ? storedKeyNames : isOwner(grouping) ? storedOwnerNames : undefined;
  if (find === undefined) return sums;
  const names = await find(
    ask,
    sums.map(({ group }) => String(group)),
  );
  return sums.map((sum) => {
    const name = names.get(String(sum.group));
    return name === undefined ? sum : { ...sum, name };
  });
}

function isOwner(grouping: UsageGrouping): boolean {
  return grouping === 'team' || grouping === 'member' || grouping === 'organisation';
}
