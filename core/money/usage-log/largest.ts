/** The longest and the most expensive calls. */
import type { UsageRecord } from '../../model/usage-record.ts';
import type { UsageFilter, UsageLog, UsageMeasure } from './index.ts';
import type { Ask } from '../../state/database/long-reads.ts';
import { conditions, rangeOf, slice, sliceStart } from './questions.ts';
import { recordOf } from './read-rows.ts';
import { recordColumns } from './rows.ts';

const columnOf: Readonly<Record<UsageMeasure, string>> = { ms: 'ms', microDollars: 'micro_dollars' };

/**
 * Returns the method that finds the largest records. It has no index of its own, because two more indexes would double what each call costs
 * to write; it compares the newest records of the time range, `slices` times a slice of them at most.
 */
export function createLargest(ask: Ask, slices: number): UsageLog['largest'] {
  return async (filter, by, limit) => {
    const { start, end } = rangeOf(filter);
    if (start >= end) return { records: [] };
    const since = await sliceStart(ask, end, start, slices * slice);
    const records = await largestOf(ask, { ...filter, since, until: end }, by, limit);
    return since > start ? { records, comparedSince: since } : { records };
  };
}

/** Returns the largest records of a time. */
async function largestOf(
  ask: Ask,
  filter: UsageFilter,
  by: UsageMeasure,
  limit: number,
): Promise<readonly UsageRecord[]> {
  const { where, values } = conditions(filter);
  const column = columnOf[by];
  const sql = `SELECT ${recordColumns} FROM
    (SELECT * FROM usage_calls ${where} AND ${column} IS NOT NULL ORDER BY ${column} DESC, at DESC, id DESC LIMIT ?) u
    LEFT JOIN usage_details d ON d.at = u.at AND d.id = u.id ORDER BY u.${column} DESC, u.at DESC, u.id DESC`;
  return (await ask(sql, [...values, limit])).map(recordOf);
}
