import type { UsageRecord } from '../../model/usage-record.ts';
import { yieldTurn } from '../../state/database/yield-turn.ts';
import type { UsageFilter, UsageLog, UsageMeasure } from './index.ts';
import { conditions, rangeOf, sliceStart, type Ask } from './questions.ts';
import { recordColumns, recordOf } from './rows.ts';

const columnOf: Readonly<Record<UsageMeasure, string>> = { ms: 'ms', microDollars: 'micro_dollars' };

/**
 * Returns the method that finds the largest records. It has no index of its own, because two more indexes would double what each call costs
 * to write; it reads the records in the order of time, a slice at a time, and `slices` of them at most.
 */
export function createLargest(ask: Ask, slices: number): UsageLog['largest'] {
  return async (filter, by, limit) => {
    const { start, end } = rangeOf(filter);
    let found: readonly UsageRecord[] = [];
    let until = end;
    for (let count = 0; until > start && count < slices; count += 1) {
      const since = await sliceStart(ask, until, start);
      const more = await largestOf(ask, { ...filter, since, until }, by, limit);
      found = merged(found, more, by).slice(0, limit);
      until = since;
      await yieldTurn();
    }
    return until > start ? { records: found, comparedSince: until } : { records: found };
  };
}

/** Returns the largest records of one slice of time. */
async function largestOf(
  ask: Ask,
  filter: UsageFilter,
  by: UsageMeasure,
  limit: number,
): Promise<readonly UsageRecord[]> {
  const { where, values } = conditions(filter);
  const column = columnOf[by];
  const sql = `SELECT ${recordColumns}, d.details FROM
    (SELECT * FROM usage_records ${where} AND ${column} IS NOT NULL ORDER BY ${column} DESC, at DESC, id DESC LIMIT ?) u
    LEFT JOIN usage_details d ON d.at = u.at AND d.id = u.id ORDER BY u.${column} DESC, u.at DESC, u.id DESC`;
  return (await ask(sql, [...values, limit])).map(recordOf);
}

/** Merges two lists, both with the largest first. Among equals those of the first list, which are newer, come first. */
function merged(
  newer: readonly UsageRecord[],
  older: readonly UsageRecord[],
  by: UsageMeasure,
): readonly UsageRecord[] {
  return [...newer, ...older].toSorted((one, other) => (other[by] ?? 0) - (one[by] ?? 0));
}
