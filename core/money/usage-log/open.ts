/** Reads the records of calls, and opens the log. */
import type { UsageRecord } from '../../model/usage-record.ts';
import type { Stores } from '../../state/stores.ts';
import { longReads, operatorReads } from '../../state/database/long-reads.ts';
import { yieldTurn } from '../../state/database/yield-turn.ts';
import {
  conditions,
  cursorOf,
  maxSlices,
  rangeOf,
  slice,
  sliceEnd,
  sliceStart,
  type Cursor,
} from './questions.ts';
import { recordOf } from './read-rows.ts';
import { recordColumns } from './rows.ts';
import { failedAttemptsIn } from './failed-attempts.ts';
import { fewestFolded } from './folding.ts';
import { createKeySpend } from './key-spend.ts';
import { createLargest } from './largest.ts';
import { joinedHours, knowsHours, matchingHours } from './matching-hours.ts';
import { createPruning } from './pruning.ts';
import { removedWith } from './partitions.ts';
import { standingOf } from './standing.ts';
import { createSubjectSumming } from './subject-sums.ts';
import { subjectLimits, type SubjectLimits } from './subjects.ts';
import { createSumming } from './summing.ts';
import { createSums } from './sums.ts';
import type { UsageLog, UsageFilter } from './index.ts';

const hour = 3_600_000;

/** True when a filter has a key, and besides it times at most. */
function isOfKeyAlone({ keyId, since: _since, until: _until, ...others }: UsageFilter): boolean {
  return keyId !== undefined && Object.values(others).every((value) => value === undefined);
}

/** How a log is opened. */
export interface LogOptions {
  /** Maximum number of slices of records that one question reads. */
  readonly slices?: number;
  /** How many tags and end users are told apart. */
  readonly subjects?: SubjectLimits;
  /** Fewest calls of 27 days for which sums of days are folded into those of more days. */
  readonly fold?: number;
}

/** Opens the log in the gateway's database. */
export function openUsageLog(
  { database }: Pick<Stores, 'database'>,
  { slices = maxSlices, subjects = subjectLimits, fold = fewestFolded }: LogOptions = {},
): UsageLog {
  const ask = operatorReads(database);
  /** What is removed or judged must not be some time behind. */
  const askPrimary = longReads(database);
  const addRecords = createSumming(database, fold);
  const addOwned = createSubjectSumming(database, subjects);
  const addToSums = async (): Promise<boolean> => {
    const hasMore = await addRecords();
    return (await addOwned()) || hasMore;
  };

  /** Records of a slice of time, in order. */
  const select = async (filter: UsageFilter, order: 'ASC' | 'DESC', limit: number, before?: Cursor) => {
    const { where, values } = conditions(filter, before, database.kind);
    // The limit comes before the join: details are fetched for what is shown alone.
    const sql = `SELECT ${recordColumns} FROM
      (SELECT * FROM usage_calls ${where} ORDER BY at ${order}, id ${order} LIMIT ?) u
      LEFT JOIN usage_details d ON d.at = u.at AND d.id = u.id ORDER BY u.at ${order}, u.id ${order}`;
    return (await ask(sql, [...values, limit])).map(recordOf);
  };

  /**
   * Returns the newest records of a filter. The sums tell in which hours there are any; where they do not, it reads in slices, because the
   * next record that fits may be far back. Stops after the maximum number of records: `unread` is then the time before which nothing was read.
   */
  const newest = async (
    filter: UsageFilter,
    limit: number,
    before: Cursor | undefined,
  ): Promise<{ readonly found: readonly UsageRecord[]; readonly unread?: number }> => {
    const { start, end } = rangeOf(filter);
    const isNarrow = Object.entries(filter).some(
      ([name, value]) => name !== 'since' && name !== 'until' && value !== undefined,
    );
    // The unique index of ids finds one record, however far back it is.
    if (filter.id !== undefined)
      return { found: await select({ ...filter, since: start, until: end }, 'DESC', limit, before) };
    // An index finds those of a key, where nothing else narrows them.
    if (database.kind === 'postgres' && isOfKeyAlone(filter))
      return { found: await select({ ...filter, since: start, until: end }, 'DESC', limit, before) };
    const found: UsageRecord[] = [];
    let until = before === undefined ? end : Math.min(end, before.at + 1);
    if (await knowsHours(ask, filter)) {
      let read = 0;
      for await (const stretch of joinedHours(matchingHours(ask, filter, start, until), slice)) {
        if (read > slices * slice) return { found, unread: Math.min(until, stretch.until) };
        const part = {
          ...filter,
          since: Math.max(start, stretch.since),
          until: Math.min(until, stretch.until),
        };
        found.push(...(await select(part, 'DESC', limit - found.length, before)));
        if (found.length >= limit) break;
        read += stretch.records;
      }
      return { found };
    }
    // To plan for the partitions of an hour or a day takes a server less than for all of them.
    const latest = Math.min(until, Date.now());
    for (const width of database.kind === 'postgres' && !isNarrow ? [hour, 24 * hour] : []) {
      const since = Math.max(start, latest - width);
      if (since >= until || found.length >= limit) break;
      found.push(...(await select({ since, until }, 'DESC', limit - found.length, before)));
      until = since;
    }
    for (let count = 0; until > start && found.length < limit; count += 1) {
      if (count === slices) return { found, unread: until };
      const since = isNarrow ? await sliceStart(ask, until, start) : start;
      found.push(...(await select({ ...filter, since, until }, 'DESC', limit - found.length, before)));
      until = since;
      if (isNarrow) await yieldTurn();
    }
    return { found };
  };

  return {
    largest: createLargest(ask, slices),
    async page(filter, limit, after) {
      const before = after === undefined ? undefined : cursorOf(after);
      const { found, unread } = await newest(filter, limit + 1, before);
      const records = found.slice(0, limit);
      const last = records.at(-1);
      if (found.length > limit && last !== undefined) return { records, next: `${last.at}.${last.id}` };
      return unread === undefined ? { records } : { records, next: `${unread}.` };
    },
    async find(id) {
      const [row] = await ask(
        `SELECT ${recordColumns}, d.request, d.response FROM usage_calls u
         LEFT JOIN usage_details d ON d.at = u.at AND d.id = u.id WHERE u.id = ?`,
        [id],
      );
      return row === undefined ? undefined : recordOf(row);
    },
    sums: createSums(ask, database.kind),
    spentByKeys: createKeySpend(ask, database.kind),
    addToSums,
    failedAttempts: (since) => failedAttemptsIn(ask, since),
    async *each(filter) {
      const end = filter.until ?? Number.MAX_SAFE_INTEGER;
      for (let since = filter.since ?? 0; since < end;) {
        const until = await sliceEnd(ask, since, end);
        yield* await select({ ...filter, since, until }, 'ASC', Number.MAX_SAFE_INTEGER);
        since = until;
      }
    },
    standing: (keep) => standingOf(askPrimary, keep, (at) => removedWith(database, keep.days, at)),
    prune: createPruning(database, askPrimary, addToSums),
  };
}
