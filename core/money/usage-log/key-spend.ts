/** Reads what keys have spent in the last days, from their sums of days. */
import type { Database } from '../../state/database/index.ts';
import type { Query } from '../../state/database/long-reads.ts';
import type { UsageLog } from './index.ts';
import { day, levels, minute } from './levels.ts';

/** Maximum number of keys in one question. */
export const mostKeys = 500;
/** Maximum number of days that are added up. */
export const mostDays = 31;

/** Level of the sums that has a row a day for each key. */
const level = levels.findLast(({ hasKeys, hasNames, size }) => hasKeys && !hasNames && size === day)?.level;

/**
 * Opens the spend of keys. It looks up one row for each day and key, by the primary key of the sums, because a range of days would read those of
 * all other keys. Records that are in no sums yet are added.
 */
export function createKeySpend(query: Query, kind: Database['kind']): UsageLog['spentByKeys'] {
  // What providers say may be wrong, and come to more than whole numbers of SQLite hold.
  const sum = kind === 'sqlite' ? 'TOTAL' : 'SUM';
  return async (keyIds, since) => {
    const ids = [...new Set(keyIds)].slice(0, mostKeys);
    if (ids.length === 0) return new Map();
    const days = daysFrom(since, Date.now());
    const start = (days[0] ?? 0) * minute;
    const wanted = padded(ids);
    const among = wanted.map(() => '?').join();
    const rows = await query(
      `SELECT key_id, ${sum}(calls) AS calls, ${sum}(micro_dollars) AS micro_dollars FROM (
         SELECT k.key_id AS key_id, t.calls AS calls, COALESCE(t.micro_dollars, 0) AS micro_dollars FROM usage_keys k JOIN usage_totals t ON t.key = k.id
           WHERE k.key_id IN (${among}) AND t.level = ${level} AND t.start IN (${days.join()})
         UNION ALL SELECT key_id, calls, micro_dollars FROM usage_sums
           WHERE key_id IN (${among}) AND level = ${level} AND level >= 5 AND start >= ?
         UNION ALL SELECT key_id, 1, micro_dollars FROM usage_unsummed WHERE key_id IN (${among}) AND at >= ?
       ) AS spent GROUP BY key_id`,
      [...wanted, ...wanted, start, ...wanted, start],
    );
    return new Map(
      rows.map((row) => [
        String(row['key_id']),
        { calls: Number(row['calls']), microDollars: Number(row['micro_dollars']) },
      ]),
    );
  };
}

/** The starts of days, in minutes since 1970: the one in which a time lies and those after it, the latest `mostDays` of them. */
function daysFrom(since: number, until: number): readonly number[] {
  const last = Math.floor(until / day);
  const first = Math.max(Math.floor(since / day), last - mostDays + 1);
  return Array.from(
    { length: Math.max(0, last - first + 1) },
    (_, index) => (first + index) * (day / minute),
  );
}

/** Repeats the first id up to a power of two: there are few lengths of the statement, because each is kept. */
function padded(ids: readonly string[]): readonly string[] {
  const length = 2 ** Math.ceil(Math.log2(ids.length));
  return Array.from({ length }, (_, index) => ids[index] ?? ids[0] ?? '');
}
