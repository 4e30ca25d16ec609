/** Reads all records of a filter for an export. */
import type { UsageRecord } from '../../model/usage-record.ts';
import type { Query } from '../../state/database/long-reads.ts';
import type { UsageFilter } from './index.ts';
import { rangeOf, sliceEnd } from './questions.ts';
import type { Select } from './selecting.ts';

/** Records that are held at once: few, because they are turned into text on a thread that serves calls. */
const batch = 500;

/** Gives all records of a filter, oldest first. */
export async function* exportOf(
  query: Query,
  select: Select,
  filter: UsageFilter,
): AsyncGenerator<UsageRecord> {
  const { start, end } = rangeOf(filter);
  for (let since = start; since < end;) {
    const until = await sliceEnd(query, since, end);
    let after: UsageRecord | undefined;
    do {
      const only = after && { sql: '(at, id) > (?, ?)', values: [after.at, after.id] };
      const records: readonly UsageRecord[] = await select({
        filter: { ...filter, since: after?.at ?? since, until },
        limit: batch,
        order: 'oldest',
        ...(only && { only }),
      });
      yield* records;
      after = records.length < batch ? undefined : records.at(-1);
    } while (after !== undefined);
    since = until;
  }
}
