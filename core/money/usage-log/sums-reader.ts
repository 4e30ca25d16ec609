/** Reads sums with the names of their groups: in this process, or in a thread. */
import type { Database } from '../../state/database/index.ts';
import type { Query } from '../../state/database/long-reads.ts';
import { storedKeyNames, storedOwnerNames } from '../../state/api-keys/stored-names.ts';
import type { UsageGrouping, UsageLog, UsageSums } from './index.ts';
import { createKeySpend } from './key-spend.ts';
import { createSums } from './sums.ts';

/** Methods of the usage log that read sums. */
export type SumsReader = Pick<UsageLog, 'sums' | 'sumsInJson' | 'spentByKeys'>;

/** Dependencies of the sums reader. `queryLarge`: for statements that add up very many rows. */
export interface SumsReads {
  readonly kind: Database['kind'];
  readonly query: Query;
  readonly queryLarge: Query;
}

/** Opens the sums of a log, to be read in this thread. */
export function createSumsReader({ kind, query, queryLarge }: SumsReads): SumsReader {
  const unnamed = createSums(query, queryLarge, kind);
  const sums: UsageLog['sums'] = async (filter, grouping, options) => {
    const list = await unnamed(filter, grouping, options);
    if (options?.names !== true) return list;
    return { ...list, sums: list.sums.map(await namesOf(query, grouping, list.sums)) };
  };
  return {
    sums,
    async sumsInJson(filter, grouping, { before, ...options } = {}) {
      const { sums: listed, ...others } = await unnamed(filter, grouping, options);
      const isSome = others.rest !== undefined && listed.length <= mostGroups && isBearer(grouping);
      const groups = isSome ? { groups: listed.map(({ group }) => String(group)) } : {};
      const [nameOf, earlier] = await Promise.all([
        namesOf(query, grouping, listed),
        before === undefined ? undefined : unnamed(before, grouping, { ...options, ...groups }),
      ]);
      const found = { ...others, json: jsonOf(listed.map(nameOf)) };
      if (earlier === undefined) return found;
      const nameOfEarlier = isSome ? nameOf : await namesOf(query, grouping, earlier.sums);
      return { ...found, before: jsonOf(earlier.sums.map(nameOfEarlier)) };
    },
    spentByKeys: createKeySpend(query, kind),
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

/** Returns the function that adds the names of their keys or owners to these sums. */
async function namesOf(
  query: Query,
  grouping: UsageGrouping,
  sums: readonly UsageSums[],
): Promise<(sum: UsageSums) => UsageSums> {
  const find = grouping === 'keyId' ? storedKeyNames : isOwner(grouping) ? storedOwnerNames : undefined;
  if (find === undefined) return (sum) => sum;
  const names = await find(
    query,
    sums.map(({ group }) => String(group)),
  );
  return (sum) => {
    const name = names.get(String(sum.group));
    return name === undefined ? sum : { ...sum, name };
  };
}

function isOwner(grouping: UsageGrouping): boolean {
  return grouping === 'team' || grouping === 'member' || grouping === 'organisation';
}
