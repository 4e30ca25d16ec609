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
    async sumsInJson(filter, grouping, { before, ...options } = {}) {
      const { sums: listed, ...others } = await sums(filter, grouping, { ...options, names: true });
      const found = { ...others, json: jsonOf(listed) };
      if (before === undefined) return found;
      const isSome = others.rest !== undefined && listed.length <= mostGroups && isBearer(grouping);
      const earlier = isSome
        ? await sums(before, grouping, {
            ...options,
            groups: listed.map(({ group }) => String(group)),
            names: true,
          })
        : await sums(before, grouping, { ...options, names: true });
      return { ...found, before: jsonOf(earlier.sums) };
    },
    spentByKeys: createKeySpend(ask, kind),
  };
}

/** Maximum number of groups that are looked up one by one. */
const mostGroups = 1_000;

function jsonOf(sums: readonly UsageSums[]): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(sums));
}

/** True for groups that there may be very many of. */
function isBearer(grouping: UsageGrouping): boolean {
  return grouping === 'keyId' || isOwner(grouping);
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
