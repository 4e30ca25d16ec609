/** Removes records and sums that are too old or too many. */
import type { Database } from '../../state/database/index.ts';
import { rows, sqlOf, type Row, type Sql } from '../../state/database/sql.ts';
import { yieldToEventLoop } from '../../state/database/yield-to-event-loop.ts';
import type { UsageLog, UsageRetention } from './index.ts';
import type { Query } from '../../state/database/long-reads.ts';
import { dropPartitions, makePartitions, rangeEnd, keepsWholeDays } from './partitions.ts';
import { slice, type Cursor } from './questions.ts';
import { removeSums } from './sums-pruning.ts';
import { totalsIn } from './totals.ts';

const day = 86_400_000;
const hour = 3_600_000;

/** Records removed at once. */
const batch = 500;

/** Maximum number of records that one run removes, so that it ends. The next run goes on. */
const mostRemoved = 2_000_000;

/**
 * Opens the retention of a log. Records are removed from the oldest on, a few at a time, each time by a stretch of the primary key that is
 * bounded at both ends: without a lower end the server walks over all that it has removed and not cleaned up yet.
 */
export function createPruning(
  database: Database,
  query: Query,
  addToSums: () => Promise<boolean>,
): UsageLog['prune'] {
  const sql = sqlOf(database);
  return async (keep) => {
    const failure = await tend(database, keep.days);
    // The sums must have counted a record before it goes.
    while (await addToSums()) await yieldToEventLoop();
    const removedSums = await removeSums(sql, keep.sumDays);
    const [unsummed] = await query('SELECT 1 FROM usage_summing', []);
    if (unsummed !== undefined) return { records: 0, sums: removedSums };
    const records = await removeRecords(database, await endOf(query, keep), keep);
    await removeKinds(sql, query);
    if (failure !== undefined) throw failure;
    return { records, sums: removedSums };
  };
}

/** Makes partitions; returns why it failed. What is removed does not wait for it. */
async function tend(database: Database, days: number): Promise<Error | undefined> {
  if (database.kind === 'sqlite') return undefined;
  try {
    await makePartitions(database, days);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

/** The last record that is to go, by its age or because there are too many. */
interface End extends Cursor {
  readonly isByNumber: boolean;
}

async function endOf(query: Query, { days, records }: UsageRetention): Promise<End> {
  const byAge = { at: Math.ceil(Date.now() - days * day), id: '' };
  const byNumber = await nthNewest(query, records);
  return byNumber !== undefined && byNumber.at > byAge.at
    ? { ...byNumber, isByNumber: true }
    : { ...byAge, isByNumber: false };
}

/** Removes the record at this place and all before it: whole partitions first. Returns how many there were. */
async function removeRecords(
  database: Database,
  { at, id, isByNumber }: End,
  { days }: UsageRetention,
): Promise<number> {
  const sql = sqlOf(database);
  if (database.kind === 'sqlite') {
    const removed = await removeUpTo(sql, { at, id });
    await removeSubjectRecords(sql);
    return removed;
  }
  const dropped = await dropPartitions(database, at);
  const isWhole = !isByNumber && keepsWholeDays(database.kind, days);
  const end = isWhole ? await rangeEnd(database, at) : at;
  return dropped + (await removeUpTo(sql, end < at ? { at: end, id: '' } : { at, id }));
}

/** Removes the notes of the hours from before the oldest record, by which SQLite finds the records of tags, end users and organisations. */
async function removeSubjectRecords(sql: Sql): Promise<void> {
  const edge = 'SELECT MIN(at) FROM usage_records';
  for (;;) {
    const gone = await sql.run(() =>
      rows(
        `DELETE FROM usage_subject_records WHERE hour = (SELECT MIN(hour) FROM usage_subject_records)
           AND hour < COALESCE((${edge}) / ${hour}, ?) RETURNING hour`,
        Math.floor(Date.now() / hour) - 1,
      ),
    );
    if (gone.length === 0) return;
    await yieldToEventLoop();
  }
}

/** Removes kinds and owners of records that have gone. Two days more, for clocks that differ. */
async function removeKinds(sql: Sql, query: Query): Promise<void> {
  const [oldest] = await query('SELECT at FROM usage_records ORDER BY at LIMIT 1', []);
  const before = Math.floor(Number(oldest?.['at'] ?? Date.now()) / day) - 2;
  for (const table of ['usage_kinds', 'usage_owners'])
    for (let found = batch; found === batch;) {
      const gone = await sql.run(() =>
        rows(
          `DELETE FROM ${table} WHERE id IN (SELECT id FROM ${table} WHERE last_day < ? LIMIT ?) RETURNING id`,
          before,
          batch,
        ),
      );
      found = gone.length;
      await yieldToEventLoop();
    }
}

/** The newest record that is one too many; undefined when there are no more than so many. The sums tell in which hour it is. */
async function nthNewest(query: Query, number: number): Promise<Cursor | undefined> {
  const most = Math.max(0, Math.trunc(number));
  const sums = totalsIn({ level: 1, since: 0, until: Number.MAX_SAFE_INTEGER }, {}, ['start', 'calls']);
  const [found] = await query(
    `SELECT start, calls, counted FROM (
       SELECT start, SUM(calls) AS calls, SUM(SUM(calls)) OVER (ORDER BY start DESC) AS counted
       FROM (${sums.sql}) AS sums GROUP BY start) AS hours
     WHERE counted > ? ORDER BY start DESC LIMIT 1`,
    [...sums.values, most],
  );
  if (found === undefined) return undefined;
  let cursor: Cursor = { at: Number(found['start']) + hour, id: '' };
  for (let left = most - (Number(found['counted']) - Number(found['calls'])); ; left -= slice) {
    const [row] = await query(
      'SELECT at, id FROM usage_records WHERE at <= ? AND (at, id) < (?, ?) ORDER BY at DESC, id DESC LIMIT 1 OFFSET ?',
      [cursor.at, cursor.at, cursor.id, Math.min(left, slice - 1)],
    );
    if (row === undefined) return undefined;
    cursor = { at: Number(row['at']), id: String(row['id']) };
    if (left < slice) return cursor;
    await yieldToEventLoop();
  }
}

/** Removes the record at this place and all before it; returns how many there were. */
async function removeUpTo(sql: Sql, { at, id }: Cursor): Promise<number> {
  const run = (text: string, ...values: readonly (string | number)[]): Promise<readonly Row[]> =>
    sql.run(() => rows(text, ...values));
  let removed = 0;
  let since = 0;
  while (removed < mostRemoved) {
    const found = await run(
      'SELECT at, id FROM usage_records WHERE at >= ? AND at <= ? AND (at, id) <= (?, ?) ORDER BY at, id LIMIT ?',
      since,
      at,
      at,
      id,
      batch,
    );
    const last = found.at(-1);
    // What an older version has removed has left its attempts.
    const [lastAt, lastId] = last === undefined ? [at, id] : [Number(last['at']), String(last['id'])];
    // Details first: what a crash leaves between the two is a record without details, and the next run finds it.
    for (const table of ['usage_details', 'usage_attempts', ...(last === undefined ? [] : ['usage_records'])])
      await run(
        `DELETE FROM ${table} WHERE at >= ? AND at <= ? AND (at, id) <= (?, ?)`,
        table === 'usage_records' ? since : 0,
        lastAt,
        lastAt,
        lastId,
      );
    if (last === undefined) return removed;
    removed += found.length;
    since = lastAt;
    await yieldToEventLoop();
  }
  return removed;
}
