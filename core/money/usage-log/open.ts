/** Reads the records of calls, and opens the log. */
import type { Stores } from '../../state/stores.ts';
import { largeReads, longReads, operatorReads } from '../../state/database/long-reads.ts';
import { exportOf } from './exporting.ts';
import { cursorOf, maxSlices } from './questions.ts';
import { recordOf } from './read-rows.ts';
import { recordColumns } from './rows.ts';
import { failedAttemptsIn } from './failed-attempts.ts';
import { fewestFolded } from './folding.ts';
import { createLargest } from './largest.ts';
import { createNewest } from './newest.ts';
import { createPruning } from './pruning.ts';
import { removedWith } from './partitions.ts';
import { createRecordIndexes } from './record-indexes.ts';
import { createSelect } from './selecting.ts';
import { standingOf } from './standing.ts';
import { createSubjectSumming } from './subject-sums.ts';
import { subjectLimits, type SubjectLimits } from './subjects.ts';
import { createSumming } from './summing.ts';
import { createSumsReader } from './sums-reader.ts';
import { openSumsThread } from './sums-thread.ts';
import type { UsageLog } from './index.ts';

/** How a log is opened. */
export interface LogOptions {
  /** Maximum number of slices of records that one question reads. */
  readonly slices?: number;
  /** How many tags and end users have sums of their own. */
  readonly subjects?: SubjectLimits;
  /** Fewest calls of 27 days for which sums of days are folded into those of more days. */
  readonly fold?: number;
  /** True: sums are read in a thread of their own, where the database is not in memory. Default false. */
  readonly inThread?: boolean;
}

/** Opens the log in the gateway's database. */
export function openUsageLog(
  { database }: Pick<Stores, 'database'>,
  { slices = maxSlices, subjects = subjectLimits, fold = fewestFolded, inThread = false }: LogOptions = {},
): UsageLog {
  const query = operatorReads(database);
  /** Reads from the primary server, because pruning must not decide by a replica that lags behind. */
  const queryPrimary = longReads(database);
  const addRecords = createSumming(database, fold);
  const addOwned = createSubjectSumming(database, subjects);
  const addToSums = async (): Promise<boolean> => {
    const hasMore = await addRecords();
    return (await addOwned()) || hasMore;
  };

  const select = createSelect(query, database.kind);
  const indexes = createRecordIndexes(database.kind, query);
  const reading = { query, kind: database.kind, indexes, select, slices };
  const newest = createNewest(reading);

  return {
    largest: createLargest(reading, newest),
    async page(filter, limit, after) {
      const before = after === undefined ? undefined : cursorOf(after);
      const { found, unread } = await newest(filter, limit + 1, before);
      const records = found.slice(0, limit);
      const last = records.at(-1);
      if (found.length > limit && last !== undefined) return { records, next: `${last.at}.${last.id}` };
      return unread === undefined ? { records } : { records, next: `${unread}.`, searchedSince: unread };
    },
    async find(id) {
      const [row] = await query(
        `SELECT ${recordColumns}, d.request, d.response FROM usage_calls u
         LEFT JOIN usage_details d ON d.at = u.at AND d.id = u.id WHERE u.id = ?`,
        [id],
      );
      return row === undefined ? undefined : recordOf(row);
    },
    ...((inThread ? openSumsThread(database) : undefined) ??
      createSumsReader({ kind: database.kind, query, queryLarge: largeReads(database) })),
    addToSums,
    failedAttempts: (since) => failedAttemptsIn(query, since),
    each: (filter) => exportOf(query, select, filter),
    standing: (keep) => standingOf(queryPrimary, keep, (at) => removedWith(database, keep.days, at)),
    prune: createPruning(database, queryPrimary, addToSums),
  };
}
